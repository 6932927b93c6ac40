// RUN: daedal-opt -p convert-slcv-to-dlc --split-input-file %s | filecheck %s
// RUN: daedal-opt -p 'convert-slcv-to-dlc{lockstep=512 steps=1}' --split-input-file %s | filecheck %s --check-prefix=PAIRS

func.func @f(%t: memref<?x8xf32, strided<[?, 1]>>, %i: memref<?xi32>, %w: memref<?xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %acc = slcv.accumulator : !slcv.accumulator<8>
  slc.for %p = %c0 to %n step %c1 : index, index {
    %q = slc.alu "add" %p, %c1 : !slc.stream<index>, index -> !slc.stream<index>
    %j = slc.load %i[%q] : memref<?xi32>, !slc.stream<index> -> !slc.stream<index>
    %v = slc.load %w[%p] : memref<?xf32>, !slc.stream<index> -> !slc.stream<f32>
    slc.callback "iteration"(%j, %v : !slc.stream<index>, !slc.stream<f32>) {
    ^bb0(%k: index, %f: f32):
      %x = slcv.fetch %t[%k, %c0] : memref<?x8xf32, strided<[?, 1]>>, vector<8xf32>
      %g = vector.broadcast %f : f32 to vector<8xf32>
      %y = arith.mulf %x, %g : vector<8xf32>
      slcv.set %acc, %y : !slcv.accumulator<8>, vector<8xf32>
    }
    slc.callback "end"() {
      %s = slcv.get %acc clear : !slcv.accumulator<8> -> vector<8xf32>
      slcv.store %s, %out[%c1, %c0] : vector<8xf32>, memref<?x8xf32>
    }
  }
  func.return
}

// CHECK:      func.func @f() {
// CHECK:        %n = dlc.argument "value" "n" : index
// CHECK:        dlc.access {
// CHECK-NEXT:     slc.for %p = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:       %j = dlc.load %0[%p] until %i_end bytes 4 signed : index, !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:       %v = dlc.load %w_base[%p] until %w_end bytes 4 : index, !slc.stream<index>, index -> !slc.stream<f32>
// CHECK-NEXT:       dlc.event "iteration" {
// CHECK-NEXT:         dlc.push_scalar %v : !slc.stream<f32>
// CHECK-NEXT:         dlc.push_token 0
// CHECK-NEXT:         dlc.fetch "vector0" %t_base[%j * %t_stride0] bytes 32 : index, !slc.stream<index>, index
// CHECK-NEXT:       }
// CHECK-NEXT:       dlc.event "end" {
// CHECK-NEXT:         dlc.push_store %1[%c0 * %c0] bytes 32 : index, index, index
// CHECK-NEXT:         dlc.push_token 1
// CHECK:        dlc.execute {
// CHECK-NEXT:     %acc = slcv.accumulator : !slcv.accumulator<8 : i64>
// CHECK-NEXT:     dlc.callback 0 {
// CHECK-NEXT:       %x = dlc.pop "vector0" : vector<8xf32>
// CHECK-NEXT:       %f = dlc.pop_scalar : f32
// CHECK-NEXT:       %g = vector.broadcast %f : f32 to vector<8xf32>
// CHECK-NEXT:       %y = arith.mulf %x, %g : vector<8xf32>
// CHECK-NEXT:       slcv.set %acc, %y : !slcv.accumulator<8 : i64>, vector<8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     dlc.callback 1 {
// CHECK-NEXT:       %s = slcv.get %acc clear : !slcv.accumulator<8 : i64> -> vector<8xf32>
// CHECK-NEXT:       dlc.push %s : vector<8xf32>
// -----

// A copied row never reaches the execute unit.
func.func @copy(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x8xf32>, vector<8xf32>
      slcv.store %x, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
    }
  }
  func.return
}

// CHECK:      dlc.event "iteration" {
// CHECK-NEXT:   dlc.push_store %out_base[%p * %c32] bytes 32 stream : index, !slc.stream<index>, index
// CHECK-NEXT:   dlc.fetch "store" %t_base[%p * %c32] bytes 32 : index, !slc.stream<index>, index
// CHECK-NEXT: }
// CHECK-NOT:  dlc.callback
// -----

