// RUN: daedal-opt -p lower-emb --split-input-file %s | filecheck %s
// RUN: daedal-opt -p 'lower-emb{bounds=warn}' --split-input-file %s | filecheck %s --check-prefix=WARN
// RUN: daedal-opt -p 'lower-emb{bounds=none}' --split-input-file %s | filecheck %s --check-prefix=NONE

func.func @weighted(%t: tensor<?x64xf32>, %i: tensor<?xi64>, %o: tensor<?xi32>, %w: tensor<?xf32>) -> tensor<?x64xf32> {
  %a = emb.bag "sum" %t[%i] offsets %o weights %w fused : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi32> weights tensor<?xf32> -> tensor<?x64xf32>
  func.return %a : tensor<?x64xf32>
}

// CHECK:      func.func @weighted(%table: memref<?x64xf32, strided<[?, 1]>>, %indices: memref<?xi64>, %offsets: memref<?xi32>, %weights: memref<?xf32>, %out: memref<?x64xf32>) {
// CHECK:        %pooled = memref.alloca() : memref<64xf32>
// CHECK:        scf.for %b = %c0 to %bags step %c1 {
// CHECK:          check.bounds "offset" %end, %limit
// CHECK-NEXT:     scf.for %d = %c0 to %width step %c1 {
// CHECK-NEXT:       memref.store %zero, %pooled[%d] : memref<64xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.for %p = %start to %end step %c1 {
// CHECK-NEXT:       %index_loaded = memref.load %indices[%p] : memref<?xi64>
// CHECK-NEXT:       %index = arith.index_cast %index_loaded : i64 to index
// CHECK-NEXT:       check.bounds "index" %index, %rows
// CHECK-NEXT:       %weight = memref.load %weights[%p] : memref<?xf32>
// CHECK-NEXT:       scf.for %d_1 = %c0 to %width step %c1 {
// CHECK-NEXT:         %x = memref.load %table[%index, %d_1] : memref<?x64xf32, strided<[?, 1]>>
// CHECK-NEXT:         %s = memref.load %pooled[%d_1] : memref<64xf32>
// CHECK-NEXT:         %added = math.fma %x, %weight, %s : f32
// CHECK-NEXT:         memref.store %added, %pooled[%d_1] : memref<64xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.for %d_2 = %c0 to %width step %c1 {
// CHECK-NEXT:       %s_1 = memref.load %pooled[%d_2] : memref<64xf32>
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

// WARN:       func.func @weighted
// WARN:         check.bounds "offset" %end, %limit
// WARN-NEXT:    scf.for
// WARN:         check.bounds "index" %index, %rows mode "warn"
// WARN:       func.func @rows
// WARN:         check.bounds "index" %index, %rows mode "warn"
// NONE:       func.func @weighted
// NONE-NOT:     check.bounds
// NONE:       func.func @rows
// NONE-NOT:     check.bounds
// CHECK-NEXT:     %x = memref.load %table[%index, %d] : memref<?x7xf32, strided<[?, 1]>>
// CHECK-NEXT:     memref.store %x, %out[%p, %d] : memref<?x7xf32>
// -----

