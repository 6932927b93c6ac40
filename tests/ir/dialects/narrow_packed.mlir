// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @f(%table: memref<?x18xf32>, %i: index, %words: vector<10xf32>) -> (f32, f32, f32, vector<64xf32>) {
  %scale, %bias = narrow.head %table[%i] : memref<?x18xf32>
  %q = narrow.element %table[%i, %i] bits 8 : memref<?x18xf32>
  %s, %b, %row = narrow.unpack %words bits 4 : vector<10xf32> -> vector<64xf32>
  func.return %scale, %bias, %q, %row : f32, f32, f32, vector<64xf32>
}

// CHECK:        %scale, %bias = narrow.head %table[%i] : memref<?x18xf32>
// CHECK-NEXT:   %q = narrow.element %table[%i, %i] bits 8 : memref<?x18xf32>
// CHECK-NEXT:   %s, %b, %row = narrow.unpack %words bits 4 : vector<10xf32> -> vector<64xf32>
