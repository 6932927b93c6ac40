; Two levels of a reduction's tree: of each row of 16 partial results, the sums of i and i + 8, then of i and i + 4.
;
; arg0  rows + 16     arg1  partial results, rows of 64 bytes, 16 rows behind them mean nothing
; arg2  out, rows of 16 bytes, of which the first 16 mean nothing
;
; Lines: 4 for each row, 1 written. Four pops, an addition and a store: 6 cycles of the execute unit for each row
; bound it. Eight rows are summed in turn, each in a context of its own. The last sum of a row is made when its context
; has begun with the next row, and stored with the one after that: results are there when they are needed. (Registers
; that are operand a are watched whatever their context: so none is written by the callback before.)
; Share of these 6 cycles: 0.94; of one line per cycle: 0.79.
length 0 elements = 4
callback 0 start = 0
instruction 0 code op=move a.kind=queue destination=3 last=1
callback 1 start = 1                                    ; and what the row before in this context still needs
instruction 1 code op=store a.number=2
instruction 2 code op=add a.number=0 c=1 destination=2
instruction 3 code op=move a.kind=queue destination=4 last=1
callback 2 start = 4
instruction 4 code op=add a.kind=queue c=3 destination=0 last=1
callback 3 start = 5
instruction 5 code op=add a.kind=queue c=4 destination=1 last=1

level 0 control enable=1 induction=r0                   ; a row
level 0 lower = 0
level 0 upper = arg0
level 0 step = 1
level 0 alu0 op=mul a=r0 destination=r3                 ; its address
level 0 alu0_b = 64
level 0 alu1 op=add a=r3 destination=r3
level 0 alu1_b = arg1
level 2 control enable=1 induction=r1 interleave=1      ; a quarter of it
level 2 lower = 0
level 2 upper = 4
level 2 step = 1
event 1 control first=0 count=1                         ; level 0, iteration: where the sum two rows before goes
step 0 control store_enable=1 store_index=r0
step 0 store_base = arg2
step 0 store_pitch = 16
step 0 store_size = 16
event 9 control first=1 count=1                         ; level 2, iteration
step 1 control token_enable=1 token=r1 fetch_enable=1 fetch_base=r3 fetch_index=r1
step 1 fetch_pitch = 16
step 1 fetch_size = 16
control 0 run = 0
