// RUN: daedal-opt %s | daedal-opt | filecheck %s

mach.program config 7 arguments ["size(out, 0)", "base(x)"] {
  mach.length 0 elements 20
  mach.length 1 elements 20 of "BFLOAT16_AWAY"
  mach.callback 0 {
    %x = mach.pop "vector0" : !mach.pop
    %y = mach.pop "vector1" keep : !mach.pop
    %partial = mach.register : !mach.vector<v7>
    %sum = mach.reduce "mul_add" a %x : !mach.pop b %y : !mach.pop c %partial : !mach.vector<v7> length 0 -> !mach.scalar<s0>
    %k = mach.register : !mach.scalar<s15>
    %scaled = mach.scalar "multiply" a %k : !mach.scalar<s15> b %sum : !mach.scalar<s0> -> !mach.scalar<s0>
    %row = mach.kept 3 : !mach.pop
    %total = mach.register : !mach.vector<v0>
    %more = mach.vector "fma" a %row : !mach.pop b %scaled : !mach.scalar<s0> c %total : !mach.vector<v0> length 0 -> !mach.vector<v0>
    mach.vector "store" a %more : !mach.vector<v0> length 0 clear rotate rotate_scalars
  }
  mach.callback 1 {
    %v = mach.pop "scalar" : !mach.pop
    %w = mach.scalar "move" a %v : !mach.pop -> !mach.scalar
    mach.vector "nop"
  }
  mach.nest {
    %c0 = mach.constant 0 : !mach.constant
    %size = mach.constant 0 plus argument 0 : !mach.constant
    %c1 = mach.constant 1 : !mach.constant
    %b = mach.level 1 from %c0 to %size step %c1 interleave : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
    %base = mach.constant 4 plus argument 1 : !mach.constant
    %i = mach.load 1 slot 0 "sequential" %base[%b] until %size bytes 8 signed : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r1>
    %j = mach.load 1 slot 2 "random" %i[%i] until %size bytes 4 : !mach.stream<r1>, !mach.stream<r1>, !mach.constant -> !mach.stream<r2>
    mach.check 1 "index" "fatal" %i below %size : !mach.stream<r1>, !mach.constant
    %o = mach.alu 1 slot 0 "mul" %j, %c1 : !mach.stream<r2>, !mach.constant -> !mach.stream<r3>
    %n = mach.count 1 when %o : !mach.stream<r3> -> !mach.stream
    %all = mach.count 1 -> !mach.stream<none>
    mach.event 1 "iteration" when %o : !mach.stream<r3> {
      mach.step {
        mach.push_scalar %i : !mach.stream<r1>
        mach.push_store %base[%b * %c1] bytes 16 stream : !mach.constant, !mach.stream<r0>, !mach.constant
        mach.push_token 0
        mach.fetch "vector0" %base[%b * %c1] bytes 16 : !mach.constant, !mach.stream<r0>, !mach.constant
      }
    }
    mach.event 1 "end" {
      mach.step {
        mach.push_token 1
      }
      mach.step {
        mach.push_token 0 plus %o : !mach.stream<r3>
      }
    }
  }
}

// CHECK:      mach.program config 7 arguments ["size(out, 0)", "base(x)"] {
// CHECK-NEXT:   mach.length 0 elements 20
// CHECK-NEXT:   mach.length 1 elements 20 of "BFLOAT16_AWAY"
// CHECK-NEXT:   mach.callback 0 {
// CHECK-NEXT:     %x = mach.pop "vector0" : !mach.pop
// CHECK-NEXT:     %y = mach.pop "vector1" keep : !mach.pop
// CHECK-NEXT:     %partial = mach.register : !mach.vector<v7>
// CHECK-NEXT:     %sum = mach.reduce "mul_add" a %x : !mach.pop b %y : !mach.pop c %partial : !mach.vector<v7> length 0 -> !mach.scalar<s0>
// CHECK-NEXT:     %k = mach.register : !mach.scalar<s15>
// CHECK-NEXT:     %scaled = mach.scalar "multiply" a %k : !mach.scalar<s15> b %sum : !mach.scalar<s0> -> !mach.scalar<s0>
// CHECK-NEXT:     %row = mach.kept 3 : !mach.pop
// CHECK-NEXT:     %total = mach.register : !mach.vector<v0>
// CHECK-NEXT:     %more = mach.vector "fma" a %row : !mach.pop b %scaled : !mach.scalar<s0> c %total : !mach.vector<v0> length 0 -> !mach.vector<v0>
// CHECK-NEXT:     mach.vector "store" a %more : !mach.vector<v0> length 0 clear rotate rotate_scalars
// CHECK-NEXT:   }
// CHECK-NEXT:   mach.callback 1 {
// CHECK-NEXT:     %v = mach.pop "scalar" : !mach.pop
// CHECK-NEXT:     %w = mach.scalar "move" a %v : !mach.pop -> !mach.scalar
// CHECK-NEXT:     mach.vector "nop"
// CHECK-NEXT:   }
// CHECK-NEXT:   mach.nest {
// CHECK-NEXT:     %c0 = mach.constant 0 : !mach.constant
// CHECK-NEXT:     %size = mach.constant 0 plus argument 0 : !mach.constant
// CHECK-NEXT:     %c1 = mach.constant 1 : !mach.constant
// CHECK-NEXT:     %b = mach.level 1 from %c0 to %size step %c1 interleave : !mach.constant, !mach.constant, !mach.constant -> !mach.stream<r0>
// CHECK-NEXT:     %base = mach.constant 4 plus argument 1 : !mach.constant
// CHECK-NEXT:     %i = mach.load 1 slot 0 "sequential" %base[%b] until %size bytes 8 signed : !mach.constant, !mach.stream<r0>, !mach.constant -> !mach.stream<r1>
// CHECK-NEXT:     %j = mach.load 1 slot 2 "random" %i[%i] until %size bytes 4 : !mach.stream<r1>, !mach.stream<r1>, !mach.constant -> !mach.stream<r2>
// CHECK-NEXT:     mach.check 1 "index" "fatal" %i below %size : !mach.stream<r1>, !mach.constant
// CHECK-NEXT:     %o = mach.alu 1 slot 0 "mul" %j, %c1 : !mach.stream<r2>, !mach.constant -> !mach.stream<r3>
// CHECK-NEXT:     %n = mach.count 1 when %o : !mach.stream<r3> -> !mach.stream
// CHECK-NEXT:     %all = mach.count 1 -> !mach.stream<none>
// CHECK-NEXT:     mach.event 1 "iteration" when %o : !mach.stream<r3> {
// CHECK-NEXT:       mach.step {
// CHECK-NEXT:         mach.push_scalar %i : !mach.stream<r1>
// CHECK-NEXT:         mach.push_store %base[%b * %c1] bytes 16 stream : !mach.constant, !mach.stream<r0>, !mach.constant
// CHECK-NEXT:         mach.push_token 0
// CHECK-NEXT:         mach.fetch "vector0" %base[%b * %c1] bytes 16 : !mach.constant, !mach.stream<r0>, !mach.constant
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     mach.event 1 "end" {
// CHECK-NEXT:       mach.step {
// CHECK-NEXT:         mach.push_token 1
// CHECK-NEXT:       }
// CHECK-NEXT:       mach.step {
// CHECK-NEXT:         mach.push_token 0 plus %o : !mach.stream<r3>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
