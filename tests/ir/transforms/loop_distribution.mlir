// RUN: daedal-opt -p loop-distribution %s | filecheck %s

// Two sums of each %b that have nothing to do with each other.
func.func @apart(%t: memref<?x8xf32>, %o: memref<?xindex>, %one: memref<?x8xf32>, %two: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %p = memref.alloca() : memref<8xf32>
  %q = memref.alloca() : memref<8xf32>
  scf.for %b = %c0 to %n step %c1 {
    %e = memref.load %o[%b] : memref<?xindex>
    %f = arith.addi %b, %c1 : index
    scf.for %i = %c0 to %e step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%i, %d] : memref<?x8xf32>
        memref.store %x, %p[%d] : memref<8xf32>
      }
    }
    scf.for %j = %c0 to %f step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%j, %d] : memref<?x8xf32>
        memref.store %x, %q[%d] : memref<8xf32>
      }
    }
    scf.for %d = %c0 to %c8 step %c1 {
      %x = memref.load %p[%d] : memref<8xf32>
      memref.store %x, %one[%b, %d] : memref<?x8xf32>
    }
    scf.for %d = %c0 to %c8 step %c1 {
      %x = memref.load %q[%d] : memref<8xf32>
      memref.store %x, %two[%b, %d] : memref<?x8xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @apart
// CHECK:      scf.for %b = %c0 to %n step %c1 {
// CHECK-NEXT:   %e = memref.load %o[%b] : memref<?xindex>
// CHECK-NEXT:   scf.for %i = %c0 to %e step %c1 {
// CHECK:          memref.store %{{.*}}, %p[%d{{.*}}] : memref<8xf32>
// CHECK:          memref.store %{{.*}}, %one[%b, %d{{.*}}] : memref<?x8xf32>
// CHECK:      scf.for %[[B:.*]] = %c0 to %n step %c1 {
// CHECK-NEXT:   %f = arith.addi %[[B]], %c1 : index
// CHECK-NEXT:   scf.for %j = %c0 to %f step %c1 {
// CHECK:          memref.store %{{.*}}, %q[%d{{.*}}] : memref<8xf32>
// CHECK:          memref.store %{{.*}}, %two[%[[B]], %d{{.*}}] : memref<?x8xf32>
// CHECK-NOT:  scf.for

// The second loop adds to what the first one gives.
func.func @together(%t: memref<?x8xf32>, %one: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %p = memref.alloca() : memref<8xf32>
  scf.for %b = %c0 to %n step %c1 {
    scf.for %i = %c0 to %n step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%i, %d] : memref<?x8xf32>
        memref.store %x, %p[%d] : memref<8xf32>
      }
    }
    scf.for %j = %c0 to %n step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %p[%d] : memref<8xf32>
        memref.store %x, %one[%b, %d] : memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @together
// CHECK:      scf.for %b
// CHECK:      scf.for %i
// CHECK:      scf.for %j
// CHECK-NOT:  scf.for %b
