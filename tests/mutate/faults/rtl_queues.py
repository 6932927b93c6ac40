"""Faults of the queues."""

from tests.mutate.fault import SLOW, area

QUEUE, BLOCK, VECTOR = "hw/queues/fifo.py", "hw/queues/block_store.py", "hw/queues/reorder_buffer.py"
POINTERS = "hw/queues/ring_pointers.py"
CUTTER, PACKER, MERGE = "hw/queues/line_to_beats.py", "hw/queues/beats_to_line.py", "hw/queues/arbiter.py"
SKID = "hw/queues/skid_buffer.py"

SHALLOW = "tests/unit/queues/test_queue.py::test_queue[3]"
SMALLEST = "tests/unit/queues/test_queue.py::test_queue[2]"
DEEP = "tests/unit/queues/test_queue.py::test_queue[40]"
REORDER = "tests/unit/queues/test_vector_queues.py::test_vector_queues[odd]"
GROUPS = "tests/unit/memory/test_row_groups.py"
QUEUE_PROOF = "tests/formal/test_queue_proof.py"
PROOF = "tests/formal/test_vector_queues_proof.py"
CUT = "tests/unit/queues/test_converters.py::test_converter[cutter-8-1]"
PACK = "tests/unit/queues/test_converters.py::test_converter[packer-8-1]"
LAUNCHES = "tests/driver/test_launches.py::test_many_launches_give_what_each_gives_alone"
RECORDS = f"tests/unit/core/test_core.py::test_core[minimum-full-rate] {SLOW}"

plant = area("rtl_queues", SHALLOW, DEEP)

