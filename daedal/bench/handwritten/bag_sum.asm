; Embedding bag, sum: out[b] = sum of table[indices[p]] over offsets[b] <= p < offsets[b + 1], 64 columns.
;
; arg0  bags                     arg4  table, rows of 256 bytes
; arg1  offsets, int32           arg5  out, rows of 256 bytes
; arg2  indices, int32           arg6  rows of the table
; arg3  end of the indices       arg7  indices + 1          arg8  end of the offsets
;
; Lines: 16 for each row, 1/4 for each index, 1/4 for each offset, 16 for each bag. One addition of 16 beats for each
; row: memory bounds it. A store rotates the registers, so that the next bag begins while this one's last sum is on its
; way. Share of one line per cycle: 0.97.
length 0 elements = 64
callback 0 start = 0
instruction 0 code op=add a.kind=queue c=0 destination=0 last=1
callback 1 start = 1
instruction 1 code op=store a.number=0 clear=1 rotate=1 last=1

level 0 control enable=1 induction=r0                   ; a bag
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
level 1 control enable=1 lower=r1 upper=r2              ; a row of it
level 1 step = 1
level 1 load0 enable=1 size=2 is_signed=1 destination=r3
level 1 load0_base = arg2
level 1 load0_limit = arg3
level 1 check enable=1 load=0 kind=index
level 1 check_limit = arg6
event 5 control first=0 count=1                         ; level 1, iteration
step 0 control token_enable=1 fetch_enable=1 fetch_index=r3
step 0 token = 0
step 0 fetch_base = arg4
step 0 fetch_pitch = 256
step 0 fetch_size = 256
event 6 control first=1 count=1                         ; level 1, end
step 1 control token_enable=1 store_enable=1 store_index=r0
step 1 token = 1
step 1 store_base = arg5
step 1 store_pitch = 256
step 1 store_size = 256
control 0 run = 0
