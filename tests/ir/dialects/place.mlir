// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @f(%a: index, %l: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = place.memref %a : index -> memref<?x8xf32, strided<[12, 1]>>
  slc.for %i = %c0 to %n step %c1 : index, index {
    %b = slc.load %l[%i] : memref<?xi64>, !slc.stream<index> -> !slc.stream<index>
    %u = place.memref %b : !slc.stream<index> -> memref<?x4xf32>
  }
  func.return
}

// CHECK:      %t = place.memref %a : index -> memref<?x8xf32, strided<[12, 1]>>
// CHECK:        %u = place.memref %b : !slc.stream<index> -> memref<?x4xf32>
