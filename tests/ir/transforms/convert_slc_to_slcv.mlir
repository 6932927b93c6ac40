// RUN: daedal-opt -p convert-slc-to-slcv %s | filecheck %s

func.func @f(%t: memref<?x64xf32, strided<[?, 1]>>, %out: memref<?x64xf32>, %ws: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  %acc = memref.alloca() : memref<64xf32>
  slc.for %p = %c0 to %n step %c1 : index, index {
    %w = slc.load %ws[%p] : memref<?xf32>, !slc.stream<index> -> !slc.stream<f32>
    slc.callback "iteration"(%p, %w : !slc.stream<index>, !slc.stream<f32>) {
    ^bb0(%i: index, %v: f32):
      scf.for %d = %c8 to %c40 step %c1 {
        %x = memref.load %t[%i, %d] : memref<?x64xf32, strided<[?, 1]>>
        %s = memref.load %acc[%d] : memref<64xf32>
        %y = math.fma %x, %v, %s : f32
        %g = arith.cmpf ogt, %y, %x : f32
        %m = arith.select %g, %y, %x : f32
        memref.store %m, %acc[%d] : memref<64xf32>
        %e = arith.addi %d, %c8 : index
        memref.store %m, %out[%i, %e] : memref<?x64xf32>
      }
    }
  }
  func.return
}

// CHECK:      %acc = slcv.accumulator : !slcv.accumulator<64 : i64>
// CHECK:      ^bb0(%i: index, %v: f32):
// CHECK-NEXT:   %x = slcv.fetch %t[%i, %c8] : memref<?x64xf32, strided<[?, 1]>>, vector<32xf32>
// CHECK-NEXT:   %s = slcv.get %acc : !slcv.accumulator<64 : i64> -> vector<32xf32>
// CHECK-NEXT:   %v_1 = vector.broadcast %v : f32 to vector<32xf32>
// CHECK-NEXT:   %y = math.fma %x, %v_1, %s : vector<32xf32>
// CHECK-NEXT:   %m = slcv.keep_greater %y, %x : vector<32xf32>, vector<32xf32> -> vector<32xf32>
// CHECK-NEXT:   slcv.set %acc, %m : !slcv.accumulator<64 : i64>, vector<32xf32>
// CHECK-NEXT:   %0 = arith.addi %c8, %c8 : index
// CHECK-NEXT:   slcv.store %m, %out[%i, %0] : vector<32xf32>, memref<?x64xf32>
