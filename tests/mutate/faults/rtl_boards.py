"""Faults of what stands between a board's serial line and its bus."""

from tests.mutate.fault import area

LINK = "fpga/soc/host_link.py"

LINES = "tests/driver/link/test_link_rtl.py"
PORTS = "tests/unit/fpga/test_memory_ports.py"
RESETS = "tests/unit/fpga/test_resets.py"
PATCHES, APPLY = "fpga/litedram_patches", "fpga/litedram_patches/apply.py"
BANKS, CROSSBAR, LATE, REFRESHES, CHOICES, APPLIED = (
    f"tests/unit/fpga/litedram_patches/test_{name}.py"
    for name in ("bank_machines", "crossbar", "late_phy", "refresh", "command_choice", "apply")
)
PORT = "fpga/soc/memory_ports.py"
MACHINES, JOINS = "fpga/litedram_patches/bank_machines.py", "fpga/litedram_patches/crossbar.py"
CHOICE = "fpga/litedram_patches/command_choice.py"

plant = area("rtl_boards", LINES)

FAULTS = [
    plant("frame-overwritten", "missing check", LINK, "free.eq(~self.pending[slot])", "free.eq(1)",
          "a bridge can change a frame that waits"),
    plant("crc-not-looked-at", "missing check", LINK,
          "If((store.read_word == crc.value) & (head[16:32] == following)", "If((head[16:32] == following)",
          "frames with a wrong checksum are done"),
    plant("done-twice", "missing check", LINK, "(store.read_word == crc.value) & (head[16:32] == following)",
          "(store.read_word == crc.value)", "a frame that was sent again is done again"),
    plant("all-first-bytes", "lost strobe", LINK, "If(first, self.bus.sel.eq(lanes_first))", "If(first)",
          "a frame's first word is written whole"),
    plant("all-last-bytes", "lost strobe", LINK, "If(left == 1, self.bus.sel.eq(lanes_last))", "If(left == 1)",
          "a frame's last word is written whole"),
    plant("longer-than-there-is", "missing check", LINK, "If(store.read_word[0:8] > MOST_DATA, NextState(\"REFUSE\"))",
          "If(0, NextState(\"REFUSE\"))", "frames that cannot be as long as they say are looked at"),
    plant("bridge-writes", "missing check", LINK,
          "store.write.eq(ours & (bridge.adr[:offset_bits] < SLOTS * SLOT_WORDS))",
          "store.write.eq(1)", "writes to any address change frames"),
    plant("address-not-summed", "missing term", LINK, "crc.word.eq(bridge.adr << 2), crc.take.eq(1)",
          "crc.word.eq(bridge.adr << 2), crc.take.eq(0)", "what was read where is not in the checksum of reads"),
    plant("answer-at-once", "missing check", LINK, "answer.eq(slave.stb & (slave.ack | slave.err))",
          "answer.eq(slave.stb & ~answer)", "the bus is not waited for"),
    plant("old-word", "wrong condition", LINK, "If(slave.stb, master.dat_r.eq(slave.dat_r))",
          "If(~slave.stb, master.dat_r.eq(slave.dat_r))", "reads give the word of another cycle"),
    plant("refresh-without-end", "lost strobe", "fpga/litedram_patches/refresh.py", "if a is not inner.cmd.ready]",
          "if a is not inner.cmd.ready and a is not inner.cmd.last]", "the memory stays with its first refresh",
          REFRESHES),
    plant("outside-before-its-turn", "missing check", PORT, "outside, all_written,", "outside, 1,",
          "a line outside of the memory is answered before those in front of it are written", PORTS),
    plant("reads-without-room", "off by one", PORT, "If(asked & ~taken, room.eq(room - 1), has_room.eq(room != 1))",
          "If(asked & ~taken, room.eq(room - 1), has_room.eq(room != 0))",
          "more lines are asked for than there is room for when they come", PORTS),
    plant("lines-without-room", "off by one", PORT,
          "has_space.eq(space != 1)", "has_space.eq(space != 0)",
          "more lines are sent to LiteDRAM than wait there for room", PORTS),
    plant("word-of-the-slot-before", "off by one", LINK, 'fsm.act(state, NextState(f"{state}_LATE"))',
          "fsm.act(state, NextState(following_state))", "a frame's words are read before they are there"),
    plant("data-of-no-write", "lost strobe", JOINS, "parts = [same, ~opposite, ~third]",
          "parts = [same, opposite, ~third]", "a part of what is written comes when nothing is, and not when it is",
          CROSSBAR),
    plant("tells-all-banks", "missing term", CHOICE, "valids[0][number] & (arbiter.grant == number) & takes",
          "valids[0][number] & takes", "a bank whose command was not chosen goes on as if it were", CHOICES),
    plant("opens-too-soon", "missing check", CHOICE, "takes & (~opens | may_open)", "takes",
          "a bank takes a row for open that was not opened yet", CHOICES),
    plant("row-never-opened", "missing check", MACHINES, "If(machine.fsm.ongoing(OPENS), hit.eq(1))",
          "If(machine.fsm.ongoing(OPENS), hit.eq(hit))", "a row that was opened for a command is closed again", BANKS),
    plant("row-of-the-command-before", "wrong condition", MACHINES, "If(buffer.sink.ready, hit.eq(row == coming))",
          "If(buffer.source.ready, hit.eq(row == coming))", "a bank that was empty does not compare the row", BANKS),
    plant("bank-let-go", "missing term", MACHINES, "(buffer.source.ready & ~ahead.source.valid)",
          "buffer.source.ready", "a bank with commands lets its port go", BANKS),
    plant("serves-while-refreshed", "missing term", MACHINES, "next_is(machine.fsm, SERVES) & ~refreshes",
          "next_is(machine.fsm, SERVES)", "a bank takes a command while it is to be refreshed", BANKS),
    plant("held-for-all", "missing term", JOINS, "lock & serving for port", "lock for port",
          "a bank with commands of one port keeps all others out of all banks", CROSSBAR),
    plant("two-banks-at-once", "missing check", JOINS, "& (~busy[port] | _late(crossbar, keep, 1))",
          "", "a port has commands in two banks, and its lines come in any order", CROSSBAR),
    plant("reads-of-writers-only", "inverted", JOINS, 'if port.mode != "write":', 'if port.mode == "both":',
          "ports that only read get no lines", CROSSBAR),
    plant("banks-of-the-neighbour", "off by one", "hw/memory/address_map.py", "range(port, config.banks, config.ports)",
          "range(port ^ 1, config.banks, config.ports)", "a port's commands are looked for at the banks of another one",
          "tests/unit/isa/test_mapping.py"),
    plant("choice-while-held", "missing term", JOINS, "choice.ce.eq(~bank.valid & ~bank.lock)",
          "choice.ce.eq(~bank.valid)", "a bank chooses another port while it has commands of the last", CROSSBAR),
    plant("lines-too-early", "off by one", JOINS, "for _ in range(cycles):", "for _ in range(cycles - 1):",
          "ports are told of lines a cycle before they are there", CROSSBAR),
    plant("written-too-late", "off by one", JOINS, "crossbar.write_latency - 1 - first", "crossbar.write_latency - 1",
          "what is written is asked for a cycle after it was due", CROSSBAR),
    plant("late-and-not-known", "off by one", "fpga/litedram_patches/late_phy.py", "self.settings.read_latency += 1",
          "self.settings.read_latency += 0", "LiteDRAM takes lines a cycle before they come", LATE),
    plant("patched-unasked", "missing check", APPLY, "if BANK_MACHINES in patches else []", "",
          "LiteDRAM's bank machines are changed on every board", APPLIED),
    plant("patch-without-its-base", "missing check", APPLY, "if needed not in patches:", "if False:",
          "a patch is put in without the one that it builds on", APPLIED),
    plant("grade-of-another-system", "missing term", "fpga/flow/bitstream.py", "design = generate(found, config,",
          "design = generate(board, config,", "in another grade the system is that of the board's own",
          "tests/unit/fpga/test_bitstream.py"),
    plant("copy-keeps-its-net", "missing term", "fpga/soc/global_resets.py", "connections[pin] = [bit]", "pass",
          "logic stays at the reset's first flip-flop", RESETS),
    plant("grade-is-a-part", "missing term", "fpga/flow/bitstream.py", "replace(board, **board.grades[grade])",
          'replace(board, part=board.grades[grade]["part"])', "in another grade it is placed as in the board's own",
          "tests/unit/fpga/test_bitstream.py"),
    plant("half-of-a-frame-s-crc", "missing term", LINK, "(store.read_word == crc.value)",
          "(store.read_word[:16] == crc.value[:16])", "16 of 32 bits of a frame's checksum are compared"),
]  # fmt: skip
