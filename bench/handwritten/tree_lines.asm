; Two levels of a reduction's tree: of each row of 16 partial results, the sums of i and i + 8, then of i and i + 4.
;
; arg0  rows     arg1  partial results, rows of 64 bytes     arg2  out, rows of 16 bytes
;
; Lines: 4 for each row, 1 written. Four pops, an addition and a store: 6 cycles of the execute unit for each row bound it.
; Eight rows are summed in turn, each in a context of its own, so that results are there when they are needed.
length 0 elements = 4
callback 0 start = 0
instruction 0 code op=move a.kind=queue destination=0 last=1
callback 1 start = 1
instruction 1 code op=move a.kind=queue destination=1 last=1
callback 2 start = 2
instruction 2 code op=add a.kind=queue c=0 destination=0 last=1
callback 3 start = 3
instruction 3 code op=add a.kind=queue c=1 destination=1 last=1
callback 4 start = 4
instruction 4 code op=add a.number=1 c=0 destination=0
instruction 5 code op=store a.number=0 last=1

level 0 control enable=1 induction=r0                   ; a row
level 0 lower = 0
level 0 upper = arg0
level 0 step = 1
level 0 alu0 op=mul a=r0 destination=r3                 ; its address
level 0 alu0_b = 64
level 0 alu1 op=add a=r3 destination=r3
level 0 alu1_b = arg1
level 2 control enable=1 induction=r1 interleave=1      ; a quarter of it, and once more for the last sum
level 2 lower = 0
level 2 upper = 5
level 2 step = 1
level 2 alu0 op=less a=r1 destination=r2
level 2 alu0_b = 4
event 9 control first=0 count=1 predicate=r2            ; level 2, iteration
step 0 control token_enable=1 token=r1 fetch_enable=1 fetch_base=r3 fetch_index=r1
step 0 fetch_pitch = 16
step 0 fetch_size = 16
event 10 control first=1 count=1                        ; level 2, end
step 1 control token_enable=1 store_enable=1 store_index=r0
step 1 token = 4
step 1 store_base = arg2
step 1 store_pitch = 16
step 1 store_size = 16
control 0 run = 0
