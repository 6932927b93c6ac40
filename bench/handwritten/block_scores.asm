; Scores of block-sparse attention, first part: sums of keys[e] * queries[i] by element mod 16 for the keys
; pointers[i] <= e < pointers[i + 1] of its blocks, which gather_blocks has put one behind the other; products are
; rounded. tree_lines and tree_elements make scores of them, in the order of the machine's own reductions.
;
; arg0  queries                  arg5  out, rows of 64 bytes, one for each key
; arg1  pointers, int32          arg7  keys + 1             arg8  end of the pointers
; arg4  keys, rows of 256 bytes  arg9  queries, rows of 256 bytes
;
; Lines: 16 for each key, 4 written; 16 for each query. Pieces of 16 elements add up in the partial results
; that a reduction would have, without waiting for its tree: 19 cycles in the lanes. Memory bounds it. Share of one
; line per cycle, partial results included: 0.98.
length 0 elements = 16
callback 0 start = 0                                    ; a row that is multiplied with many, in four registers
instruction 0 code op=move a.kind=queue destination=4
instruction 1 code op=move a.kind=queue destination=5
instruction 2 code op=move a.kind=queue destination=6
instruction 3 code op=move a.kind=queue destination=7 last=1
callback 1 start = 4                                    ; one of the keys
instruction 4 code op=multiply a.kind=queue b.number=4 destination=0
instruction 5 code op=mul_add a.kind=queue b.number=5 c=0 destination=0
instruction 6 code op=mul_add a.kind=queue b.number=6 c=0 destination=0
instruction 7 code op=mul_add a.kind=queue b.number=7 c=0 destination=0
instruction 8 code op=store a.number=0 rotate=1 last=1

level 0 control enable=1 induction=r0                   ; a query
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
level 1 control enable=1 induction=r3 lower=r1 upper=r2              ; a key of its blocks
level 1 step = 1
event 1 control first=0 count=4                         ; level 0, iteration: the query
step 0 control fetch_enable=1 fetch_index=r0 token_enable=1
step 0 token = 0
step 0 fetch_base = arg9
step 0 fetch_pitch = 256
step 0 fetch_size = 64
step 1 control fetch_enable=1 fetch_index=r0
step 1 fetch_base = arg9 + 64
step 1 fetch_pitch = 256
step 1 fetch_size = 64
step 2 control fetch_enable=1 fetch_index=r0
step 2 fetch_base = arg9 + 128
step 2 fetch_pitch = 256
step 2 fetch_size = 64
step 3 control fetch_enable=1 fetch_index=r0
step 3 fetch_base = arg9 + 192
step 3 fetch_pitch = 256
step 3 fetch_size = 64
event 5 control first=4 count=4                         ; level 1, iteration: a key
step 4 control fetch_enable=1 fetch_index=r3 token_enable=1 store_enable=1 store_index=r3
step 4 token = 1
step 4 store_base = arg5
step 4 store_pitch = 64
step 4 store_size = 64
step 4 fetch_base = arg4
step 4 fetch_pitch = 256
step 4 fetch_size = 64
step 5 control fetch_enable=1 fetch_index=r3
step 5 fetch_base = arg4 + 64
step 5 fetch_pitch = 256
step 5 fetch_size = 64
step 6 control fetch_enable=1 fetch_index=r3
step 6 fetch_base = arg4 + 128
step 6 fetch_pitch = 256
step 6 fetch_size = 64
step 7 control fetch_enable=1 fetch_index=r3
step 7 fetch_base = arg4 + 192
step 7 fetch_pitch = 256
step 7 fetch_size = 64
control 0 run = 0
