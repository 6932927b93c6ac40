; DistMult, first part: sums of (head * relation) * tail by element mod 16, for each triple; products are rounded.
; tree_lines and tree_elements make scores of them, in the order of the machine's own reductions.
;
; arg0  triples                  arg4  entities, rows of 256 bytes
; arg1  heads, int32             arg5  relations' rows of 256 bytes
; arg2  relations, int32         arg6  out, rows of 64 bytes
; arg3  tails, int32             arg7  entities              arg8  relations that there are
; arg9  end of the heads         arg10 end of the relations' numbers
;
; Lines: 48 3/4 for each triple, 4 written. Pieces of 16 elements add up in the partial results that a reduction would
; have, without waiting for its tree: 35 cycles in the lanes. Memory bounds it. A triple is an activation of the
; level with contexts: so triples that follow one another have registers of their own. Share of one line per cycle,
; partial results included: 0.98.
length 0 elements = 16
callback 0 start = 0
instruction 0 code op=multiply a.kind=queue b.kind=queue b.number=1 destination=0
instruction 1 code op=multiply a.kind=queue b.kind=queue b.number=1 destination=1
instruction 2 code op=multiply a.kind=queue b.kind=queue b.number=1 destination=2
instruction 3 code op=multiply a.kind=queue b.kind=queue b.number=1 destination=3
instruction 4 code op=multiply a.kind=queue b.number=0 destination=4
instruction 5 code op=mul_add a.kind=queue b.number=1 c=4 destination=4
instruction 6 code op=mul_add a.kind=queue b.number=2 c=4 destination=4
instruction 7 code op=mul_add a.kind=queue b.number=3 c=4 destination=4
instruction 8 code op=store a.number=4 last=1

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
level 1 control enable=1                                ; its tail: a level has one check
level 1 lower = 0
level 1 upper = 1
level 1 step = 1
level 1 load2 enable=1 size=2 is_signed=1 index=r0 destination=r2
level 1 load2_base = arg3
level 1 load2_limit = 0
level 1 check enable=1 load=2 kind=index
level 1 check_limit = arg7
level 2 control enable=1 lower=r0 upper=r3 interleave=1 ; its relation
level 2 step = 1
level 2 load0 enable=1 size=2 is_signed=1 destination=r4
level 2 load0_base = arg2
level 2 load0_limit = arg10
level 2 check enable=1 load=0 kind=index
level 2 check_limit = arg8
event 9 control first=0 count=12                        ; level 2, iteration: pieces of 16 elements
step 0 control fetch_enable=1 fetch_index=r1 token_enable=1 store_enable=1 store_index=r0
step 0 token = 0
step 0 store_base = arg6
step 0 store_pitch = 64
step 0 store_size = 64
step 0 fetch_base = arg4
step 0 fetch_pitch = 256
step 0 fetch_size = 64
step 1 control fetch_enable=1 fetch_index=r4 queue=vector1
step 1 fetch_base = arg5
step 1 fetch_pitch = 256
step 1 fetch_size = 64
step 2 control fetch_enable=1 fetch_index=r1
step 2 fetch_base = arg4 + 64
step 2 fetch_pitch = 256
step 2 fetch_size = 64
step 3 control fetch_enable=1 fetch_index=r4 queue=vector1
step 3 fetch_base = arg5 + 64
step 3 fetch_pitch = 256
step 3 fetch_size = 64
step 4 control fetch_enable=1 fetch_index=r1
step 4 fetch_base = arg4 + 128
step 4 fetch_pitch = 256
step 4 fetch_size = 64
step 5 control fetch_enable=1 fetch_index=r4 queue=vector1
step 5 fetch_base = arg5 + 128
step 5 fetch_pitch = 256
step 5 fetch_size = 64
step 6 control fetch_enable=1 fetch_index=r1
step 6 fetch_base = arg4 + 192
step 6 fetch_pitch = 256
step 6 fetch_size = 64
step 7 control fetch_enable=1 fetch_index=r4 queue=vector1
step 7 fetch_base = arg5 + 192
step 7 fetch_pitch = 256
step 7 fetch_size = 64
step 8 control fetch_enable=1 fetch_index=r2
step 8 fetch_base = arg4
step 8 fetch_pitch = 256
step 8 fetch_size = 64
step 9 control fetch_enable=1 fetch_index=r2
step 9 fetch_base = arg4 + 64
step 9 fetch_pitch = 256
step 9 fetch_size = 64
step 10 control fetch_enable=1 fetch_index=r2
step 10 fetch_base = arg4 + 128
step 10 fetch_pitch = 256
step 10 fetch_size = 64
step 11 control fetch_enable=1 fetch_index=r2
step 11 fetch_base = arg4 + 192
step 11 fetch_pitch = 256
step 11 fetch_size = 64
control 0 run = 0
