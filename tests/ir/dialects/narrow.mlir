// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @f(%h: f16, %row: vector<8xbf16>) -> (f16, vector<8xbf16>) {
  %a = narrow.widen %h : f16 to f32
  %b = narrow.widen %row : vector<8xbf16> to vector<8xf32>
  %c = narrow.round %a : f32 to f16
  %d = narrow.round %b away : vector<8xf32> to vector<8xbf16>
  func.return %c, %d : f16, vector<8xbf16>
}

// CHECK:      func.func @f(%h: f16, %row: vector<8xbf16>) -> (f16, vector<8xbf16>) {
// CHECK-NEXT:   %a = narrow.widen %h : f16 to f32
// CHECK-NEXT:   %b = narrow.widen %row : vector<8xbf16> to vector<8xf32>
// CHECK-NEXT:   %c = narrow.round %a : f32 to f16
// CHECK-NEXT:   %d = narrow.round %b away : vector<8xf32> to vector<8xbf16>

func.func @integers(%row: vector<8xui8>) -> vector<8xf32> {
  %a = narrow.widen %row : vector<8xui8> to vector<8xf32>
  func.return %a : vector<8xf32>
}

// CHECK:        %a = narrow.widen %row : vector<8xui8> to vector<8xf32>
