// RUN: daedal-opt -p 'convert-slc-to-slcv{reuse=false}' %s | filecheck %s
// RUN: daedal-opt -p convert-slc-to-slcv %s | filecheck %s --check-prefix=ONCE

// Two loops of a callback read the same row.
func.func @twice(%t: memref<?x8xf32>, %u: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  slc.for %p = %c0 to %n step %c1 : index, index {
    slc.callback "iteration"(%p : !slc.stream<index>) {
    ^bb0(%i: index):
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%i, %d] : memref<?x8xf32>
        %y = arith.addf %x, %x : f32
        memref.store %y, %out[%i, %d] : memref<?x8xf32>
      }
      scf.for %d = %c0 to %c8 step %c1 {
        %x = memref.load %t[%i, %d] : memref<?x8xf32>
        memref.store %x, %u[%i, %d] : memref<?x8xf32>
      }
    }
  }
  func.return
}

// CHECK:     slcv.fetch %t
// CHECK:     slcv.store %{{.*}}, %out
// CHECK:     slcv.fetch %t
// CHECK:     slcv.store %{{.*}}, %u

// ONCE:      slcv.fetch %t
// ONCE:      slcv.store %{{.*}}, %out
// ONCE-NOT:  slcv.fetch
// ONCE:      slcv.store %{{.*}}, %u
