// RUN: daedal-opt -p remove-empty-loops %s | filecheck %s

// A loop that only loads and computes goes, with those inside of it; one that checks or stores stays.
func.func @f(%t: memref<?x8xf32>, %i: memref<?xi64>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %b = %c0 to %n step %c1 {
    scf.for %k = %c0 to %n step %c1 {
      %x = memref.load %t[%k, %c0] : memref<?x8xf32>
      scf.for %m = %c0 to %k step %c1 {
        %y = arith.mulf %x, %x : f32
      }
    }
    scf.for %p = %c0 to %n step %c1 {
      %l = memref.load %i[%p] : memref<?xi64>
      %j = arith.index_cast %l : i64 to index
      check.bounds "index" %j, %n
    }
    scf.for %d = %c0 to %c8 step %c1 {
      %x = memref.load %t[%b, %d] : memref<?x8xf32>
      memref.store %x, %out[%b, %d] : memref<?x8xf32>
    }
  }
  scf.for %q = %c0 to %n step %c1 {
  }
  func.return
}

// CHECK-LABEL: func.func @f
// CHECK:         scf.for %b
// CHECK-NEXT:      scf.for %p
// CHECK:             check.bounds
// CHECK:           scf.for %d
// CHECK:             memref.store
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return

// What a loop carries is used, or it is the function's only one.
func.func @g(%out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %c0 to %n step %c1 {
    %s = scf.for %k = %c0 to %b step %c1 iter_args(%a = %zero) -> (f32) {
      %y = arith.addf %a, %a : f32
      scf.yield %y : f32
    }
    %r = scf.for %k = %c0 to %b step %c1 iter_args(%a = %zero) -> (f32) {
      scf.yield %a : f32
    }
    memref.store %s, %out[%b] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @g
// CHECK:         scf.for %b
// CHECK-NEXT:      %s = scf.for
// CHECK:           }
// CHECK-NEXT:      memref.store

func.func @h(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %b = %c0 to %n step %c1 {
  }
  func.return
}

// CHECK-LABEL: func.func @h
// CHECK:         scf.for %b
