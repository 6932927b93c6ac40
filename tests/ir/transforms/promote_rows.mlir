// RUN: daedal-opt -p promote-rows --split-input-file %s | filecheck %s

func.func @set_first(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %c0 to %n step %c1 {
    scf.for %d = %c0 to %c8 step %c1 {
      memref.store %zero, %out[%b, %d] : memref<?x8xf32>
    }
    scf.for %p = %c0 to %n step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%p, %d] : memref<?x8xf32>
        %s = memref.load %out[%b, %d] : memref<?x8xf32>
        %r = arith.addf %s, %x : f32
        memref.store %r, %out[%b, %d] : memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK:      %out_row = memref.alloca() : memref<8xf32>
// CHECK:      scf.for %b = %c0 to %n step %c1 {
// CHECK-NEXT:   scf.for %d = %c0 to %c8 step %c1 {
// CHECK-NEXT:     memref.store %zero, %out_row[%d] : memref<8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   scf.for %p = %c0 to %n step %c1 {
// CHECK-NEXT:     scf.for %d_1 = %c0 to %c8 step %c1 {
// CHECK-NEXT:       %x = memref.load %t[%p, %d_1] : memref<?x8xf32>
// CHECK-NEXT:       %s = memref.load %out_row[%d_1] : memref<8xf32>
// CHECK-NEXT:       %r = arith.addf %s, %x : f32
// CHECK-NEXT:       memref.store %r, %out_row[%d_1] : memref<8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   scf.for %d_2 = %c0 to %c8 step %c1 {
// CHECK-NEXT:     %0 = memref.load %out_row[%d_2] : memref<8xf32>
// CHECK-NEXT:     memref.store %0, %out[%b, %d_2] : memref<?x8xf32>
// -----

func.func @read_first(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %b = %c0 to %n step %c1 {
    scf.for %p = %c0 to %n step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%p, %d] : memref<?x8xf32>
        %s = memref.load %out[%b, %d] : memref<?x8xf32>
        %r = arith.addf %s, %x : f32
        memref.store %r, %out[%b, %d] : memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK:      scf.for %b = %c0 to %n step %c1 {
// CHECK-NEXT:   scf.for %d = %c0 to %c8 step %c1 {
// CHECK-NEXT:     %0 = memref.load %out[%b, %d] : memref<?x8xf32>
// CHECK-NEXT:     memref.store %0, %out_row[%d] : memref<8xf32>
// -----

// A single element that is copied to a local row and back is left as it is.
func.func @kept(%out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kept = memref.alloca() : memref<1xf32>
  scf.for %b = %c0 to %n step %c1 {
    scf.for %d = %c0 to %c1 step %c1 {
      %e = arith.addi %b, %d : index
      %x = memref.load %out[%e] : memref<?xf32>
      memref.store %x, %kept[%d] : memref<1xf32>
    }
    scf.for %d = %c0 to %c1 step %c1 {
      %e = arith.addi %b, %d : index
      %x = memref.load %kept[%d] : memref<1xf32>
      memref.store %x, %out[%e] : memref<?xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @kept
// CHECK-NOT:     %out_row
// CHECK:           %x = memref.load %out[%e] : memref<?xf32>
// CHECK-NEXT:      memref.store %x, %kept[%d] : memref<1xf32>
// CHECK:           memref.store %{{.*}}, %out[%{{.*}}] : memref<?xf32>
