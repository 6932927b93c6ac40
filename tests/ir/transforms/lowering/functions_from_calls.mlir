// RUN: daedal-opt -p functions-from-calls %s | filecheck %s

func.func private @daedal_exp(f32) -> f32
func.func private @daedal_sigmoid(f32) -> f32
func.func @f(%x: f32) -> f32 {
  %y = func.call @daedal_exp(%x) : (f32) -> f32
  %z = func.call @daedal_sigmoid(%y) : (f32) -> f32
  func.return %z : f32
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @f(%x: f32) -> f32 {
// CHECK-NEXT:     %y = math.exp %x : f32
// CHECK-NEXT:     %z = slcv.sigmoid %y
// CHECK-NEXT:     func.return %z : f32
