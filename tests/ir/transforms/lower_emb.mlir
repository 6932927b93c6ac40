// RUN: daedal-opt -p lower-emb --split-input-file %s | filecheck %s

func.func @weighted(%t: tensor<?x64xf32>, %i: tensor<?xi64>, %o: tensor<?xi32>, %w: tensor<?xf32>) -> tensor<?x64xf32> {
  %a = emb.bag "sum" %t[%i] offsets %o weights %w fused : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi32> weights tensor<?xf32> -> tensor<?x64xf32>
  func.return %a : tensor<?x64xf32>
}

// CHECK:      func.func @weighted(%table: memref<?x64xf32, strided<[?, 1]>>, %indices: memref<?xi64>, %offsets: memref<?xi32>, %weights: memref<?xf32>, %out: memref<?x64xf32>) {
// CHECK:        %sum = memref.alloca() : memref<64xf32>
// CHECK:        scf.for %b = %c0 to %bags step %c1 {
// CHECK:          check.bounds "offset" %end, %limit
// CHECK-NEXT:     scf.for %d = %c0 to %width step %c1 {
// CHECK-NEXT:       memref.store %zero, %sum[%d] : memref<64xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.for %p = %start to %end step %c1 {
// CHECK-NEXT:       %index_loaded = memref.load %indices[%p] : memref<?xi64>
// CHECK-NEXT:       %index = arith.index_cast %index_loaded : i64 to index
// CHECK-NEXT:       check.bounds "index" %index, %rows
// CHECK-NEXT:       %weight = memref.load %weights[%p] : memref<?xf32>
// CHECK-NEXT:       scf.for %d_1 = %c0 to %width step %c1 {
// CHECK-NEXT:         %x = memref.load %table[%index, %d_1] : memref<?x64xf32, strided<[?, 1]>>
// CHECK-NEXT:         %s = memref.load %sum[%d_1] : memref<64xf32>
// CHECK-NEXT:         %added = math.fma %x, %weight, %s : f32
// CHECK-NEXT:         memref.store %added, %sum[%d_1] : memref<64xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.for %d_2 = %c0 to %width step %c1 {
// CHECK-NEXT:       %s_1 = memref.load %sum[%d_2] : memref<64xf32>
// CHECK-NEXT:       memref.store %s_1, %out[%b, %d_2] : memref<?x64xf32>
// -----

func.func @mean(%t: tensor<?x8xf32>, %i: tensor<?x?xi32>) -> tensor<?x8xf32> {
  %a = emb.bag "mean" %t[%i] padding 5 : tensor<?x8xf32>, tensor<?x?xi32> -> tensor<?x8xf32>
  func.return %a : tensor<?x8xf32>
}

// CHECK:      func.func @mean(%table: memref<?x8xf32, strided<[?, 1]>>, %indices: memref<?xi32>, %length: index, %out: memref<?x8xf32>) {
// CHECK:        %padding = arith.constant 5 : index
// CHECK:        scf.for %b = %c0 to %bags step %c1 {
// CHECK-NEXT:     %start = arith.muli %b, %length : index
// CHECK-NEXT:     %end = arith.addi %start, %length : index
// CHECK:          %0 = scf.for %p = %start to %end step %c1 iter_args(%count = %c0) -> (index) {
// CHECK:            %counted = arith.cmpi ne, %index, %padding : index
// CHECK-NEXT:       %1 = scf.if %counted -> (index) {
// CHECK:              %count_1 = arith.addi %count, %c1 : index
// CHECK-NEXT:         scf.yield %count_1 : index
// CHECK-NEXT:       } else {
// CHECK-NEXT:         scf.yield %count : index
// CHECK:          %at_least_one = arith.maxsi %0, %c1 : index
// CHECK:          arith.divf
// -----

func.func @rows(%t: tensor<?x7xf32>, %i: tensor<?xi64>) -> tensor<?x7xf32> {
  %a = emb.lookup %t[%i] : tensor<?x7xf32>, tensor<?xi64> -> tensor<?x7xf32>
  func.return %a : tensor<?x7xf32>
}

// CHECK:      scf.for %p = %c0 to %entries step %c1 {
// CHECK:        check.bounds "index" %index, %rows
// CHECK-NEXT:   scf.for %d = %c0 to %width step %c1 {
// CHECK-NEXT:     %x = memref.load %table[%index, %d] : memref<?x7xf32, strided<[?, 1]>>
// CHECK-NEXT:     memref.store %x, %out[%p, %d] : memref<?x7xf32>
