// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f() {
  %a = dlc.argument "length" "table" : index
  func.return
}
// CHECK: kind must be one of base, end, size, stride, value, not 'length'
// -----
func.func @f() {
  %a = dlc.argument "size" "table" : index
  func.return
}
// CHECK: a size and a stride must have a dimension, the other kinds none
// -----
func.func @f(%c: index) {
  dlc.event "never" {
    dlc.push_token 0
  }
  func.return
}
// CHECK: event must be one of begin, iteration, end, not 'never'
// -----
func.func @f(%c: index) {
  dlc.event "end" {
    dlc.fetch "vector7" %c[%c * %c] bytes 16 : index, index, index
  }
  func.return
}
// CHECK: queue must be one of vector0, vector1, store, not 'vector7'
// -----
func.func @f(%c: index) {
  dlc.event "end" {
    dlc.push_store %c[%c * %c] bytes 7 : index, index, index
  }
  func.return
}
// CHECK: bytes must be a multiple of 2, at least 2, not 7
// -----
func.func @f(%c: index) {
  dlc.event "end" {
    dlc.fetch "vector0" %c[%c * %c] bytes 6 : index, index, index
  }
  func.return
}
// CHECK: bytes must be a multiple of 4, at least 4, not 6
// -----
func.func @f(%c: index) {
  slc.for %b = %c to %c step %c : index, index {
    %l = dlc.load %c[%b] until %c bytes 3 : index, !slc.stream<index>, index -> !slc.stream<index>
  }
  func.return
}
// CHECK: bytes must be 1, 2, 4 or 8, not 3
// -----
func.func @f(%c: index) {
  dlc.push_token 0
  func.return
}
// CHECK: 'dlc.push_token' expects parent op 'dlc.event'
// -----
func.func @f() {
  dlc.execute {
    dlc.callback 0 {
      %s = dlc.pop_scalar : i64
    }
  }
  func.return
}
// CHECK: a scalar must be an f32, an index or an i32, not i64
// -----
dlc.execute {
  %k = dlc.scalar : f32
  dlc.callback 0 {
    %x = dlc.pop_scalar : f32
    dlc.keep %x, %x
  }
}
// CHECK: scalar must be the result of dlc.scalar
