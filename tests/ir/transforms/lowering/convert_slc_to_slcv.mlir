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

func.func @reductions(%t: memref<?x64xf32>, %o: memref<?x64xf32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 2.0 : f32
  %one = memref.alloca() : memref<1xf32>
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %s, %m = scf.for %d = %c0 to %c64 step %c1 iter_args(%a = %zero, %b = %start) -> (f32, f32) {
        %x = memref.load %t[%i, %d] : memref<?x64xf32>
        %y = memref.load %t[%c1, %d] : memref<?x64xf32>
        %q = arith.mulf %x, %y : f32
        %r = arith.addf %a, %q : f32
        %c = arith.cmpf olt, %x, %b : f32
        %l = arith.select %c, %x, %b : f32
        scf.yield %r, %l : f32, f32
      } {daedal.reduce}
      %root = math.sqrt %s : f32
      %k = memref.load %one[%c0] : memref<1xf32>
      %g = arith.cmpf uge, %root, %k : f32
      %w = arith.select %g, %root, %m : f32
      memref.store %w, %out[%i] : memref<?xf32>
      scf.for %d = %c0 to %c64 step %c1 {
        %x = memref.load %t[%i, %d] : memref<?x64xf32>
        %z = arith.mulf %x, %w : f32
        memref.store %z, %o[%i, %d] : memref<?x64xf32>
      }
    }
  }
  func.return
}

// CHECK:      %one = slcv.accumulator : !slcv.accumulator<1 : i64>
// CHECK:      ^bb0(%i: index):
// CHECK-NEXT:   %x = slcv.fetch %t[%i, %c0] : memref<?x64xf32>, vector<64xf32>
// CHECK-NEXT:   %y = slcv.fetch %t[%c1, %c0] : memref<?x64xf32>, vector<64xf32>
// CHECK-NEXT:   %s = slcv.reduce "mul_add" %x, %y : vector<64xf32>, vector<64xf32>
// CHECK-NEXT:   %m = slcv.reduce "min" %x : vector<64xf32>
// CHECK-NEXT:   %m_1 = slcv.keep_less %m, %start : f32, f32 -> f32
// CHECK-NEXT:   %root = math.sqrt %s : f32
// CHECK-NEXT:   %{{\d+}} = slcv.get %one : !slcv.accumulator<1 : i64> -> vector<1xf32>
// CHECK-NEXT:   %k = slcv.element %{{\d+}} : vector<1xf32>
// CHECK-NEXT:   %{{\d+}} = slcv.compare "less" %root, %k : f32, f32 -> f32
// CHECK-NEXT:   %w = slcv.select %{{\d+}}, %m_1, %root : f32, f32, f32 -> f32
// CHECK-NEXT:   slcv.store %w, %out[%i] : f32, memref<?xf32>
// CHECK-NEXT:   %w_1 = vector.broadcast %w : f32 to vector<64xf32>
// CHECK-NEXT:   %z = arith.mulf %x, %w_1 : vector<64xf32>
// CHECK-NEXT:   slcv.store %z, %o[%i, %c0] : vector<64xf32>, memref<?x64xf32>
