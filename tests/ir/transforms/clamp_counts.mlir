// RUN: daedal-opt -p clamp-counts %s | filecheck %s

// A loop goes over end - start entries, which the machine makes sure are no fewer than 0; what is loaded may be negative.
func.func @f(%x: memref<?xf32>, %s: memref<?xi64>, %n: memref<?xi64>, %bags: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %b = %c0 to %bags step %c1 {
    %l0 = memref.load %s[%b] : memref<?xi64>
    %start = arith.index_cast %l0 : i64 to index
    %l1 = memref.load %n[%b] : memref<?xi64>
    %end = arith.index_cast %l1 : i64 to index
    %length = arith.subi %end, %start : index
    scf.for %p = %start to %end step %c1 {
      scf.yield
    }
    %most = arith.maxsi %length, %c1 : index
    %w0 = arith.index_cast %most : index to i64
    %d0 = arith.sitofp %w0 : i64 to f32
    %v0 = memref.load %x[%b] : memref<?xf32>
    %y0 = arith.divf %v0, %d0 : f32
    memref.store %y0, %x[%b] : memref<?xf32>
    %other = arith.maxsi %end, %c1 : index
    %w1 = arith.index_cast %other : index to i64
    %d1 = arith.sitofp %w1 : i64 to f32
    %v1 = memref.load %x[%b] : memref<?xf32>
    %y1 = arith.divf %v1, %d1 : f32
    memref.store %y1, %x[%b] : memref<?xf32>
  }
  func.return
}

// CHECK:      %most = arith.maxsi %length, %c1 : index
// CHECK:      %0 = arith.constant 0 : index
// CHECK-NEXT: %natural = arith.maxsi %end, %0 : index
// CHECK-NEXT: %other = arith.maxsi %natural, %c1 : index
// CHECK-NOT:  %natural

// The loop is not run wherever the division is.
func.func @g(%x: memref<?xf32>, %n: index, %run: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %b = %c0 to %run step %c1 {
    %end = arith.addi %b, %n : index
    scf.for %p = %b to %end step %c1 {
      scf.yield
    }
  }
  %most = arith.maxsi %n, %c1 : index
  %w = arith.index_cast %most : index to i64
  %d = arith.sitofp %w : i64 to f32
  scf.for %b = %c0 to %run step %c1 {
    %v = memref.load %x[%b] : memref<?xf32>
    %y = arith.divf %v, %d : f32
    memref.store %y, %x[%b] : memref<?xf32>
  }
  func.return
}

// CHECK:      func.func @g
// CHECK:      %natural = arith.maxsi %n, %{{.*}} : index
