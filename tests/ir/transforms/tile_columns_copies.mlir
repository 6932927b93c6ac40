// RUN: daedal-opt -p 'tile-columns{elements=4 copies=true}' %s | filecheck %s

// Rows that are only copied are cut like all others; the last piece is shorter.
func.func @copied(%t: memref<?x10xf32>, %out: memref<?x10xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x10xf32>, vector<10xf32>
      slcv.store %x, %out[%i, %c0] : vector<10xf32>, memref<?x10xf32>
    }
  }
  func.return
}

// CHECK:      slc.for %tile = %c0_1 to %c8 step %c4 : index, index {
// CHECK:        %x = slcv.fetch %t[%i, %{{.*}}] : memref<?x10xf32>, vector<4xf32>
// CHECK:        slcv.store %x, %out[%i, %{{.*}}] : vector<4xf32>, memref<?x10xf32>
// CHECK:      slc.for %p_1
// CHECK:        %x_1 = slcv.fetch %t[%i_1, %{{.*}}] : memref<?x10xf32>, vector<2xf32>
// CHECK-NEXT:   %{{.*}} = arith.addi %c0, %c8_1 : index
// CHECK-NEXT:   slcv.store %x_1, %out[%i_1, %{{.*}}] : vector<2xf32>, memref<?x10xf32>
