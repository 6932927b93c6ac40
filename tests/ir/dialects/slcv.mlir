// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @f(%t: memref<?x64xf32, strided<[?, 1]>>, %o: memref<?x64xf32>, %i: index) {
  %acc = slcv.accumulator : !slcv.accumulator<64>
  %x = slcv.fetch %t[%i, %i] : memref<?x64xf32, strided<[?, 1]>>, vector<64xf32>
  %y = slcv.get %acc clear : !slcv.accumulator<64> -> vector<64xf32>
  %z = slcv.get %acc : !slcv.accumulator<64> -> vector<32xf32>
  %g = slcv.keep_greater %x, %y : vector<64xf32>, vector<64xf32> -> vector<64xf32>
  %l = slcv.keep_less %g, %y : vector<64xf32>, vector<64xf32> -> vector<64xf32>
  %h = slcv.keep_greater %g, %y first : vector<64xf32>, vector<64xf32> -> vector<64xf32>
  slcv.set %acc, %l : !slcv.accumulator<64>, vector<64xf32>
  slcv.store %x, %o[%i, %i] : vector<64xf32>, memref<?x64xf32>
  %r = slcv.reduce "fma" %x, %y : vector<64xf32>, vector<64xf32>
  %e = slcv.element %z : vector<32xf32>
  %c = slcv.compare "less" %e, %r : f32, f32 -> f32
  %b = slcv.select %c, %e, %r : f32, f32, f32 -> f32
  %s = slcv.sigmoid %b
  %n = slcv.to_integer %s
  %k = slcv.scale %s, %n
  slcv.store %k, %o[%i, %i] : f32, memref<?x64xf32>
  func.return
}

// CHECK:      %acc = slcv.accumulator : !slcv.accumulator<64 : i64>
// CHECK-NEXT: %x = slcv.fetch %t[%i, %i] : memref<?x64xf32, strided<[?, 1]>>, vector<64xf32>
// CHECK-NEXT: %y = slcv.get %acc clear : !slcv.accumulator<64 : i64> -> vector<64xf32>
// CHECK-NEXT: %z = slcv.get %acc : !slcv.accumulator<64 : i64> -> vector<32xf32>
// CHECK-NEXT: %g = slcv.keep_greater %x, %y : vector<64xf32>, vector<64xf32> -> vector<64xf32>
// CHECK-NEXT: %l = slcv.keep_less %g, %y : vector<64xf32>, vector<64xf32> -> vector<64xf32>
// CHECK-NEXT: %h = slcv.keep_greater %g, %y first : vector<64xf32>, vector<64xf32> -> vector<64xf32>
// CHECK-NEXT: slcv.set %acc, %l : !slcv.accumulator<64 : i64>, vector<64xf32>
// CHECK-NEXT: slcv.store %x, %o[%i, %i] : vector<64xf32>, memref<?x64xf32>
// CHECK-NEXT: %r = slcv.reduce "fma" %x, %y : vector<64xf32>, vector<64xf32>
// CHECK-NEXT: %e = slcv.element %z : vector<32xf32>
// CHECK-NEXT: %c = slcv.compare "less" %e, %r : f32, f32 -> f32
// CHECK-NEXT: %b = slcv.select %c, %e, %r : f32, f32, f32 -> f32
// CHECK-NEXT: %s = slcv.sigmoid %b
// CHECK-NEXT: %n = slcv.to_integer %s
// CHECK-NEXT: %k = slcv.scale %s, %n
// CHECK-NEXT: slcv.store %k, %o[%i, %i] : f32, memref<?x64xf32>
