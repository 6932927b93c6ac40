// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @f() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %base = dlc.argument "base" "table" : index
  %rows = dlc.argument "size" "table", 0 : index
  dlc.access {
    slc.for %b = %c0 to %rows step %c1 : index, index {
      %i = dlc.load %base[%b] until %rows bytes 8 signed : index, !slc.stream<index>, index -> !slc.stream<index>
      dlc.event "iteration" {
        dlc.push_scalar %i : !slc.stream<index>
        dlc.push_store %base[%b * %c1] bytes 16 stream : index, !slc.stream<index>, index
        dlc.push_token 0
        dlc.push_token 1 plus %i : !slc.stream<index>
        dlc.fetch "vector0" %base[%b * %c1] bytes 16 : index, !slc.stream<index>, index
      }
    }
  }
  dlc.execute {
    dlc.callback 0 {
      %n = dlc.pop_scalar : index
      %x = dlc.pop "vector0" : vector<4xf32>
      %y = dlc.divide_count %x, %n : vector<4xf32> -> vector<4xf32>
      dlc.push %y : vector<4xf32>
    }
    %k = dlc.scalar : f32
    dlc.callback 1 {
      %v = dlc.pop_scalar : f32
      dlc.keep %k, %v
      dlc.push %v : f32
      %m = dlc.pop_scalar : i32
    }
  }
  func.return
}

// CHECK:      %base = dlc.argument "base" "table" : index
// CHECK-NEXT: %rows = dlc.argument "size" "table", 0 : index
// CHECK-NEXT: dlc.access {
// CHECK-NEXT:   slc.for %b = %c0 to %rows step %c1 : index, index {
// CHECK-NEXT:     %i = dlc.load %base[%b] until %rows bytes 8 signed : index, !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:     dlc.event "iteration" {
// CHECK-NEXT:       dlc.push_scalar %i : !slc.stream<index>
// CHECK-NEXT:       dlc.push_store %base[%b * %c1] bytes 16 stream : index, !slc.stream<index>, index
// CHECK-NEXT:       dlc.push_token 0
// CHECK-NEXT:       dlc.push_token 1 plus %i : !slc.stream<index>
// CHECK-NEXT:       dlc.fetch "vector0" %base[%b * %c1] bytes 16 : index, !slc.stream<index>, index
// CHECK:      dlc.execute {
// CHECK-NEXT:   dlc.callback 0 {
// CHECK-NEXT:     %n = dlc.pop_scalar : index
// CHECK-NEXT:     %x = dlc.pop "vector0" : vector<4xf32>
// CHECK-NEXT:     %y = dlc.divide_count %x, %n : vector<4xf32> -> vector<4xf32>
// CHECK-NEXT:     dlc.push %y : vector<4xf32>
// CHECK:      %k = dlc.scalar : f32
// CHECK-NEXT: dlc.callback 1 {
// CHECK-NEXT:   %v = dlc.pop_scalar : f32
// CHECK-NEXT:   dlc.keep %k, %v
// CHECK-NEXT:   dlc.push %v : f32
// CHECK-NEXT:   %m = dlc.pop_scalar : i32
