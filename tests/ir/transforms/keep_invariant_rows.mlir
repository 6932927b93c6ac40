// RUN: daedal-opt -p keep-invariant-rows --split-input-file %s | filecheck %s

// The query's row is the same for all keys: it is fetched in front of their loop. A key's row is not.
func.func @scores(%keys: memref<?x8xf32>, %queries: memref<?x8xf32>, %ends: memref<?xi32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %q = %c0 to %n step %c1 : index, index {
    %end = slc.load %ends[%q] : memref<?xi32>, !slc.stream<index> -> !slc.stream<index>
    slc.for %e = %c0 to %end step %c1 : index, !slc.stream<index> {
      slc.callback "iteration"(%e, %q : !slc.stream<index>, !slc.stream<index>) {
      ^bb0(%i: index, %j: index):
        %key = slcv.fetch %keys[%i, %c0] : memref<?x8xf32>, vector<8xf32>
        %query = slcv.fetch %queries[%j, %c0] : memref<?x8xf32>, vector<8xf32>
        %s = arith.mulf %key, %query : vector<8xf32>
        slcv.store %s, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @scores
// CHECK-NEXT:    %query = slcv.accumulator : !slcv.accumulator<8 : i64>
// CHECK:         slc.callback "iteration"(%q : !slc.stream<index>) {
// CHECK-NEXT:    ^bb0(%q_1: index):
// CHECK-NEXT:      %query_1 = slcv.fetch %queries[%q_1, %c0]
// CHECK-NEXT:      slcv.set %query, %query_1
// CHECK-NEXT:    }
// CHECK-NEXT:    slc.for %e = %c0 to %end
// CHECK:           %key = slcv.fetch %keys[%i, %c0]
// CHECK-NEXT:      %query_2 = slcv.get %query : !slcv.accumulator<8 : i64> -> vector<8xf32>
// -----

// A loop of one iteration, and a row of what is written: nothing is kept.
func.func @once(%keys: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %q = %c0 to %n step %c1 : index, index {
    %next = slc.alu "add" %q, %c1 : !slc.stream<index>, index -> !slc.stream<index>
    slc.for %e = %q to %next step %c1 : !slc.stream<index>, !slc.stream<index> {
      slc.callback "iteration"(%q : !slc.stream<index>) {
      ^bb0(%j: index):
        %key = slcv.fetch %keys[%j, %c0] : memref<?x8xf32>, vector<8xf32>
        %s = arith.mulf %key, %key : vector<8xf32>
        slcv.store %s, %keys[%j, %c0] : vector<8xf32>, memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @once
// CHECK-NOT:     slcv.accumulator
