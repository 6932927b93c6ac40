// RUN: daedal-opt -p elide-initialization --split-input-file %s | filecheck %s

// The set to zero goes, and the read at the end clears.
func.func @once(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"() {
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "end"(%b : !slc.stream<index>) {
      ^bb0(%i: index):
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @once
// CHECK:       slc.for %b = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:    slc.for %p = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:      slc.callback "end"(%b : !slc.stream<index>) {
// CHECK-NEXT:      ^bb0(%i: index):
// CHECK-NEXT:        %s = slcv.get %acc clear : !slcv.accumulator<8 : i64> -> vector<8xf32>
// -----

// The last read is in every iteration of the inner loop: the accumulator must keep its value.
func.func @running(%out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"() {
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "iteration"(%p : !slc.stream<index>) {
      ^bb0(%i: index):
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
        %x = vector.broadcast %one : f32 to vector<8xf32>
        %y = arith.addf %s, %x : vector<8xf32>
        slcv.set %acc, %y : !slcv.accumulator<8>, vector<8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @running
// CHECK:       slcv.set
// CHECK-NOT:   clear
// -----

// -0.0 is not what an empty register holds.
func.func @negative(%out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant -0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%b : !slc.stream<index>) {
    ^bb0(%i: index):
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
      %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
      slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @negative
// CHECK:       slcv.set
// CHECK-NOT:   clear
// -----

// A maximum that takes its first row as it is: an empty register does.
func.func @maximum(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"() {
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "iteration"(%p : !slc.stream<index>) {
      ^bb0(%i: index):
        %x = slcv.fetch %t[%i, %c0] : memref<?x8xf32>, vector<8xf32>
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        %m = slcv.keep_greater %x, %s first : vector<8xf32>, vector<8xf32> -> vector<8xf32>
        slcv.set %acc, %m : !slcv.accumulator<8>, vector<8xf32>
      }
      slc.callback "end"(%b : !slc.stream<index>) {
      ^bb0(%i: index):
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @maximum
// CHECK:       slc.for %b = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:    slc.for %p = %c0 to %n step %c1 : index, index {
// CHECK:           slcv.keep_greater %x, %s first
// CHECK:           slcv.get %acc clear
// -----

// Set under a condition: where that does not hold the sum goes on, so the read must not clear it.
func.func @sometimes(%out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    %c = slc.alu "equal" %b, %c0 : !slc.stream<index>, index -> !slc.stream<i1>
    slc.callback "iteration" when %c() {
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "iteration"() {
        %x = vector.broadcast %one : f32 to vector<8xf32>
        %a = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        %y = arith.addf %a, %x : vector<8xf32>
        slcv.set %acc, %y : !slcv.accumulator<8>, vector<8xf32>
      }
      slc.callback "end"(%b : !slc.stream<index>) {
      ^bb0(%i: index):
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @sometimes
// CHECK:       slcv.set
// CHECK-NOT:   clear
// -----

// The read is in another nest: what is set in every turn of the first one must be seen there.
func.func @elsewhere(%out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    slc.callback "end"() {
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
    }
  }
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "end"() {
      %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
      slcv.store %s, %out[%c0, %c0] : vector<8xf32>, memref<?x8xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @elsewhere
// CHECK:       slcv.set
// CHECK-NOT:   clear
// -----

// A read before the set to zero clears.
func.func @read_and_emptied(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"() {
      %x = vector.broadcast %one : f32 to vector<8xf32>
      %a = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
      %y = arith.addf %a, %x : vector<8xf32>
      slcv.set %acc, %y : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "end"(%b : !slc.stream<index>) {
      ^bb0(%i: index):
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
        %z = vector.broadcast %zero : f32 to vector<8xf32>
        slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @read_and_emptied
// CHECK:       %s = slcv.get %acc clear
// CHECK-NEXT:  slcv.store %s
// CHECK-NEXT:  }

// -----

// A maximum of an empty register would take its first row, and is one of that and +0.0.
func.func @compared(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %b = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"() {
      %x = vector.broadcast %one : f32 to vector<8xf32>
      %a = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
      %y = slcv.keep_greater %x, %a : vector<8xf32>, vector<8xf32> -> vector<8xf32>
      slcv.set %acc, %y : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "end"(%b : !slc.stream<index>) {
      ^bb0(%i: index):
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
        %z = vector.broadcast %zero : f32 to vector<8xf32>
        slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @compared
// CHECK:       %s = slcv.get %acc :
// CHECK:       slcv.set %acc, %z

// -----

// Each block leaves it empty, so that it is empty when the next table begins.
func.func @empty_already(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %t0 = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"() {
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %b = %c0 to %n step %c1 : index, index {
      slc.for %p = %c0 to %n step %c1 : index, index {
        slc.callback "iteration"(%p : !slc.stream<index>) {
        ^bb0(%i: index):
          %x = slcv.fetch %t[%i, %c0] : memref<?x8xf32>, vector<8xf32>
          %a = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
          %y = arith.addf %a, %x : vector<8xf32>
          slcv.set %acc, %y : !slcv.accumulator<8>, vector<8xf32>
        }
        slc.callback "end"(%b : !slc.stream<index>) {
        ^bb0(%i: index):
          %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
          slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
          %z = vector.broadcast %zero : f32 to vector<8xf32>
          slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
        }
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @empty_already
// CHECK:       slc.for %t0
// CHECK-NEXT:    slc.for %b
// CHECK:         slcv.get %acc clear

// -----

// Without blocks a table leaves nothing, but the last row of its last block stays.
func.func @not_empty(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %t0 = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"() {
      %z = vector.broadcast %zero : f32 to vector<8xf32>
      slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.for %b = %c0 to %n step %c1 : index, index {
      slc.callback "iteration"(%b : !slc.stream<index>) {
      ^bb0(%i: index):
        %s = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
        %z = vector.broadcast %zero : f32 to vector<8xf32>
        slcv.set %acc, %z : !slcv.accumulator<8>, vector<8xf32>
      }
      slc.for %p = %c0 to %n step %c1 : index, index {
        slc.callback "iteration"(%p : !slc.stream<index>) {
        ^bb0(%i: index):
          %x = slcv.fetch %t[%i, %c0] : memref<?x8xf32>, vector<8xf32>
          %a = slcv.get %acc : !slcv.accumulator<8> -> vector<8xf32>
          %y = arith.addf %a, %x : vector<8xf32>
          slcv.set %acc, %y : !slcv.accumulator<8>, vector<8xf32>
        }
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @not_empty
// CHECK:       slc.for %t0
// CHECK-NEXT:    slc.callback "iteration"() {
// CHECK:           slcv.set %acc