FAULTS = [
    plant("full-one-early", "off by one", QUEUE, "self.level != self._depth)", "self.level < self._depth - 1)",
          "a queue is full with one place left"),
    plant("full-never", "missing check", QUEUE, "self.i.ready.eq(self.level != self._depth)", "self.i.ready.eq(1)",
          "a full queue takes more"),
    plant("push-without-ready", "dropped ready", QUEUE, "push, pop = self.i.valid & self.i.ready,",
          "push, pop = self.i.valid,", "what is offered to a full queue is written"),
    plant("pop-without-ready", "dropped ready", QUEUE, "self.o.valid & self.o.ready\n", "self.o.valid\n",
          "the level falls although nothing was taken"),
    plant("mark-never-cleared", "sticky bit", QUEUE, "with m.If(self.clear | (self.level > self.mark)):",
          "with m.If(self.level > self.mark):", "the high-water mark is not cleared"),
    plant("mark-follows", "wrong condition", QUEUE, "self.level > self.mark", "self.level != self.mark",
          "the high-water mark is the level of the cycle before"),
    plant("wrap-one-early", "off by one", POINTERS, "Mux(pointer == self._depth - 1, 0,",
          "Mux(pointer == self._depth - 2, 0,", "pointers use one place less than there is",
          GROUPS),
    plant("pair-takes-anything", "missing check", QUEUE, "skid.i.valid.eq(self.write)", "skid.i.valid.eq(1)",
          "a queue of two takes what is not written", SMALLEST),
    plant("pair-gives-nothing", "swapped operands", QUEUE, "skid.i.payload.eq(self.payload)]", "skid.i.payload.eq(0)]",
          "the payload of a queue of two is lost", SMALLEST),
    plant("fetch-regardless", "missing check", QUEUE, "pointers.fetch.eq(pointers.available & move)",
          "pointers.fetch.eq(pointers.available)", "entries are fetched although the output is occupied"),
    plant("block-holds-nothing", "dropped ready", BLOCK, "move.eq(~self.o.valid | self.o.ready)", "move.eq(1)",
          "the output of a block RAM does not wait", DEEP),
    plant("block-no-second-register", "throughput", BLOCK, "read.en.eq(~fetched | move)", "read.en.eq(move)",
          "a block RAM's output is only used when the register after it moves", DEEP, QUEUE_PROOF),
    plant("queue-empty-too-soon", "missing term", VECTOR, "account.empty & ~fetched & out.empty)",
          "account.empty & ~fetched)", "a beat at a queue's output is not counted as held",
          REORDER, PROOF),
    plant("reserve-too-many", "off by one", VECTOR, "has_room(free, wish.beats)", "has_room(free + 1, wish.beats)",
          "one more slot is given than the common budget has", REORDER, PROOF),
    plant("budget-leaks", "lost strobe", VECTOR, "sum((queue.drained for queue in queues), Const(0, 1))",
          "sum((queue.drained for queue in queues[:2]), Const(0, 1))", "the store stream's beats are not given back",
          REORDER, PROOF),
    plant("slots-overlap", "off by one", VECTOR, "room = has_room(account.free, self.beats)",
          "room = has_room(account.free + 1, self.beats)", "a queue gives a slot twice", REORDER, PROOF),
    plant("before-the-sweep", "missing check", VECTOR, "ready &= swept", "pass",
          "slots are reserved before the marks were swept after reset", REORDER, PROOF),
    plant("any-client", "missing check", VECTOR,
          "return self.returns.valid & (self.returns.beat.client == self._client)",
          "return self.returns.valid", "a queue takes the beats of all clients", REORDER),
    plant("full-mark-of-this-round", "wrong comparison", VECTOR, "drain[-1] ^ before)", "drain[-1] ^ ~before)",
          "a beat is marked for another round than that in which it is drained", REORDER, PROOF),
    plant("round-of-the-next", "missing term", VECTOR, "drain[-1] ^ before)", "drain[-1])",
          "a beat that lies before the next one to drain is marked for the present round", PROOF, REORDER),
    plant("drains-unfilled", "missing check", VECTOR, "fetch.eq(self._is_full(m, drain, fetch) & moves)",
          "fetch.eq((self._is_full(m, drain, fetch) | ~account.empty) & moves)",
          "slots are drained before their beat is back", REORDER, PROOF),
    plant("third-while-written", "missing term", VECTOR, "(bit != third[-1]) | clash", "bit != third[-1]",
          "a beat that returns while its slot's bit is read is never seen", PROOF, REORDER),
    plant("third-comes-late", "missing term", VECTOR, "following.eq(is_third | coming[2])", "following.eq(is_third)",
          "a beat that returns while its slot becomes the second one is never seen", PROOF, REORDER),
    plant("reads-over-waiting", "missing check", VECTOR, "moves = ~fetched | out.i.ready", "moves = 1",
          "block RAM reads the next beat over one that waits", REORDER, PROOF),
    plant("occupied-inverted", "inverted", VECTOR, "self.occupied.eq(~Cat(", "self.occupied.eq(Cat(",
          "the queues say occupied when they are empty", REORDER),
    plant("cutter-bytes", "off by one", CUTTER, "Mux(final, before[:within] + 1, self._size)",
          "Mux(final, before[:within], self._size)", "the last piece of a line has a byte too few",
          CUT),
    plant("cutter-last-early", "missing term", CUTTER, "piece.last.eq(final & line.last)", "piece.last.eq(line.last)",
          "every piece of a row's last line is its last", CUT),
    plant("cutter-place-stays", "lost strobe", CUTTER, "place.eq(Mux(final, 0, place + 1))", "place.eq(place + 1)",
          "a line after a short one is read from its middle", CUT),
    plant("cutter-pops-early", "dropped term", CUTTER, "self.i.ready.eq(self.o.ready & final)",
          "self.i.ready.eq(self.o.ready)", "a line is popped with its first piece",
          CUT),
    plant("packer-never-flushes", "missing term", PACKER, "complete = piece.last | (place == self._pieces - 1)",
          "complete = place == self._pieces - 1", "a line that is not full is not given on at a row's end",
          PACK),
    plant("packer-bytes", "swapped operands", PACKER, "place * self._size + piece.bytes", "place + piece.bytes",
          "a line has too few valid bytes", PACK),
    plant("packer-overwrites", "dropped ready", PACKER, "self.i.ready.eq(~self.o.valid | self.o.ready)",
          "self.i.ready.eq(1)", "a line that waits is overwritten",
          PACK),
    plant("packer-empty", "missing term", PACKER, "self.empty.eq(~self.o.valid & (place == 0))",
          "self.empty.eq(~self.o.valid)", "half a line does not count as held",
          PACK),
    plant("merge-loses-second", "dropped ready", MERGE, "self.second.ready.eq(~self.first.valid)",
          "self.second.ready.eq(1)", "a request is lost when both come in one cycle",
          RECORDS),
    plant("choice-loses-second", "dropped ready", MERGE, "self.second.ready.eq(self.o.ready & ~self.first.valid)",
          "self.second.ready.eq(self.o.ready)", "a request is lost when the loader has one in the same cycle",
          RECORDS, LAUNCHES),
    plant("skid-keeps-nothing", "lost strobe", SKID, "full.eq((full | self.i.valid) & ~move)", "full.eq(0)",
          "what comes while the output waits is lost", QUEUE_PROOF),
    plant("skid-without-second", "throughput", SKID, "self.i.ready.eq(~full)", "self.i.ready.eq(~full & ~self.o.valid)",
          "every other cycle goes by in front of the ports", QUEUE_PROOF),
    plant("single-overwritten", "dropped ready", SKID, "self.i.ready.eq(~self.o.valid | self.o.ready)",
          "self.i.ready.eq(1)", "what waits in a single register is overwritten",
          "tests/formal/test_stream_contract.py::test_streams_keep_the_contract[single-register]"),
]  # fmt: skip
