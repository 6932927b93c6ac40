// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%words: vector<10xf32>) {
  %s, %b, %row = narrow.unpack %words bits 3 : vector<10xf32> -> vector<64xf32>
  func.return
}
// CHECK: bits must be one of 8, 4, 2, not 3
// -----
func.func @f(%words: vector<2xf32>) {
  %s, %b, %row = narrow.unpack %words bits 8 : vector<2xf32> -> vector<4xf32>
  func.return
}
// CHECK: a row with a head must have more than 2 words, not 2
// -----
func.func @f(%words: vector<10xf32>) {
  %s, %b, %row = narrow.unpack %words bits 8 : vector<10xf32> -> vector<30xf32>
  func.return
}
// CHECK: vector<10xf32> must be of f32, and the row vector<32xf32>
// -----
func.func @f(%table: memref<?x18xf16>, %i: index) {
  %q = narrow.element %table[%i, %i] bits 8 : memref<?x18xf16>
  func.return
}
// CHECK: table must be rows of f32, not memref<?x18xf16>
// -----
func.func @f(%table: tensor<8x18xf32>, %indices: tensor<?xi64>, %offsets: tensor<?xi64>) {
  %out = emb.bag "sum" %table[%indices] offsets %offsets bits 8 columns 65 : tensor<8x18xf32>, tensor<?xi64> offsets tensor<?xi64> -> tensor<?x65xf32>
  func.return
}
// CHECK: columns must be from 1 to 64 of f32, not 65
// -----
func.func @f(%table: tensor<8x18xf32>, %indices: tensor<?xi64>, %offsets: tensor<?xi64>) {
  %out = emb.bag "mean" %table[%indices] offsets %offsets bits 8 columns 64 : tensor<8x18xf32>, tensor<?xi64> offsets tensor<?xi64> -> tensor<?x64xf32>
  func.return
}
// CHECK: bits must go with mode sum, without block and fused
