// RUN: daedal-opt -p 'elide-initialization{needed=true}' --split-input-file %s | filecheck %s

// A sum can begin with +0.0: nothing changes.
func.func @sum(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
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

// CHECK-LABEL: func.func @sum
// CHECK:         slcv.set %acc, %z
// CHECK:         slcv.get %acc :
// -----

// A maximum that takes its first row as it is begins with an empty register.
func.func @max(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
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
        %k = slcv.keep_greater %x, %s first : vector<8xf32>, vector<8xf32> -> vector<8xf32>
        slcv.set %acc, %k : !slcv.accumulator<8>, vector<8xf32>
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

// CHECK-LABEL: func.func @max
// CHECK-NOT:     vector.broadcast
// CHECK:         slcv.get %acc clear :
