; Gather of blocks: out[p] = table[blocks[p]], a block being 16 rows of 64 elements, 4096 bytes. Block-sparse attention
; brings its keys and values together so.
;
; arg0  blocks to gather         arg3  table, blocks of 4096 bytes
; arg1  blocks, int32            arg4  out, blocks of 4096 bytes
; arg2  end of the blocks        arg5  blocks of the table
;
; Lines: 512 for each block, half of them written. A store stream: the execute unit has nothing to do, memory bounds it.
; Share of one line per cycle: 0.98.
level 0 control enable=1 induction=r0
level 0 lower = 0
level 0 upper = arg0
level 0 step = 1
level 0 load0 enable=1 size=2 is_signed=1 destination=r1
level 0 load0_base = arg1
level 0 load0_limit = arg2
level 0 check enable=1 load=0 kind=index
level 0 check_limit = arg5
event 1 control first=0 count=1
step 0 control store_enable=1 stream=1 store_index=r0 fetch_enable=1 queue=store fetch_index=r1
step 0 store_base = arg4
step 0 store_pitch = 4096
step 0 store_size = 4096
step 0 fetch_base = arg3
step 0 fetch_pitch = 4096
step 0 fetch_size = 4096
control 0 run = 0
