// RUN: daedal-opt -p 'tile-columns{elements=256}' --split-input-file %s | filecheck %s
// RUN: daedal-opt -p 'tile-columns{elements=256 levels=1}' --split-input-file %s | filecheck %s --check-prefix=FLAT

func.func @long(%t: memref<?x600xf32, strided<[?, 1]>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %acc = slcv.accumulator : !slcv.accumulator<600>
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x600xf32, strided<[?, 1]>>, vector<600xf32>
      slcv.set %acc, %x : !slcv.accumulator<600>, vector<600xf32>
    }
  }
  func.return
}

// CHECK:      slc.for %tile = %c0_1 to %c512 step %c256 : index, index {
// CHECK-NEXT:   slc.for %p = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:     slc.callback "iteration"(%p, %tile : !slc.stream<index>, !slc.stream<index>) {
// CHECK-NEXT:     ^bb0(%i: index, %tile_1: index):
// CHECK-NEXT:       %0 = arith.addi %c0, %tile_1 : index
// CHECK-NEXT:       %x = slcv.fetch %t[%i, %0] : memref<?x600xf32, strided<[?, 1]>>, vector<256xf32>
// CHECK-NEXT:       slcv.set %acc_1, %x : !slcv.accumulator<256 : i64>, vector<256xf32>
// CHECK:      %acc_2 = slcv.accumulator : !slcv.accumulator<88 : i64>
// CHECK:      slc.for %p_1 = %c0 to %n step %c1 : index, index {
// CHECK-NEXT:   slc.callback "iteration"(%p_1 : !slc.stream<index>) {
// CHECK-NEXT:   ^bb0(%i_1: index):
// CHECK-NEXT:     %1 = arith.addi %c0, %c512_1 : index
// CHECK-NEXT:     %x_1 = slcv.fetch %t[%i_1, %1] : memref<?x600xf32, strided<[?, 1]>>, vector<88xf32>

// FLAT-NOT:  %tile
// FLAT:      slc.for %p = %c0 to %n step %c1 : index, index {
// FLAT:        %x = slcv.fetch %t[%i, %c0] : memref<?x600xf32, strided<[?, 1]>>, vector<256xf32>
// FLAT-NEXT:   slcv.set %acc_1,
// FLAT:      slc.for %p_1 = %c0 to %n step %c1 : index, index {
// FLAT:        %0 = arith.addi %c0, %c256 : index
// FLAT-NEXT:   %x_1 = slcv.fetch %t[%i_1, %0] : memref<?x600xf32, strided<[?, 1]>>, vector<256xf32>
// FLAT-NEXT:   slcv.set %acc_1,
// FLAT:        %1 = arith.addi %c0, %c512 : index
// FLAT-NEXT:   %x_2 = slcv.fetch %t[%i_2, %1] : memref<?x600xf32, strided<[?, 1]>>, vector<88xf32>
// -----

// Rows that are only copied stay whole.
func.func @copied(%t: memref<?x600xf32>, %out: memref<?x600xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x600xf32>, vector<600xf32>
      slcv.store %x, %out[%i, %c0] : vector<600xf32>, memref<?x600xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @copied
// CHECK-NOT:   tile
// CHECK:       vector<600xf32>, memref<?x600xf32>
// -----

// A single f32 is not moved: it is stored at the same place for each tile.
func.func @single(%t: memref<?x600xf32>, %out: memref<?x600xf32>, %s: memref<?xf32>, %w: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    %v = slc.load %w[%p] : memref<?xf32>, !slc.stream<index> -> !slc.stream<f32>
    slc.callback "iteration"(%p, %v : !slc.stream<index>, !slc.stream<f32>) {
    ^bb0(%i: index, %f: f32):
      %r = math.sqrt %f : f32
      slcv.store %r, %s[%i] : f32, memref<?xf32>
      %x = slcv.fetch %t[%i, %c0] : memref<?x600xf32>, vector<600xf32>
      %g = vector.broadcast %r : f32 to vector<600xf32>
      %y = arith.mulf %x, %g : vector<600xf32>
      slcv.store %y, %out[%i, %c0] : vector<600xf32>, memref<?x600xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @single
// CHECK:         %[[ROOT:.*]] = math.sqrt %{{.*}} : f32
// CHECK-NEXT:    slcv.store %[[ROOT]], %s[%i] : f32, memref<?xf32>
// CHECK:         %[[ROOT:.*]] = math.sqrt %{{.*}} : f32
// CHECK-NEXT:    slcv.store %[[ROOT]], %s[%i_1] : f32, memref<?xf32>
// -----

// Rows that one instruction takes are not tiled.
func.func @fits(%t: memref<?x256xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %acc = slcv.accumulator : !slcv.accumulator<256>
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      %x = slcv.fetch %t[%i, %c0] : memref<?x256xf32>, vector<256xf32>
      slcv.set %acc, %x : !slcv.accumulator<256>, vector<256xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @fits
// CHECK:       %acc = slcv.accumulator
// CHECK:       slcv.fetch %t[%i, %c0] : memref<?x256xf32>, vector<256xf32>
// CHECK-NEXT:  slcv.set %acc, %x
