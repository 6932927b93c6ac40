// RUN: daedal-opt -p loop-invariant-code-motion %s | filecheck %s

func.func @f(%t: memref<?x8xf32>, %i: memref<?xi64>, %w: memref<?xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %p = %c0 to %n step %c1 {
    scf.for %d = %c0 to %c8 step %c1 {
      %l = memref.load %i[%p] : memref<?xi64>
      %j = arith.index_cast %l : i64 to index
      check.bounds "index" %j, %n
      %v = memref.load %w[%p] : memref<?xf32>
      %x = memref.load %t[%j, %d] : memref<?x8xf32>
      %y = arith.mulf %x, %v : f32
      memref.store %y, %out[%p, %d] : memref<?x8xf32>
    }
  }
  func.return
}

// CHECK:      scf.for %p = %c0 to %n step %c1 {
// CHECK-NEXT:   %l = memref.load %i[%p] : memref<?xi64>
// CHECK-NEXT:   %j = arith.index_cast %l : i64 to index
// CHECK-NEXT:   check.bounds "index" %j, %n
// CHECK-NEXT:   %v = memref.load %w[%p] : memref<?xf32>
// CHECK-NEXT:   scf.for %d = %c0 to %c8 step %c1 {
// CHECK-NEXT:     %x = memref.load %t[%j, %d] : memref<?x8xf32>

// What the loop itself writes is not the same in all of its iterations.
func.func @g(%t: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %p = %c0 to %n step %c1 {
    scf.for %d = %c0 to %c8 step %c1 {
      %x = memref.load %t[%p, %c1] : memref<?x8xf32>
      memref.store %x, %t[%p, %d] : memref<?x8xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @g
// CHECK:         scf.for %d = %c0 to %c8 step %c1 {
// CHECK-NEXT:      %x = memref.load %t[%p, %c1] : memref<?x8xf32>
