; The last two levels of a reduction's tree: of each row of 4 partial results, the sums of i and i + 2, then of both.
;
; arg0  rows     arg1  partial results, rows of 16 bytes     arg2  out, f32
; arg3  end of the partial results; the 16 bytes behind it are read as well
;
; Lines: 2 for each row, 1/4 written. Lanes cannot be crossed but by way of memory: so the partial results are scalars
; here. Four pops, an addition and a store: 6 cycles of the execute unit for each row bound it.
; Eight rows are summed in turn, each in a context of its own, so that results are there when they are needed.
length 0 elements = 1
callback 0 start = 0
instruction 0 code op=move a.kind=scalar destination=0 last=1
callback 1 start = 1
instruction 1 code op=move a.kind=scalar destination=1 last=1
callback 2 start = 2
instruction 2 code op=add a.kind=scalar c=0 destination=0 last=1
callback 3 start = 3
instruction 3 code op=add a.kind=scalar c=1 destination=1 last=1
callback 4 start = 4
instruction 4 code op=add a.number=1 c=0 destination=0
instruction 5 code op=store a.number=0 last=1

level 0 control enable=1 induction=r0                   ; a row
level 0 lower = 0
level 0 upper = arg0
level 0 step = 1
level 0 alu0 op=mul a=r0 destination=r3                 ; its address
level 0 alu0_b = 16
level 0 alu1 op=add a=r3 destination=r3
level 0 alu1_b = arg1
level 2 control enable=1 induction=r1 interleave=1      ; an element of it, and once more for the last sum
level 2 lower = 0
level 2 upper = 5
level 2 step = 1
level 2 alu0 op=less a=r1 destination=r2
level 2 alu0_b = 4
level 2 load0 enable=1 size=2 base=r3 destination=r4
level 2 load0_limit = arg3 + 16
event 9 control first=0 count=1 predicate=r2            ; level 2, iteration
step 0 control token_enable=1 token=r1 scalar_enable=1 scalar=r4
event 10 control first=1 count=1                        ; level 2, end
step 1 control token_enable=1 store_enable=1 store_index=r0
step 1 token = 4
step 1 store_base = arg2
step 1 store_pitch = 4
step 1 store_size = 4
control 0 run = 0
