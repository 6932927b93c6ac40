// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%a: index) {
  %t = place.memref %a : index -> memref<?x8xf32, strided<[?, 1]>>
  func.return
}
// CHECK: the strides of a memref at an address must be fixed, not as in memref<?x8xf32, strided<[?, 1]>>
// -----
func.func @f(%a: f32) {
  %t = place.memref %a : f32 -> memref<?x8xf32>
  func.return
}
// CHECK: address must be an index or a stream of them, not f32
