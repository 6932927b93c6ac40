// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f() {
  %acc = slcv.accumulator : !slcv.accumulator<0 : i64>
  func.return
}
// CHECK: width must be at least 1, not 0
// -----
func.func @f() {
  %acc = slcv.accumulator : !slcv.accumulator<4 : i64>
  %y = slcv.get %acc : !slcv.accumulator<4 : i64> -> vector<8xf32>
  func.return
}
// CHECK: a row of 8 elements must fit its accumulator of 4
// -----
func.func @f(%t: memref<?x64xi32>, %i: index) {
  %x = slcv.fetch %t[%i, %i] : memref<?x64xi32>, vector<64xf32>
  func.return
}
// CHECK: rows must be of f32 or f16 or bf16, not of i32
// -----
func.func @f(%t: memref<?x64xf32>, %i: index) {
  %x = slcv.fetch %t[%i] : memref<?x64xf32>, vector<64xf32>
  func.return
}
// CHECK: there must be 2 indices, not 1
// -----
func.func @f(%t: memref<?x64xf32, strided<[1, 64]>>, %i: index) {
  %x = slcv.fetch %t[%i, %i] : memref<?x64xf32, strided<[1, 64]>>, vector<64xf32>
  func.return
}
// CHECK: the last dimension must have unit stride
// -----
func.func @f(%a: vector<4xf32>, %b: vector<8xf32>) {
  %x = slcv.keep_less %a, %b : vector<4xf32>, vector<8xf32> -> vector<4xf32>
  func.return
}
// CHECK: all values must be vector<4xf32>, not vector<8xf32>
// -----
func.func @f(%a: vector<4xf32>) {
  %x = slcv.reduce "fma" %a : vector<4xf32>
  func.return
}
// CHECK: fma must be of 2 rows, not 1
// -----
func.func @f(%a: vector<4xf32>) {
  %x = slcv.reduce "mean" %a : vector<4xf32>
  func.return
}
// CHECK: kind must be one of add, mul_add, fma, max, min, not 'mean'
// -----
func.func @f(%a: f32) {
  %x = slcv.compare "unequal" %a, %a : f32, f32 -> f32
  func.return
}
// CHECK: kind must be one of greater, less, equal, not 'unequal'
// -----
func.func @f(%a: f32, %b: vector<4xf32>) {
  %x = slcv.select %a, %b, %b : f32, vector<4xf32>, vector<4xf32> -> vector<4xf32>
  func.return
}
// CHECK: all values must be f32, not vector<4xf32>
// -----
func.func @f(%a: vector<4xf64>) {
  %x = slcv.keep_less %a, %a : vector<4xf64>, vector<4xf64> -> vector<4xf64>
  func.return
}
// CHECK: a value must be an f32 or a vector of f32 with one dimension, not vector<4xf64>
// -----
func.func @f(%t: memref<?x64xui8>, %i: index) {
  %x = slcv.fetch %t[%i, %i] : memref<?x64xui8>, vector<64xui8>
  slcv.store %x, %t[%i, %i] : vector<64xui8>, memref<?x64xui8>
  func.return
}
// CHECK: rows that are stored must be of f32 or f16 or bf16, not of memref<?x64xui8>
