// RUN: daedal-opt %s -p allocate-stream-registers{registers=3} | filecheck %s
// RUN: daedal-opt %s -p allocate-stream-registers{registers=3},allocate-stream-registers{registers=3} | filecheck %s

// A register is free again behind the last read of what it holds: %p takes that of %first, which only its bounds
// read, but not that of %b, which an event reads, at the very end. What nothing reads has none.
mach.program config 7 arguments [] {
  mach.nest {
    %c = mach.constant 0 : !mach.constant
    %b = mach.level 0 from %c to %c step %c : !mach.constant, !mach.constant, !mach.constant -> !mach.stream
    %first = mach.load 0 slot 0 "sequential" %c[%b] until %c bytes 4 : !mach.constant, !mach.stream, !mach.constant -> !mach.stream
    %last = mach.load 0 slot 1 "random" %first[%b] until %c bytes 4 : !mach.stream, !mach.stream, !mach.constant -> !mach.stream
    %p = mach.level 1 from %first to %last step %c : !mach.stream, !mach.stream, !mach.constant -> !mach.stream
    %i = mach.load 1 slot 0 "sequential" %c[%p] until %c bytes 4 : !mach.constant, !mach.stream, !mach.constant -> !mach.stream
    %odd = mach.alu 1 slot 0 "and" %p, %i : !mach.stream, !mach.stream -> !mach.stream
    %n = mach.count 1 when %odd : !mach.stream -> !mach.stream
    mach.event 1 "iteration" when %odd : !mach.stream {
      mach.step {
        mach.push_scalar %b : !mach.stream
      }
    }
  }
  mach.nest {
    %c_1 = mach.constant 0 : !mach.constant
    %r = mach.level 0 from %c_1 to %c_1 step %c_1 : !mach.constant, !mach.constant, !mach.constant -> !mach.stream
    mach.event 0 "iteration" {
      mach.step {
        mach.push_scalar %r : !mach.stream
      }
    }
  }
}

// CHECK:      %b = mach.level 0 {{.*}} -> !mach.stream<r0>
// CHECK-NEXT: %first = {{.*}} -> !mach.stream<r1>
// CHECK-NEXT: %last = {{.*}} : !mach.stream<r1>, !mach.stream<r0>, !mach.constant -> !mach.stream<r2>
// CHECK-NEXT: %p = mach.level 1 {{.*}} : !mach.stream<r1>, !mach.stream<r2>, !mach.constant -> !mach.stream<r1>
// CHECK-NEXT: %i = {{.*}} -> !mach.stream<r2>
// CHECK-NEXT: %odd = {{.*}} -> !mach.stream<r1>
// CHECK-NEXT: %n = {{.*}} -> !mach.stream<none>
// CHECK:      %r = mach.level 0 {{.*}} -> !mach.stream<r0>
