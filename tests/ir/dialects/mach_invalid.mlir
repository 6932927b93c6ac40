// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

mach.callback 0 {
  %x = mach.pop "store" : !mach.pop
  %y = mach.vector "move" a %x : !mach.pop length 0 -> !mach.vector<v0>
}
// CHECK: queue must be one of vector0, vector1, scalar, not 'store'
// -----
mach.callback 0 {
  %x = mach.pop "scalar" keep : !mach.pop
  %y = mach.scalar "move" a %x : !mach.pop -> !mach.scalar<s0>
}
// CHECK: only rows can be kept, not what the scalar queue has
// -----
mach.callback 0 {
  %x = mach.kept 8 : !mach.pop
  %y = mach.vector "move" a %x : !mach.pop length 0 -> !mach.vector<v0>
}
// CHECK: beyond must be from 0 to 7, not 8
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector
  mach.vector "store" a %x : !mach.vector length 0
}
// CHECK: the register must have a number
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v0>
}
// CHECK: a callback must have an instruction, NOP if there is nothing to do
// -----
mach.callback 0 {
  mach.push_token 0
  mach.vector "nop"
}
// CHECK: 'mach.push_token' expects parent op 'mach.step'
// -----
mach.callback 0 {
  mach.length 0 elements 4
  mach.vector "nop"
}
// CHECK: mach.length cannot stand in a callback
// -----
mach.callback 0 {
  mach.vector "nop"
  %x = mach.pop "vector0" : !mach.pop
}
// CHECK: %x must be popped by an instruction behind it
// -----
mach.callback 0 {
  %x = mach.pop "vector0" : !mach.pop
  mach.vector "nop"
  %y = mach.vector "move" a %x : !mach.pop length 0 -> !mach.vector<v0>
}
// CHECK: nop must pop what stands in front of it, once each, and nothing else
// -----
mach.callback 0 {
  %written = mach.register : !mach.vector<v0>
  %y = mach.vector "move" a %written : !mach.vector<v0> length 0 -> !mach.vector<v0>
  mach.vector "store" a %written : !mach.vector<v0> length 0
}
// CHECK: v0 must hold %written where store reads it
// -----
mach.callback 0 {
  %cleared = mach.register : !mach.vector<v0>
  mach.vector "store" a %cleared : !mach.vector<v0> length 0 clear
  mach.vector "store" a %cleared : !mach.vector<v0> length 0
}
// CHECK: v0 must hold %cleared where store reads it
// -----
mach.callback 0 {
  %partial = mach.register : !mach.vector<v0>
  %s = mach.reduce "add" a %partial : !mach.vector<v0> c %partial : !mach.vector<v0> length 0 -> !mach.scalar<s0>
  mach.vector "store" a %partial : !mach.vector<v0> length 0
}
// CHECK: v0 must hold %partial where store reads it
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v0>
  %count = mach.register : !mach.scalar<s0>
  mach.vector "store" a %x : !mach.vector<v0> length 0 rotate_scalars
  mach.vector "store" a %x : !mach.vector<v0> length 0
  mach.scalar "store" a %count : !mach.scalar<s0>
}
// CHECK: s0 must hold %count where store reads it
// -----
mach.callback 0 {
  %rotated = mach.register : !mach.vector<v0>
  mach.vector "store" a %rotated : !mach.vector<v0> length 0 rotate
  mach.vector "store" a %rotated : !mach.vector<v0> length 0
}
// CHECK: v0 must hold %rotated where store reads it
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v0>
  %y = mach.vector "divide" a %x : !mach.vector<v0> b %x : !mach.vector<v0> length 0 -> !mach.vector<v1>
}
// CHECK: operation must be one of nop, move, add, {{.*}}, not 'divide'
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v0>
  %y = mach.vector "fma" a %x : !mach.vector<v0> b %x : !mach.vector<v0> length 0 -> !mach.vector<v1>
}
// CHECK: the operands of fma must be a and b and c, not a and b
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v0>
  mach.vector "abs" a %x : !mach.vector<v0> length 0
}
// CHECK: abs must have a result
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v0>
  %y = mach.vector "store" a %x : !mach.vector<v0> length 0 -> !mach.vector<v1>
}
// CHECK: store must have no result
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v0>
  %y = mach.vector "abs" a %x : !mach.vector<v0> length 0 -> !mach.scalar<s1>
}
// CHECK: the result must be a mach.vector, not !mach.scalar<s1>
// -----
mach.callback 0 {
  %x = mach.register : !mach.scalar<s0>
  %y = mach.vector "add" a %x : !mach.scalar<s0> c %x : !mach.scalar<s0> length 0 -> !mach.vector<v1>
}
// CHECK: c must be a mach.vector, not !mach.scalar<s0>
// -----
mach.callback 0 {
  %x = mach.register : !mach.scalar<s0>
  %y = mach.scalar "abs" a %x : !mach.scalar<s0> length 0 -> !mach.scalar<s1>
}
// CHECK: an instruction on rows must have a length, and no other one
// -----
mach.callback 0 {
  %x = mach.pop "vector0" : !mach.pop
  mach.vector "store" a %x : !mach.pop length 0
}
// CHECK: a must be a register here, not a pop
// -----
mach.callback 0 {
  %x = mach.register : !mach.vector<v16>
  mach.vector "nop"
}
// CHECK: Invalid register name v16 for register type mach.vector.
// -----
mach.program config 7 arguments [] {
  mach.push_token 0
}
// CHECK: 'mach.push_token' expects parent op 'mach.step'
// -----
mach.program config 7 arguments [] {
  %c = mach.constant 0 : !mach.constant
}
// CHECK: mach.constant must not stand in a program: lengths, callbacks and nests do
// -----
mach.nest {
  mach.length 0 elements 4
}
// CHECK: mach.length must not stand here, only mach.constant, mach.level, {{.*}}, mach.event
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  %i = mach.load 0 slot 4 "sequential" %c[%b] until %c bytes 4 : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r1>
}
// CHECK: slot must be from 0 to 3, not 4
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  %i = mach.load 0 slot 0 "wild" %c[%b] until %c bytes 4 : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r1>
}
// CHECK: kind must be one of sequential, random, not 'wild'
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  %i = mach.load 0 slot 0 "random" %c[%b] until %c bytes 3 : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r1>
}
// CHECK: bytes must be 1, 2, 4 or 8, not 3
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  %d = mach.level 1 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r1>
  %i = mach.load 1 slot 0 "sequential" %c[%b] until %c bytes 4 : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r2>
}
// CHECK: the index of a sequential load must be the induction variable of its level
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  mach.check 0 "index" "fatal" %b below %c : !mach.stream<r0>, !mach.constant
}
// CHECK: the value must be that of a load of the same level
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  %i = mach.load 0 slot 0 "sequential" %c[%b] until %c bytes 4 : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r2>
  mach.check 0 "length" "fatal" %i below %c : !mach.stream<r2>, !mach.constant
}
// CHECK: kind must be one of index, offset, not 'length'
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %o = mach.alu 0 slot 0 "none" %c, %c : !mach.constant, !mach.constant -> !mach.stream<none>
}
// CHECK: operation must be one of add, sub, {{.*}}, not 'none'
// -----
mach.event 0 "never" {
  mach.step {
    mach.push_token 0
  }
}
// CHECK: event must be one of begin, iteration, end, not 'never'
// -----
mach.event 0 "end" {
  mach.length 0 elements 4
}
// CHECK: mach.length must not stand here, only mach.step
// -----
mach.event 0 "end" {
  mach.step {
    mach.push_token 0
    mach.push_token 1
  }
}
// CHECK: a step must have one or more of mach.push_scalar, mach.push_store, mach.push_token, mach.fetch, each once and in this order
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  mach.event 0 "end" {
    mach.step {
      mach.fetch "vector7" %c[%c * %c] bytes 16 : !mach.constant, !mach.constant, !mach.constant
    }
  }
}
// CHECK: queue must be one of vector0, vector1, store, not 'vector7'
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<none>
  mach.event 0 "end" {
    mach.step {
      mach.push_scalar %b : !mach.stream<none>
    }
  }
}
// CHECK: %b must have a register, as it is read
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  %i = mach.load 0 slot 0 "sequential" %c[%b] until %c bytes 4 : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r0>
  mach.event 0 "iteration" {
    mach.step {
      mach.push_scalar %b : !mach.stream<r0>
    }
  }
}
// CHECK: r0 must hold %b up to its last read, not %i
// -----
mach.nest {
  %c = mach.constant 0 : !mach.constant
  %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
  mach.event 0 "end" {
    mach.step {
      mach.push_token 2 plus %b : !mach.stream<r0>
    }
  }
}
// CHECK: a token with an offset must be 0, not 2
