// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%t: tensor<?x4xf32>, %i: tensor<?x?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "median" %t[%i] : tensor<?x4xf32>, tensor<?x?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: mode must be one of sum, mean, max, min, prod, not 'median'
// -----
func.func @f(%t: tensor<?x4xf64>, %i: tensor<?xi64>) -> tensor<?x4xf32> {
  %a = emb.lookup %t[%i] : tensor<?x4xf64>, tensor<?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: table must be rows of f32 or f16 or bf16 of a fixed width of at least 1, not tensor<?x4xf64>
// -----
func.func @f(%t: tensor<?x4xf16>, %i: tensor<?x?xi64>) -> tensor<?x4xf16> {
  %a = emb.bag "sum" %t[%i] away : tensor<?x4xf16>, tensor<?x?xi64> -> tensor<?x4xf16>
  func.return %a : tensor<?x4xf16>
}
// CHECK: away must go with rows of bf16, not of f16
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?xi16>) -> tensor<?x4xf32> {
  %a = emb.lookup %t[%i] : tensor<?x4xf32>, tensor<?xi16> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: indices must be a tensor of i32 or i64 with rank 1, not tensor<?xi16>
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "sum" %t[%i] : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: indices must be a tensor of i32 or i64 with rank 2, not tensor<?xi64>
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?x?xi64>, %w: tensor<?xf32>) -> tensor<?x4xf32> {
  %a = emb.bag "max" %t[%i] weights %w : tensor<?x4xf32>, tensor<?x?xi64> weights tensor<?xf32> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: weights must go with mode sum or mean, not 'max'
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?x?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "sum" %t[%i] fused : tensor<?x4xf32>, tensor<?x?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: fused must go with weights
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?x?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "max" %t[%i] block 16 : tensor<?x4xf32>, tensor<?x?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: block must go with a sum or mean of 2-D indices, without fused and padding
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?x?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "sum" %t[%i] padding 3 block 16 : tensor<?x4xf32>, tensor<?x?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: block must go with a sum or mean of 2-D indices, without fused and padding
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?x?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "sum" %t[%i] block 0 : tensor<?x4xf32>, tensor<?x?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: block must be at least 1, not 0
// -----
func.func @f(%t: tensor<?x4xf32>, %i: tensor<?xi64>) -> tensor<?x8xf32> {
  %a = emb.lookup %t[%i] : tensor<?x4xf32>, tensor<?xi64> -> tensor<?x8xf32>
  func.return %a : tensor<?x8xf32>
}
// CHECK: result must be tensor<?x4xf32>, not tensor<?x8xf32>
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index) {
  emb.bag_list "sum" %l[1 for 2] width 8 pitch 8 to 8 %i offsets %o bags %n : tensor<3x2xi64>, tensor<?xi32> offsets tensor<?xi64>
  func.return
}
// CHECK: entries 1 … 2 must be in the list, 3 numbers for each, not (3, 2)
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index) {
  emb.bag_list "sum" %l[0 for 2] width 8 pitch 4 to 8 %i offsets %o bags %n : tensor<3x2xi64>, tensor<?xi32> offsets tensor<?xi64>
  func.return
}
// CHECK: width must be from 1 to the pitches, 4 and 8, not 8
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index) {
  emb.bag_list "sum" %l[0 for 2] width 8 of f64 pitch 8 to 8 %i offsets %o bags %n : tensor<3x2xi64>, tensor<?xi32> offsets tensor<?xi64>
  func.return
}
// CHECK: rows must be of f32 or f16 or bf16, not of f64
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index, %w: tensor<?xf32>) {
  emb.bag_list "max" %l[0 for 2] width 8 pitch 8 to 8 %i offsets %o bags %n weights %w : tensor<3x2xi64>, tensor<?xi32> offsets tensor<?xi64> weights tensor<?xf32>
  func.return
}
// CHECK: weights must go with mode sum or mean, not 'max'
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index) {
  emb.bag_list "sum" %l[0 for 2] width 8 pitch 8 to 8 %i offsets %o bags %n fused : tensor<3x2xi64>, tensor<?xi32> offsets tensor<?xi64>
  func.return
}
// CHECK: fused must go with weights
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>) {
  emb.lookup_list %l[1 for 2] width 8 pitch 8 to 8 %i ends %o : tensor<3x2xi64>, tensor<?xi32> ends tensor<?xi64>
  func.return
}
// CHECK: entries 1 … 2 must be in the list, 3 numbers for each, not (3, 2)
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>) {
  emb.lookup_list %l[0 for 2] width 8 pitch 8 to 4 %i ends %o : tensor<3x2xi64>, tensor<?xi32> ends tensor<?xi64>
  func.return
}
// CHECK: width must be from 1 to the pitches, 8 and 4, not 8
// -----
func.func @f(%t: tensor<?x4xf16>, %i: tensor<?x?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "mean" %t[%i] wide : tensor<?x4xf16>, tensor<?x?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}
// CHECK: wide must go with mode sum, without away and rounds
// -----
func.func @f(%t: tensor<?x4xf16>, %i: tensor<?x?xi64>) -> tensor<?x4xf16> {
  %a = emb.bag "sum" %t[%i] wide : tensor<?x4xf16>, tensor<?x?xi64> -> tensor<?x4xf16>
  func.return %a : tensor<?x4xf16>
}
// CHECK: result must be tensor<?x4xf32>, not tensor<?x4xf16>
// -----
func.func @f(%t: tensor<?x4xui8>, %i: tensor<?x?xi64>) -> tensor<?x4xui8> {
  %a = emb.bag "sum" %t[%i] : tensor<?x4xui8>, tensor<?x?xi64> -> tensor<?x4xui8>
  func.return %a : tensor<?x4xui8>
}
// CHECK: table must be rows of f32 or f16 or bf16 of a fixed width of at least 1, not tensor<?x4xui8>
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %p: tensor<?xf32>, %n: index) {
  emb.block_list %l[0 for 2] width 8 pitch 8 to 8 %i ends %o places %p blocks %n : tensor<3x2xi64>, tensor<?xi32> ends tensor<?xi64> places tensor<?xf32>
  func.return
}
// CHECK: places must be a tensor of i32 or i64 with rank 1, not tensor<?xf32>
// -----
func.func @f(%l: tensor<3x2xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %p: tensor<?xi64>, %n: index) {
  emb.block_list %l[0 for 2] width 8 pitch 8 to 8 %i ends %o places %p blocks %n fused : tensor<3x2xi64>, tensor<?xi32> ends tensor<?xi64> places tensor<?xi64>
  func.return
}
// CHECK: fused must go with weights
