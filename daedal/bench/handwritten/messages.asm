; Message passing: out[v] = sum of dot(x[columns[e]], y[v]) * x[columns[e]], pointers[v] <= e < pointers[v + 1]; dot
; products in the order of the machine's reductions, all products rounded.
;
; arg0  rows of out and y        arg4  x, rows of 256 bytes
; arg1  pointers, int32          arg5  out, rows of 256 bytes
; arg2  columns, int32           arg6  rows of x
; arg3  end of the columns       arg7  columns + 1          arg8  end of the pointers
; arg9  y, rows of 256 bytes
;
; Lines: 16 1/4 for each row of x; 16 for each row of y, 16 written. In the lanes a row of x takes 16 beats in the
; reduction, 5 in its tree and 16 when it is weighed: 37 bound it. Each row is kept when it is popped and weighed four
; rows later, when its reduction has ended; what is left of a node is weighed at its end. Share of the lanes: 0.92.
length 0 elements = 64
callback 0 start = 0                                    ; a row of y
instruction 0 code op=move a.kind=queue destination=0 last=1
callback 1 start = 1                                    ; a row of x: keep (2) it and weigh that of 4 before, if (8 + 4)
instruction 1 code op=mul_add mode=reduce a.kind=queue a.number=2 b.number=0 c=7 destination=0
instruction 2 code op=mul_add a.kind=queue a.number=12 b.kind=scalar_register b.number=4 c=1 destination=1 rotate_scalars=1 last=1
callback 2 start = 3                                    ; the last ones of a node
instruction 3 code op=mul_add a.kind=queue a.number=11 b.kind=scalar_register b.number=4 c=1 destination=1
instruction 4 code op=mul_add a.kind=queue a.number=10 b.kind=scalar_register b.number=3 c=1 destination=1
instruction 5 code op=mul_add a.kind=queue a.number=9 b.kind=scalar_register b.number=2 c=1 destination=1
instruction 6 code op=mul_add a.kind=queue a.number=8 b.kind=scalar_register b.number=1 c=1 destination=1
instruction 7 code op=store a.number=1 clear=1 last=1

level 0 control enable=1 induction=r0                   ; a row of y and of out
level 0 lower = 0
level 0 upper = arg0
level 0 step = 1
level 0 load0 enable=1 size=2 is_signed=1 destination=r1
level 0 load0_base = arg1
level 0 load0_limit = arg8
level 0 load1 enable=1 size=2 is_signed=1 destination=r2
level 0 load1_base = arg1 + 4
level 0 load1_limit = arg8
level 0 check enable=1 load=1 kind=offset
level 0 check_limit = arg7
level 1 control enable=1 lower=r1 upper=r2              ; a row of x for it
level 1 step = 1
level 1 load0 enable=1 size=2 is_signed=1 destination=r3
level 1 load0_base = arg2
level 1 load0_limit = arg3
level 1 check enable=1 load=0 kind=index
level 1 check_limit = arg6
event 1 control first=0 count=1                         ; level 0, iteration: the row of y
step 0 control fetch_enable=1 fetch_index=r0 token_enable=1
step 0 token = 0
step 0 fetch_base = arg9
step 0 fetch_pitch = 256
step 0 fetch_size = 256
event 5 control first=1 count=1                         ; level 1, iteration: a row of x
step 1 control fetch_enable=1 fetch_index=r3 token_enable=1
step 1 token = 1
step 1 fetch_base = arg4
step 1 fetch_pitch = 256
step 1 fetch_size = 256
event 6 control first=2 count=1                         ; level 1, end: the row of out
step 2 control store_enable=1 store_index=r0 token_enable=1
step 2 token = 2
step 2 store_base = arg5
step 2 store_pitch = 256
step 2 store_size = 256
control 0 run = 0
