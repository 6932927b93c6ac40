; DistMult: the sum of (head * relation) * tail for each triple, in the order of the machine's reductions; products are
; rounded.
;
; arg0  triples                  arg4  entities, rows of 256 bytes
; arg1  heads, int32             arg5  relations' rows of 256 bytes
; arg2  relations, int32         arg6  out, 4 bytes for each
; arg3  tails, int32             arg7  entities              arg8  relations that there are
; arg9  end of the heads         arg10 end of the relations' numbers
; arg11 end of the tails
;
; Lines: 48 3/4 for each triple, 1/4 written. A product and a reduction of 16 beats each and a tree of 5: 37 cycles in
; the lanes. Scalars rotate, so that a tree goes on while later triples are multiplied. Memory bounds it. Share of one
; line per cycle: 0.98.
length 0 elements = 64
callback 0 start = 0
instruction 0 code op=multiply a.kind=queue b.kind=queue b.number=1 destination=0
instruction 1 code op=mul_add mode=reduce a.kind=queue b.number=0 b.kind=register a.number=0 c=7 destination=0
instruction 2 code op=store mode=scalar a.kind=scalar_register a.number=0 rotate_scalars=1 last=1

level 0 control enable=1 induction=r0                   ; a triple
level 0 lower = 0
level 0 upper = arg0
level 0 step = 1
level 0 load0 enable=1 size=2 is_signed=1 destination=r1
level 0 load0_base = arg1
level 0 load0_limit = arg9
level 0 check enable=1 load=0 kind=index
level 0 check_limit = arg7
level 0 alu0 op=add a=r0 destination=r3
level 0 alu0_b = 1
level 1 control enable=1 lower=r0 upper=r3              ; its relation: a level has one check
level 1 step = 1
level 1 load0 enable=1 size=2 is_signed=1 destination=r4
level 1 load0_base = arg2
level 1 load0_limit = arg10
level 1 check enable=1 load=0 kind=index
level 1 check_limit = arg8
level 2 control enable=1 lower=r0 upper=r3              ; its tail
level 2 step = 1
level 2 load0 enable=1 size=2 is_signed=1 destination=r2
level 2 load0_base = arg3
level 2 load0_limit = arg11
level 2 check enable=1 load=0 kind=index
level 2 check_limit = arg7
event 9 control first=0 count=3                         ; level 2, iteration
step 0 control fetch_enable=1 fetch_index=r1 token_enable=1 store_enable=1 store_index=r0
step 0 token = 0
step 0 store_base = arg6
step 0 store_pitch = 4
step 0 store_size = 4
step 0 fetch_base = arg4
step 0 fetch_pitch = 256
step 0 fetch_size = 256
step 1 control fetch_enable=1 fetch_index=r4 queue=vector1
step 1 fetch_base = arg5
step 1 fetch_pitch = 256
step 1 fetch_size = 256
step 2 control fetch_enable=1 fetch_index=r2
step 2 fetch_base = arg4
step 2 fetch_pitch = 256
step 2 fetch_size = 256
control 0 run = 0
