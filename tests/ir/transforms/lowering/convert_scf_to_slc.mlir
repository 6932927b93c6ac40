// RUN: daedal-opt -p convert-scf-to-slc --split-input-file %s | filecheck %s

func.func @nest(%t: memref<?x8xf32>, %i: memref<?xi32>, %o: memref<?xi64>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %acc = memref.alloca() : memref<8xf32>
  scf.for %b = %c0 to %n step %c1 {
    %l = memref.load %o[%b] : memref<?xi64>
    %end = arith.index_cast %l : i64 to index
    scf.for %d = %c0 to %c8 step %c1 {
      memref.store %one, %acc[%d] : memref<8xf32>
    }
    %count = scf.for %p = %c0 to %end step %c1 iter_args(%k = %c0) -> (index) {
      %m = memref.load %i[%p] : memref<?xi32>
      %j = arith.index_cast %m : i32 to index
      check.bounds "index" %j, %n mode "ignore"
      %c = arith.cmpi sgt, %j, %c1 : index
      %k2 = scf.if %c -> (index) {
        scf.for %d = %c0 to %c8 step %c1 {
          %x = memref.load %t[%j, %d] : memref<?x8xf32>
          %s = memref.load %acc[%d] : memref<8xf32>
          %r = arith.addf %s, %x : f32
          memref.store %r, %acc[%d] : memref<8xf32>
        }
        %k1 = arith.addi %k, %c1 : index
        scf.yield %k1 : index
      } else {
        scf.yield %k : index
      }
      scf.yield %k2 : index
    }
    %most = arith.maxsi %count, %c1 : index
    %wide = arith.index_cast %most : index to i64
    %f = arith.sitofp %wide : i64 to f32
    scf.for %d = %c0 to %c8 step %c1 {
      %s = memref.load %acc[%d] : memref<8xf32>
      %q = arith.divf %s, %f : f32
      memref.store %q, %out[%b, %d] : memref<?x8xf32>
    }
  }
  func.return
}

// CHECK:      slc.for %b = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:   %end = slc.load %o[%b] : memref<?xi64>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:   slc.callback "iteration"() {
// CHECK-NEXT:     scf.for %d = %c0 to %c8 step %c1 {
// CHECK-NEXT:       memref.store %one, %acc[%d] : memref<8xf32>
// CHECK:        slc.for %p = %c0 to %end step %c1 : index, !slc.stream<index> {
// CHECK-NEXT:     %j = slc.load %i[%p] : memref<?xi32>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:     slc.check "index" %j, %n mode "ignore" : !slc.stream<index>, index
// CHECK-NEXT:     %c = slc.alu "less" %c1, %j : index, !slc.stream<index> -> !slc.stream<i1>
// CHECK-NEXT:     slc.callback "iteration" when %c(%j : !slc.stream<index>) {
// CHECK-NEXT:     ^bb0(%j_1: index):
// CHECK-NEXT:       scf.for %d_1 = %c0 to %c8 step %c1 {
// CHECK:          %count = slc.count when %c
// CHECK-NEXT:     slc.callback "end"(%count, %b : !slc.stream<index>, !slc.stream<index>) {
// CHECK-NEXT:     ^bb0(%count_1: index, %b_1: index):
// CHECK-NEXT:       %most = arith.maxsi %count_1, %c1 : index
// CHECK-NEXT:       %wide = arith.index_cast %most : index to i64
// CHECK-NEXT:       %f = arith.sitofp %wide : i64 to f32
// CHECK-NEXT:       scf.for %d_2 = %c0 to %c8 step %c1 {
// -----

func.func @outside(%out: memref<?x8xf32>, %t: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %acc = memref.alloca() : memref<8xf32>
  scf.for %d = %c0 to %c8 step %c1 {
    memref.store %one, %acc[%d] : memref<8xf32>
  }
  scf.for %p = %c0 to %n step %c1 {
    scf.for %d = %c0 to %c8 step %c1 {
      %x = memref.load %t[%p, %d] : memref<?x8xf32>
      memref.store %x, %acc[%d] : memref<8xf32>
    }
  }
  scf.for %d = %c0 to %c8 step %c1 {
    %x = memref.load %acc[%d] : memref<8xf32>
    memref.store %x, %out[%c0, %d] : memref<?x8xf32>
  }
  func.return
}

// CHECK:      slc.for %p = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:   slc.callback "begin"() {
// CHECK:        slc.callback "iteration"(%p : !slc.stream<index>) {
// CHECK:        slc.callback "end"() {
// -----

