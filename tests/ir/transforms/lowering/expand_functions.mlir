// RUN: daedal-opt -p expand-functions %s | filecheck %s

func.func @f(%x: f32, %y: f32) -> (f32, f32) {
  %e = math.exp %x : f32
  %s = slcv.sigmoid %y
  func.return %e, %s : f32, f32
}

// CHECK-DAG:  %[[MOST:\d+]] = arith.constant 8.900000e+01 : f32
// CHECK-DAG:  %[[LEAST:\d+]] = arith.constant -1.040000e+02 : f32
// CHECK:      %[[A:\d+]] = slcv.keep_less %[[MOST]], %x : f32, f32 -> f32
// CHECK-NEXT: %[[B:\d+]] = slcv.keep_greater %[[LEAST]], %[[A]] : f32, f32 -> f32
// CHECK-NEXT: %[[C:\d+]] = arith.mulf %[[B]], %{{\d+}} : f32
// CHECK-NEXT: %[[D:\d+]] = slcv.to_integer %[[C]]
// CHECK-NEXT: %[[E:\d+]] = arith.sitofp %[[D]] : i32 to f32
// CHECK-COUNT-8: math.fma
// CHECK:      %e = slcv.scale %{{\d+}}, %[[D]]
// CHECK-NEXT: %[[SIZE:\d+]] = math.absf %y : f32
// CHECK-NEXT: %[[MASK:\d+]] = slcv.compare "equal" %y, %[[SIZE]] : f32, f32 -> f32
// CHECK-COUNT-8: math.fma
// CHECK:      %[[P:\d+]] = slcv.scale
// CHECK-NEXT: %[[T:\d+]] = slcv.select %[[MASK]], %{{\d+}}, %[[P]] : f32, f32, f32 -> f32
// CHECK-NEXT: %[[U:\d+]] = arith.addf %[[P]], %{{\d+}} : f32
// CHECK-NEXT: %s = arith.divf %[[T]], %[[U]] : f32