func.func @maximum(%t: tensor<?x8xf32>, %i: tensor<?xi64>, %o: tensor<?xi64>) -> tensor<?x8xf32> {
  %a = emb.bag "max" %t[%i] offsets %o padding 5 : tensor<?x8xf32>, tensor<?xi64> offsets tensor<?xi64> -> tensor<?x8xf32>
  func.return %a : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @maximum
// CHECK:         memref.store %zero, %pooled[%d] : memref<8xf32>
// CHECK:         %0 = scf.for %p = %start to %end step %c1 iter_args(%count = %c0) -> (index) {
// CHECK:           %1 = scf.if %counted -> (index) {
// CHECK-NEXT:        %first = arith.cmpi eq, %count, %c0 : index
// CHECK-NEXT:        scf.for %d_1 = %c0 to %width step %c1 {
// CHECK-NEXT:          %x = memref.load %table[%index, %d_1] : memref<?x8xf32, strided<[?, 1]>>
// CHECK-NEXT:          %s = memref.load %pooled[%d_1] : memref<8xf32>
// CHECK-NEXT:          %greater = arith.cmpf ogt, %x, %s : f32
// CHECK-NEXT:          %taken = arith.ori %first, %greater : i1
// CHECK-NEXT:          %kept = arith.select %taken, %x, %s : f32
// CHECK-NEXT:          memref.store %kept, %pooled[%d_1] : memref<8xf32>
// -----

func.func @minimum(%t: tensor<?x8xf32>, %i: tensor<?xi64>, %o: tensor<?xi64>) -> tensor<?x8xf32> {
  %a = emb.bag "min" %t[%i] offsets %o : tensor<?x8xf32>, tensor<?xi64> offsets tensor<?xi64> -> tensor<?x8xf32>
  func.return %a : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @minimum
// CHECK:           %first = arith.cmpi eq, %count, %c0 : index
// CHECK:             %less = arith.cmpf olt, %x, %s : f32
// CHECK-NEXT:        %taken = arith.ori %first, %less : i1
// CHECK-NEXT:        %kept = arith.select %taken, %x, %s : f32
// -----

func.func @product(%list: tensor<3x4xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index) {
  emb.bag_list "prod" %list[1 for 3] width 6 pitch 8 to 40 %i offsets %o bags %n : tensor<3x4xi64>, tensor<?xi32> offsets tensor<?xi64>
  func.return
}

// CHECK-LABEL: func.func @product
// CHECK:         %one = arith.constant 1.000000e+00 : f32
// CHECK:         memref.store %one, %pooled[%d] : memref<6xf32>
// CHECK:         %multiplied = arith.mulf %s, %x : f32
// CHECK-NEXT:    memref.store %multiplied, %pooled[%d_1] : memref<6xf32>
// -----

func.func @list(%list: tensor<3x4xi64>, %i: tensor<?xi32>, %o: tensor<?xi64>, %n: index) {
  emb.bag_list "sum" %list[1 for 3] width 6 pitch 8 to 40 %i offsets %o bags %n : tensor<3x4xi64>, tensor<?xi32> offsets tensor<?xi64>
  func.return
}

// CHECK:      func.func @list(%list: memref<3x4xi64>, %i: memref<?xi32>, %o: memref<?xi64>, %n: index) {
// CHECK:        %apart = arith.addi %n, %c1 : index
// CHECK-NEXT:   %first = arith.constant 1 : index
// CHECK-NEXT:   %last = arith.constant 4 : index
// CHECK-NEXT:   scf.for %t = %first to %last step %c1 {
// CHECK-NEXT:     %rows_loaded = memref.load %list[%number0, %t] : memref<3x4xi64>
// CHECK:          %table = place.memref %table_address : index -> memref<?x6xf32, strided<[8, 1]>>
// CHECK-NEXT:     %out = place.memref %out_address : index -> memref<?x6xf32, strided<[40, 1]>>
// CHECK-NEXT:     %begin = arith.muli %t, %apart : index
// CHECK-NEXT:     %behind = arith.addi %begin, %n : index
// CHECK-NEXT:     scf.for %b = %begin to %behind step %c1 {
// CHECK:            scf.for %p = %start to %end step %c1 {
// CHECK:              check.bounds "index" %index, %rows
// CHECK:                memref.load %table[%index, %d_1]
// CHECK:            memref.store %s_1, %out[%b, %d_2]

// -----

func.func @blocks(%t: tensor<?x32xf32>, %i: tensor<?x?xi64>) -> tensor<?x32xf32> {
  %a = emb.bag "mean" %t[%i] block 16 : tensor<?x32xf32>, tensor<?x?xi64> -> tensor<?x32xf32>
  func.return %a : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @blocks
// CHECK:         scf.for %k = %start to %end step %block {
// CHECK-NEXT:      %behind = arith.addi %k, %block : index
// CHECK-NEXT:      %stop = arith.minsi %behind, %end : index
// CHECK:           scf.for %p = %k to %stop step %c1 {
// CHECK:             memref.store %{{.*}}, %part[%{{.*}}] : memref<32xf32>
// CHECK:           memref.store %{{.*}}, %total[%{{.*}}] : memref<32xf32>
// CHECK:         %mean = arith.divf %{{.*}}, %divisor : f32
