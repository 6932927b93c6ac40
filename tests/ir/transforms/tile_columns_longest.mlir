// RUN: daedal-opt -p 'tile-columns{elements=2 longest=4}' %s | filecheck %s

// Rows that are only copied need no register, but are cut where they are longer than what is copied at once.
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

// CHECK-LABEL: func.func @copied
// CHECK:      slc.for %tile = %c0_1 to %c8 step %c4 : index, index {
// CHECK:        %x = slcv.fetch %t[%i, %{{.*}}] : memref<?x10xf32>, vector<4xf32>
// CHECK:        slcv.store %x, %out[%i, %{{.*}}] : vector<4xf32>, memref<?x10xf32>
// CHECK:      slc.for %p_1
// CHECK:        %x_1 = slcv.fetch %t[%i_1, %{{.*}}] : memref<?x10xf32>, vector<2xf32>

// What can be copied at once stays whole.
func.func @short(%t: memref<?x4xf32>, %out: memref<?x4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x4xf32>, vector<4xf32>
      slcv.store %x, %out[%i, %c0] : vector<4xf32>, memref<?x4xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @short
// CHECK-NOT:  slc.for %tile
// CHECK:      slcv.fetch %t[%i, %{{.*}}] : memref<?x4xf32>, vector<4xf32>
