; The last two levels of a reduction's tree: of each row of 4 partial results, the sums of i and i + 2, then of both.
;
; arg0  elements: 4 for each row, and for 16 rows more     arg1  partial results, 16 rows behind them mean nothing
; arg2  out, f32, of which the first 3 mean nothing        arg3  end of these rows
;
; Lines: 1 for each row, 1/4 written. Lanes cannot be crossed but by way of memory: so the partial results are scalars
; here, which one stream of loads brings. Four pops, an addition and a store, and a cycle's wait: 7 cycles of the execute
; unit for each row bound it. The sums of a row rotate through four registers, two for each row: the last sum is made
; two rows later, and stored with the row after that.
; Share of these 7 cycles: 0.96; of one line per cycle: 0.17.
length 0 elements = 1
callback 0 start = 0
instruction 0 code op=move a.kind=scalar destination=6 last=1
callback 1 start = 1
instruction 1 code op=move a.kind=scalar destination=7
instruction 2 code op=store a.number=5
instruction 3 code op=add a.number=0 c=3 destination=5 last=1
callback 2 start = 4
instruction 4 code op=add a.kind=scalar c=6 destination=0 rotate=1 last=1
callback 3 start = 5
instruction 5 code op=add a.kind=scalar c=7 destination=0 rotate=1 last=1

level 0 control enable=1 induction=r0                   ; an element
level 0 lower = 0
level 0 upper = arg0
level 0 step = 1
level 0 load0 enable=1 size=2 destination=r2
level 0 load0_base = arg1
level 0 load0_limit = arg3
level 0 alu0 op=and a=r0 destination=r1                 ; which one of its row
level 0 alu0_b = 3
level 1 control enable=1                                ; a place for conditions
level 1 lower = 0
level 1 upper = 1
level 1 step = 1
event 1 control first=0 count=1                         ; level 0, iteration
step 0 control scalar_enable=1 scalar=r2 token_enable=1 token=r1
event 5 control first=1 count=1 predicate=r1 sense=zero ; level 1, iteration: where the sum three rows before goes
step 1 control store_enable=1 store_index=r0
step 1 store_base = arg2
step 1 store_pitch = 1
step 1 store_size = 4
control 0 run = 0
