// RUN: daedal-opt -p promote-scalars %s | filecheck %s

func.func @f(%t: memref<?xf32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %c0 to %n step %c1 {
    %sum, %count = scf.for %p = %c0 to %n step %c1 iter_args(%acc = %zero, %k = %c0) -> (f32, index) {
      %x = memref.load %t[%p] : memref<?xf32>
      %a = arith.addf %acc, %x : f32
      %k1 = arith.addi %k, %c1 : index
      scf.yield %a, %k1 : f32, index
    }
    memref.store %sum, %out[%b] : memref<?xf32>
  }
  func.return
}

// CHECK:      %acc = memref.alloca() : memref<1xf32>
// CHECK:      scf.for %b = %c0_1 to %n step %c1_1 {
// CHECK-NEXT:   scf.for %d = %c0 to %c1 step %c1 {
// CHECK-NEXT:     memref.store %zero, %acc[%d] : memref<1xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   %count = scf.for %p = %c0_1 to %n step %c1_1 iter_args(%k = %c0_1) -> (index) {
// CHECK:          %x = memref.load %t[%p] : memref<?xf32>
// CHECK:          scf.for %d_1 = %c0 to %c1 step %c1 {
// CHECK-NEXT:       [[A:%.*]] = memref.load %acc[%d_1] : memref<1xf32>
// CHECK-NEXT:       [[B:%.*]] = arith.addf [[A]], %x : f32
// CHECK-NEXT:       memref.store [[B]], %acc[%d_1] : memref<1xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.yield %k1 : index
// CHECK:        scf.for %d_2 = %c0 to %c1 step %c1 {
// CHECK-NEXT:     [[C:%.*]] = memref.load %acc[%d_2] : memref<1xf32>
// CHECK-NEXT:     [[D:%.*]] = arith.addi %b, %d_2 : index
// CHECK-NEXT:     memref.store [[C]], %out[[[D]]] : memref<?xf32>

// A number that a reduction gives: stored as it is, and kept in a local row for the loop inside.
func.func @computed(%t: memref<?x8xf32>, %out: memref<?xf32>, %u: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %p = %c0 to %n step %c1 {
    %s = scf.for %d = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (f32) {
      %x = memref.load %t[%p, %d] : memref<?x8xf32>
      %y = arith.addf %a, %x : f32
      scf.yield %y : f32
    } {daedal.reduce}
    %twice = arith.addf %s, %s : f32
    memref.store %twice, %out[%p] : memref<?xf32>
    scf.for %q = %c0 to %n step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%q, %d] : memref<?x8xf32>
        %z = arith.mulf %x, %s : f32
        memref.store %z, %u[%q, %d] : memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @computed
// CHECK:      %s = memref.alloca() : memref<1xf32>
// CHECK:      %s_1 = scf.for
// CHECK:      } {daedal.reduce}
// CHECK-NEXT: scf.for %d_1 =
// CHECK-NEXT:   memref.store %s_1, %s[%d_1] : memref<1xf32>
// CHECK:      %twice = arith.addf %s_1, %s_1 : f32
// CHECK-NEXT: memref.store %twice, %out[%p] : memref<?xf32>
// CHECK-NEXT: scf.for %q
// CHECK-NEXT:   %s_2 = memref.load %s[%c0] : memref<1xf32>
// CHECK-NEXT:   scf.for %d_2
// CHECK:          arith.mulf %{{.*}}, %s_2 : f32
