// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%x: f32) {
  %a = narrow.widen %x : f32 to f32
  func.return
}
// CHECK: f32 and f32 must be f32 or f16 or bf16 of one shape, and only the latter f32
// -----
func.func @f(%x: vector<4xf16>) {
  %a = narrow.widen %x : vector<4xf16> to vector<8xf32>
  func.return
}
// CHECK: vector<4xf16> and vector<8xf32> must be f32 or f16 or bf16 of one shape
// -----
func.func @f(%x: f32) {
  %a = narrow.round %x away : f32 to f16
  func.return
}
// CHECK: away must go with bf16, not with f16
// -----
func.func @f(%x: f32) {
  %a = narrow.round %x : f32 to ui8
  func.return
}
// CHECK: what f32 is rounded to must be f32 or f16 or bf16, not ui8