// A counter that is 0 before the first iteration that counts.
func.func @first(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %best = memref.alloca() : memref<8xf32>
  scf.for %b = %c0 to %n step %c1 {
    %last = scf.for %p = %c0 to %n step %c1 iter_args(%k = %c0) -> (index) {
      %counted = arith.cmpi ne, %p, %c1 : index
      %next = scf.if %counted -> (index) {
        %first = arith.cmpi eq, %k, %c0 : index
        scf.for %d = %c0 to %c8 step %c1 {
          %x = memref.load %t[%p, %d] : memref<?x8xf32>
          %s = memref.load %best[%d] : memref<8xf32>
          %g = arith.cmpf ogt, %x, %s : f32
          %take = arith.ori %first, %g : i1
          %m = arith.select %take, %x, %s : f32
          memref.store %m, %best[%d] : memref<8xf32>
        }
        %k1 = arith.addi %k, %c1 : index
        scf.yield %k1 : index
      } else {
        scf.yield %k : index
      }
      scf.yield %next : index
    }
  }
  func.return
}

// CHECK-LABEL: func.func @first
// CHECK:       %counted = slc.alu "not_equal" %p, %c1
// CHECK-NEXT:  %first = slc.first when %counted
// CHECK-NEXT:  slc.callback "iteration" when %counted(%p, %first : !slc.stream<index>, !slc.stream<i1>) {
// CHECK-NOT:   slc.count
// -----

// Work in the other branch of an inner condition: under the outer one, and under the inner one's being false.
func.func @otherwise(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %p = %c0 to %n step %c1 {
    %outer = arith.cmpi sgt, %p, %c1 : index
    %inner = arith.cmpi eq, %p, %c8 : index
    scf.if %outer {
      scf.if %inner {
      } else {
        scf.for %d = %c0 to %c8 step %c1 {
          %x = memref.load %t[%p, %d] : memref<?x8xf32>
          memref.store %x, %out[%p, %d] : memref<?x8xf32>
        }
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @otherwise
// CHECK:         %outer = slc.alu "less" %c1, %p
// CHECK-NEXT:    %inner = slc.alu "equal" %p, %c8
// CHECK:         %[[NOT:.*]] = slc.alu "equal" %inner, %c0
// CHECK-NEXT:    %[[BOTH:.*]] = slc.alu "and" %outer, %[[NOT]]
// CHECK-NEXT:    slc.callback "iteration" when %[[BOTH]](%p : !slc.stream<index>) {

// Reductions and stores of single numbers go into the callback of their place, with the arithmetic between them.
func.func @singles(%t: memref<?x8xf32>, %w: memref<?xf32>, %out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %p = %c0 to %n step %c1 {
    %v = memref.load %w[%p] : memref<?xf32>
    %s = scf.for %d = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (f32) {
      %x = memref.load %t[%p, %d] : memref<?x8xf32>
      %y = arith.addf %a, %x : f32
      scf.yield %y : f32
    } {daedal.reduce}
    %q = arith.divf %s, %v : f32
    memref.store %q, %out[%p] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @singles
// CHECK:      slc.for %p
// CHECK-NEXT:   %v = slc.load %w[%p]
// CHECK-NEXT:   slc.callback "iteration"(%p, %v : !slc.stream<index>, !slc.stream<f32>) {
// CHECK-NEXT:   ^bb0(%p_1: index, %v_1: f32):
// CHECK-NEXT:     %s = scf.for %d
// CHECK:          } {daedal.reduce}
// CHECK-NEXT:     %q = arith.divf %s, %v_1 : f32
// CHECK-NEXT:     memref.store %q, %out[%p_1] : memref<?xf32>

// -----

// A condition as the number of iterations of a loop.
func.func @guard(%i: memref<?xi64>, %t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %p = %c0 to %n step %c1 {
    %k0 = memref.load %i[%p] : memref<?xi64>
    %k = arith.index_cast %k0 : i64 to index
    %holds = arith.cmpi slt, %c0, %k : index
    %wide = arith.extui %holds : i1 to i64
    %taken = arith.index_cast %wide : i64 to index
    %until = arith.addi %p, %taken : index
    scf.for %q = %p to %until step %c1 {
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%q, %d] : memref<?x8xf32>
        memref.store %x, %out[%p, %d] : memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @guard
// CHECK:         %taken = slc.alu "less" %c0, %k : index, !slc.stream<index> -> !slc.stream<{{.*}}>
// CHECK-NEXT:    %until = slc.alu "add" %p, %taken : !slc.stream<index>, !slc.stream<{{.*}}> -> !slc.stream<index>
// CHECK-NEXT:    slc.for %q = %p to %until step %c1
