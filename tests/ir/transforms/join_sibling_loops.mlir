// RUN: daedal-opt -p join-sibling-loops %s | filecheck %s

func.func @shared(%x: memref<?xf32>, %off: memref<?xi64>, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?xf32>
  %zero = arith.constant 0.000000e+00 : f32
  scf.for %q = %c0 to %n step %c1 {
    %cell = memref.alloca() : memref<1xf32>
    memref.store %zero, %cell[%c0] : memref<1xf32>
    scf.for %p = %c0 to %n step %c1 {
      %a = memref.load %x[%p] : memref<?xf32>
      %b = memref.load %cell[%c0] : memref<1xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %cell[%c0] : memref<1xf32>
    }
    scf.for %e = %c0 to %n step %c1 {
      %a = memref.load %x[%e] : memref<?xf32>
      %b = memref.load %cell[%c0] : memref<1xf32>
      %c = arith.mulf %a, %b : f32
      memref.store %c, %cell[%c0] : memref<1xf32>
    }
  }
  func.return
}

// CHECK:      scf.for %turn
// CHECK:        arith.cmpi eq, %turn
// CHECK:        scf.for %p = %c0 to %n step %c1
// CHECK:          scf.if
// CHECK:            arith.addf
// CHECK:          scf.for %again = %p to
// CHECK:            arith.cmpi eq, %turn
// CHECK:            scf.if
// CHECK:              arith.mulf
// CHECK-NOT:  scf.for %e
