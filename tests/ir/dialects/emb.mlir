// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @bags(%t: tensor<?x64xf32>, %i: tensor<?xi64>, %o: tensor<?xi32>, %w: tensor<?xf32>) -> tensor<?x64xf32> {
  %a = emb.bag "mean" %t[%i] offsets %o padding 3 : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi32> -> tensor<?x64xf32>
  %b = emb.bag "sum" %t[%i] offsets %o weights %w fused : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi32> weights tensor<?xf32> -> tensor<?x64xf32>
  func.return %b : tensor<?x64xf32>
}

func.func @fixed(%t: tensor<?x1xf32>, %i: tensor<?x?xi32>) -> tensor<?x1xf32> {
  %a = emb.bag "sum" %t[%i] : tensor<?x1xf32>, tensor<?x?xi32> -> tensor<?x1xf32>
  %b = emb.bag "sum" %t[%i] block 16 : tensor<?x1xf32>, tensor<?x?xi32> -> tensor<?x1xf32>
  func.return %a : tensor<?x1xf32>
}

func.func @rows(%t: tensor<?x7xf32>, %i: tensor<?xi64>) -> tensor<?x7xf32> {
  %a = emb.lookup %t[%i] : tensor<?x7xf32>, tensor<?xi64> -> tensor<?x7xf32>
  func.return %a : tensor<?x7xf32>
}

// CHECK:      %a = emb.bag "mean" %t[%i] offsets %o padding 3 : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi32> -> tensor<?x64xf32>
// CHECK-NEXT: %b = emb.bag "sum" %t[%i] offsets %o weights %w fused : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi32> weights tensor<?xf32> -> tensor<?x64xf32>
// CHECK:      %a = emb.bag "sum" %t[%i] : tensor<?x1xf32>, tensor<?x?xi32> -> tensor<?x1xf32>
// CHECK-NEXT: %b = emb.bag "sum" %t[%i] block 16 : tensor<?x1xf32>, tensor<?x?xi32> -> tensor<?x1xf32>
// CHECK:      %a = emb.lookup %t[%i] : tensor<?x7xf32>, tensor<?xi64> -> tensor<?x7xf32>

func.func @list(%l: tensor<3x5xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index, %w: tensor<?xf32>) {
  emb.bag_list "max" %l[0 for 2] width 6 pitch 8 to 40 %i offsets %o bags %n padding 3 : tensor<3x5xi64>, tensor<?xi32> offsets tensor<?xi64>
  emb.bag_list "sum" %l[2 for 3] width 8 pitch 8 to 40 %i offsets %o bags %n weights %w fused : tensor<3x5xi64>, tensor<?xi32> offsets tensor<?xi64> weights tensor<?xf32>
  emb.lookup_list %l[1 for 2] width 6 pitch 8 to 40 %i ends %o : tensor<3x5xi64>, tensor<?xi32> ends tensor<?xi64>
  func.return
}

// CHECK:      emb.bag_list "max" %l[0 for 2] width 6 pitch 8 to 40 %i offsets %o bags %n padding 3 : tensor<3x5xi64>, tensor<?xi32> offsets tensor<?xi64>
// CHECK-NEXT: emb.bag_list "sum" %l[2 for 3] width 8 pitch 8 to 40 %i offsets %o bags %n weights %w fused : tensor<3x5xi64>, tensor<?xi32> offsets tensor<?xi64> weights tensor<?xf32>
// CHECK-NEXT: emb.lookup_list %l[1 for 2] width 6 pitch 8 to 40 %i ends %o : tensor<3x5xi64>, tensor<?xi32> ends tensor<?xi64>

func.func @wide(%t: tensor<?x4xf16>, %i: tensor<?x?xi64>) -> tensor<?x4xf32> {
  %a = emb.bag "sum" %t[%i] wide : tensor<?x4xf16>, tensor<?x?xi64> -> tensor<?x4xf32>
  func.return %a : tensor<?x4xf32>
}

// CHECK:      %a = emb.bag "sum" %t[%i] wide : tensor<?x4xf16>, tensor<?x?xi64> -> tensor<?x4xf32>

func.func @blocks(%l: tensor<3x5xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %p: tensor<?xi64>, %n: index, %w: tensor<?xf32>) {
  emb.bag_list "sum" %l[0 for 2] width 6 pitch 8 to 40 %i offsets %o bags %n : tensor<3x5xi64>, tensor<?xi32> offsets tensor<?xi64>
  emb.block_list %l[0 for 2] width 6 pitch 8 to 40 %i ends %o places %p blocks %n : tensor<3x5xi64>, tensor<?xi32> ends tensor<?xi64> places tensor<?xi64>
  emb.block_list %l[2 for 3] width 6 pitch 8 to 40 %i ends %o places %p blocks %n weights %w fused : tensor<3x5xi64>, tensor<?xi32> ends tensor<?xi64> places tensor<?xi64> weights tensor<?xf32>
  func.return
}

// CHECK:      emb.bag_list "sum" %l[0 for 2] width 6 pitch 8 to 40 %i offsets %o bags %n : tensor<3x5xi64>, tensor<?xi32> offsets tensor<?xi64>
// CHECK-NEXT: emb.block_list %l[0 for 2] width 6 pitch 8 to 40 %i ends %o places %p blocks %n : tensor<3x5xi64>, tensor<?xi32> ends tensor<?xi64> places tensor<?xi64>
// CHECK-NEXT: emb.block_list %l[2 for 3] width 6 pitch 8 to 40 %i ends %o places %p blocks %n weights %w fused : tensor<3x5xi64>, tensor<?xi32> ends tensor<?xi64> places tensor<?xi64> weights tensor<?xf32>

func.func @score(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>, %i: tensor<?xi64>, %j: tensor<?xi32>, %n: index) -> tensor<?xf32> {
  %s = emb.score "sum" "0.0 1.1 mul" of %a, %b [%i, %j] outer 1 by %n : tensor<?x8xf32>, tensor<?x8xf32> lists tensor<?xi64>, tensor<?xi32> -> tensor<?xf32>
  func.return %s : tensor<?xf32>
}

// CHECK:      emb.score "sum" "0.0 1.1 mul" of %a, %b[%i, %j] outer 1 by %n : tensor<?x8xf32>, tensor<?x8xf32> lists tensor<?xi64>, tensor<?xi32> -> tensor<?xf32>