// Two rows need two steps. The token goes with the first, so that nothing waits for it; so does the store address.
func.func @two(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x8xf32>, vector<8xf32>
      %y = slcv.fetch %t[%c1, %c0] : memref<?x8xf32>, vector<8xf32>
      %z = arith.subf %y, %x : vector<8xf32>
      slcv.store %z, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
    }
  }
  func.return
}

// CHECK:      dlc.event "iteration" {
// CHECK-NEXT:   dlc.push_store %out_base[%p * %c32]
// CHECK-NEXT:   dlc.push_token 0
// CHECK-NEXT:   dlc.fetch "vector0" %{{.*}}[%c0 * %c0] bytes 32
// CHECK-NEXT:   dlc.fetch "vector0" %t_base[%p * %c32] bytes 32
// CHECK-NEXT: }
// CHECK:      %y = dlc.pop "vector0" : vector<8xf32>
// CHECK-NEXT: %x = dlc.pop "vector0" : vector<8xf32>
// CHECK-NEXT: %z = arith.subf %y, %x : vector<8xf32>
// -----

// Rows at addresses that were loaded: the address is the base.
func.func @list(%l: memref<2x?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %e = %c0 to %n step %c1 : index, index {
    %from = slc.load %l[%c0, %e] : memref<2x?xi64>, index, !slc.stream<index> -> !slc.stream<index>
    %to = slc.load %l[%c1, %e] : memref<2x?xi64>, index, !slc.stream<index> -> !slc.stream<index>
    %t = place.memref %from : !slc.stream<index> -> memref<?x8xf32, strided<[12, 1]>>
    %out = place.memref %to : !slc.stream<index> -> memref<?x8xf32>
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "iteration"(%p : !slc.stream<index>) {
      ^bb0(%i: index):
        %x = slcv.fetch %t[%i, %c0] : memref<?x8xf32, strided<[12, 1]>>, vector<8xf32>
        slcv.store %x, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @list
// CHECK:         dlc.push_store %to[%p * %{{.*}}] bytes 32 stream : !slc.stream<index>, !slc.stream<index>, index
// CHECK-NEXT:    dlc.fetch "store" %from[%p * %{{.*}}] bytes 32 : !slc.stream<index>, !slc.stream<index>, index
// -----

// A loop over tiles of rows counts bytes: where a tile is takes an addition and no product.
func.func @tiles(%t: memref<?x512xf32>, %out: memref<?x512xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  slc.for %tile = %c0 to %c512 step %c256 : index, index {
    slc.for %p = %c0 to %n step %c1 : index, index {
      slc.callback "iteration"(%p, %tile : !slc.stream<index>, !slc.stream<index>) {
      ^bb0(%i: index, %first: index):
        %from = arith.addi %c0, %first : index
        %x = slcv.fetch %t[%i, %from] : memref<?x512xf32>, vector<256xf32>
        %y = arith.addf %x, %x : vector<256xf32>
        %to = arith.addi %c0, %first : index
        slcv.store %y, %out[%i, %to] : vector<256xf32>, memref<?x512xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: func.func @tiles
// CHECK:           slc.for %tile = %c0 to %c2048 step %c1024 : index, index {
// CHECK-NEXT:        %t_base_1 = slc.alu "add" %t_base, %tile : index, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:        %out_base_1 = slc.alu "add" %out_base, %tile : index, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:        slc.for %p = %c0 to %n step %c1 : index, index {

// Single numbers: constants in registers, sent before all else; an integer as its low 32 bits; a store of one f32.
func.func @singles(%t: memref<?x8xf32>, %i: memref<?xi32>, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  %n = memref.dim %out, %c0 : memref<?xf32>
  slc.for %p = %c0 to %n step %c1 : index, index {
    %k = slc.load %i[%p] : memref<?xi32>, !slc.stream<index> -> !slc.stream<index>
    slc.callback "iteration"(%p, %k : !slc.stream<index>, !slc.stream<index>) {
    ^bb0(%q: index, %m: index):
      %x = slcv.fetch %t[%q, %c0] : memref<?x8xf32>, vector<8xf32>
      %s = slcv.reduce "add" %x : vector<8xf32>
      %w = arith.index_cast %m : index to i32
      %f = arith.sitofp %w : i32 to f32
      %g = math.fma %s, %half, %f : f32
      slcv.store %g, %out[%q] : f32, memref<?xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @singles
// CHECK:      dlc.access {
// CHECK-NEXT:   slc.for %constants = %c0 to %c1 step %c1 : index, index {
// CHECK-NEXT:     dlc.event "iteration" {
// CHECK-NEXT:       dlc.push_scalar %{{.*}} : f32
// CHECK-NEXT:       dlc.push_token 1
// CHECK:        slc.for %p
// CHECK:          dlc.event "iteration" {
// CHECK-NEXT:       dlc.push_scalar %k : !slc.stream<index>
// CHECK-NEXT:       dlc.push_store %out_base[%p * %c4] bytes 4 : index, !slc.stream<index>, index
// CHECK-NEXT:       dlc.push_token 0
// CHECK-NEXT:       dlc.fetch "vector0" %t_base[%p * %c32] bytes 32 : index, !slc.stream<index>, index
// CHECK:      dlc.execute {
// CHECK-NEXT:   %[[HALF:.*]] = dlc.scalar : f32
// CHECK-NEXT:   dlc.callback 0 {
// CHECK-NEXT:     %x = dlc.pop "vector0" : vector<8xf32>
// CHECK-NEXT:     %s = slcv.reduce "add" %x : vector<8xf32>
// CHECK-NEXT:     %m = dlc.pop_scalar : i32
// CHECK-NEXT:     %{{.*}} = arith.sitofp %m : i32 to f32
// CHECK-NEXT:     %g = math.fma %s, %[[HALF]], %{{.*}} : f32
// CHECK-NEXT:     dlc.push %g : f32
// CHECK:        dlc.callback 1 {
// CHECK-NEXT:     %[[POPPED:.*]] = dlc.pop_scalar : f32
// CHECK-NEXT:     dlc.keep %[[HALF]], %[[POPPED]]

// Two rows that are multiplied as they come: a queue for each, as far as they fit; a constant in each nest.
func.func @pairs(%t: memref<?x64xf32>, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  %two = arith.constant 2.0 : f32
  %n = memref.dim %out, %c0 : memref<?xf32>
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%q: index):
      %a = slcv.fetch %t[%q, %c0] : memref<?x64xf32>, vector<64xf32>
      %b = slcv.fetch %t[%c1, %c0] : memref<?x64xf32>, vector<64xf32>
      %c = slcv.fetch %t[%q, %c0] : memref<?x64xf32>, vector<64xf32>
      %d = slcv.fetch %t[%c1, %c0] : memref<?x64xf32>, vector<64xf32>
      %s = slcv.reduce "fma" %a, %b : vector<64xf32>, vector<64xf32>
      %u = slcv.reduce "fma" %c, %d : vector<64xf32>, vector<64xf32>
      %g = math.fma %s, %half, %two : f32
      %h = arith.addf %g, %u : f32
      slcv.store %h, %out[%q] : f32, memref<?xf32>
    }
  }
  func.return
}

// PAIRS-LABEL: func.func @pairs
// PAIRS:      slc.for %constants
// PAIRS:      slc.for %constants_1
// PAIRS:      slc.for %p
// PAIRS:      dlc.execute {
// PAIRS:        %a = dlc.pop "vector0" : vector<64xf32>
// PAIRS-NEXT:   %b = dlc.pop "vector1" : vector<64xf32>
// PAIRS-NEXT:   %s = slcv.reduce "fma" %a, %b : vector<64xf32>, vector<64xf32>
// PAIRS:        %c = dlc.pop "vector0" : vector<64xf32>
// PAIRS-NEXT:   %d = dlc.pop "vector0" : vector<64xf32>
// CHECK-LABEL: func.func @pairs
// CHECK-NOT: vector1

// -----

// A single f32 that a launch is given is an argument that is pushed.
func.func @scaled(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %alpha: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x8xf32>, vector<8xf32>
      %a = vector.broadcast %alpha : f32 to vector<8xf32>
      %y = arith.mulf %x, %a : vector<8xf32>
      slcv.store %y, %out[%i, %c0] : vector<8xf32>, memref<?x8xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @scaled
// CHECK:         %alpha = dlc.argument "value" "alpha" : index
// CHECK:         dlc.push_scalar %alpha : index
// CHECK:         dlc.pop_scalar : f32
