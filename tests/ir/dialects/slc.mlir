// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @f(%m: memref<?xi64>, %w: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %b = %c0 to %n step %c1 : index, index {
    %e = slc.load %m[%b] : memref<?xi64>, !slc.stream<index> -> !slc.stream<index>
    slc.check "offset" %e, %n mode "warn" : !slc.stream<index>, index
    slc.for %p = %b to %e step %c1 : !slc.stream<index>, !slc.stream<index> {
      %v = slc.load %w[%p] : memref<?xf32>, !slc.stream<index> -> !slc.stream<f32>
      %ne = slc.alu "not_equal" %p, %c1 : !slc.stream<index>, index -> !slc.stream<i1>
      %k = slc.count when %ne
      %f = slc.first when %ne
      %g = slc.first
      slc.callback "iteration" when %ne(%v, %p : !slc.stream<f32>, !slc.stream<index>) {
      ^bb0(%x: f32, %i: index):
        %y = arith.addf %x, %x : f32
      }
      slc.callback "end"(%k, %b : !slc.stream<index>, !slc.stream<index>) {
      ^bb0(%i: index, %j: index):
        %y = arith.addi %i, %j : index
      }
    }
  }
  func.return
}

// CHECK:      slc.for %b = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:   %e = slc.load %m[%b] : memref<?xi64>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:   slc.check "offset" %e, %n mode "warn" : !slc.stream<index>, index
// CHECK-NEXT:   slc.for %p = %b to %e step %c1 : !slc.stream<index>, !slc.stream<index> {
// CHECK-NEXT:     %v = slc.load %w[%p] : memref<?xf32>, !slc.stream<index> -> !slc.stream<f32>
// CHECK-NEXT:     %ne = slc.alu "not_equal" %p, %c1 : !slc.stream<index>, index -> !slc.stream<i1>
// CHECK-NEXT:     %k = slc.count when %ne
// CHECK-NEXT:     %f = slc.first when %ne
// CHECK-NEXT:     %g = slc.first
// CHECK-NEXT:     slc.callback "iteration" when %ne(%v, %p : !slc.stream<f32>, !slc.stream<index>) {
// CHECK-NEXT:     ^bb0(%x: f32, %i: index):
// CHECK:          slc.callback "end"(%k, %b : !slc.stream<index>, !slc.stream<index>) {
