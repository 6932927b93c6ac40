// RUN: daedal-opt -p rows-from-scalars %s | filecheck %s

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
