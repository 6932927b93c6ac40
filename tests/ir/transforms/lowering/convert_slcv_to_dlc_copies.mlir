// RUN: daedal-opt -p 'convert-slcv-to-dlc{streams=false}' %s | filecheck %s
// RUN: daedal-opt -p convert-slcv-to-dlc %s | filecheck %s --check-prefix=STREAM

func.func @copied(%t: memref<?x8xf32>, %out: memref<?x8xf32>, %n: index) {
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
// CHECK-NEXT:   dlc.push_store %out_base[%p * %c32] bytes 32 : index, !slc.stream<index>, index
// CHECK-NEXT:   dlc.push_token 0
// CHECK-NEXT:   dlc.fetch "vector0" %t_base[%p * %c32] bytes 32
// CHECK:      dlc.callback 0 {
// CHECK-NEXT:   %x = dlc.pop "vector0" : vector<8xf32>
// CHECK-NEXT:   dlc.push %x

// STREAM-NOT: dlc.push_token
// STREAM:     dlc.fetch "store"
// STREAM-NOT: dlc.callback
