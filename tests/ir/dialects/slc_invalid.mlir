// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%c: index) {
  slc.for %b = %c to %c step %c : index, index {
    slc.for %p = %c to %c step %c : index, index {
    }
    slc.for %q = %c to %c step %c : index, index {
    }
  }
  func.return
}
// CHECK: a loop must have at most one loop in its body
// -----
func.func @f(%c: index) {
  slc.for %b = %c to %c step %c : index, index {
    %x = slc.alu "divide" %b, %c : !slc.stream<index>, index -> !slc.stream<index>
  }
  func.return
}
// CHECK: kind must be one of add, sub, mul, and, min, max, shift_left, shift_right, equal, not_equal, less, not 'divide'
// -----
func.func @f(%c: index, %m: memref<?x4xi32>) {
  slc.for %b = %c to %c step %c : index, index {
    %x = slc.load %m[%b] : memref<?x4xi32>, !slc.stream<index> -> !slc.stream<index>
  }
  func.return
}
// CHECK: there must be 2 indices, not 1
// -----
func.func @f(%c: index, %m: memref<?xf32>) {
  slc.for %b = %c to %c step %c : index, index {
    %x = slc.load %m[%b] : memref<?xf32>, !slc.stream<index> -> !slc.stream<index>
  }
  func.return
}
// CHECK: a load from memref<?xf32> must not give !slc.stream<index>
// -----
func.func @f(%c: index) {
  slc.for %b = %c to %c step %c : index, index {
    slc.callback "middle"() {
      %x = arith.constant 0 : index
    }
  }
  func.return
}
// CHECK: event must be one of begin, iteration, end, not 'middle'
// -----
func.func @f(%c: index) {
  slc.for %b = %c to %c step %c : index, index {
    slc.callback "iteration"(%b : !slc.stream<index>) {
    ^bb0(%i: f32):
    }
  }
  func.return
}
// CHECK: the region must take (index), the elements of the inputs
// -----
func.func @f(%c: index) {
  slc.for %b = %c to %c step %c : index, index {
    slc.callback "end"(%b : !slc.stream<index>) {
    ^bb0(%i: index):
    }
  }
  func.return
}
// CHECK: a callback at end must use streams from outside of its loop or, at end, counts
// -----
func.func @f(%s: !slc.stream<i64>) {
  func.return
}
// CHECK: a stream must be of index, i1 or f32, not i64
