; Scores of block-sparse attention: the sum of keys[e] * queries[i], in the order of the machine's reductions, for the
; keys pointers[i] <= e < pointers[i + 1] of its blocks, which gather_blocks has put one behind the other; products are
; rounded.
;
; arg0  queries                  arg5  out, 4 bytes for each key
; arg1  pointers, int32          arg7  keys + 1             arg8  end of the pointers
; arg4  keys, rows of 256 bytes  arg9  queries, rows of 256 bytes
;
; Lines: 16 for each key, 1/4 written; 16 for each query. A reduction of 16 beats and a tree of 5 for each key: 21
; cycles in the lanes bound it. Scalars rotate, so that trees go on side by side; a query has a register of its own, so
; that the next one's row is there while reductions of the last one go on. Share of the lanes: 0.96.
length 0 elements = 64
callback 0 start = 0                                    ; a row that is multiplied with many
instruction 0 code op=move a.kind=queue destination=0 rotate=1 last=1
callback 1 start = 1                                    ; one of the keys
instruction 1 code op=mul_add mode=reduce a.kind=queue b.number=1 c=7 destination=0
instruction 2 code op=store mode=scalar a.kind=scalar_register a.number=0 rotate_scalars=1 last=1

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
event 1 control first=0 count=1                         ; level 0, iteration: the query
step 0 control fetch_enable=1 fetch_index=r0 token_enable=1
step 0 token = 0
step 0 fetch_base = arg9
step 0 fetch_pitch = 256
step 0 fetch_size = 256
event 5 control first=1 count=1                         ; level 1, iteration: a key
step 1 control fetch_enable=1 fetch_index=r3 token_enable=1 store_enable=1 store_index=r3
step 1 token = 1
step 1 store_base = arg5
step 1 store_pitch = 4
step 1 store_size = 4
step 1 fetch_base = arg4
step 1 fetch_pitch = 256
step 1 fetch_size = 256
control 0 run = 0
