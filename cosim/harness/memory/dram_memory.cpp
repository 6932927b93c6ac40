#include "memory/dram_memory.h"

#include <cstring>

namespace daedal {

DramMemory::DramMemory(Pins &pins, Storage &storage, Counts &counts, Errors &errors, const DramOptions &options)
    : pins_(pins),
      storage_(storage),
      shadow_(storage.size()),
      counts_(counts),
      errors_(errors),
      dram_(options.create(storage.bytes(), storage.size())),
      page_bytes_(options.page_bytes),
      stall_(std::uint64_t(options.stall * 4294967296.0)),
      random_(options.seed),
      ports_(pins.read.size()) {}

void DramMemory::drive(std::uint64_t cycle) {
  for (unsigned number = 0; number < ports_.size(); ++number) {
    *pins_.read[number].arready = !ports_[number].bursts.full() && !stalls();
    offer(number, cycle);
    drive_command(number, cycle);
    if (*dram_->ports[number].wdata_ready) send_word(number, cycle);
  }
  drive_write(cycle);
}

// Puts the oldest beat on R once it is here.
void DramMemory::offer(unsigned number, std::uint64_t cycle) {
  Port &port = ports_[number];
  ReadPins &pins = pins_.read[number];
  if (!port.offered && !port.beats.empty() && port.beats.front().ripe <= cycle && !stalls()) {
    const Beat &beat = port.beats.front();
    std::memcpy(pins.rdata, beat.data, BUS_BYTES);
    *pins.rresp = beat.failed ? SLVERR : OKAY;
    *pins.rlast = beat.last;
    port.offered = true;
  }
  *pins.rvalid = port.offered;
}

void DramMemory::drive_command(unsigned number, std::uint64_t cycle) {
  Port &port = ports_[number];
  const DramPort &pins = dram_->ports[number];
  bool valid = port.reads ? wants_read(port) : wants_write(port, cycle);
  *pins.cmd_valid = valid;
  if (!valid) return;
  std::uint64_t address = port.words[port.commanded].address;
  if (port.reads) {
    const ReadBurst &burst = port.bursts.front();
    address = burst.address + std::uint64_t(burst.asked) * BUS_BYTES;
    if (!storage_.holds(address, BUS_BYTES)) *pins.cmd_valid = 0;
  }
  *pins.cmd_we = !port.reads;
  *pins.cmd_addr = std::uint32_t(address / BUS_BYTES);
}

// The controller takes the oldest word that it was told of.
void DramMemory::send_word(unsigned number, std::uint64_t cycle) {
  Port &port = ports_[number];
  if (!port.commanded) {
    errors_.report(cycle, "port %u of the DRAM asked for a word that it was not told of", number);
    return;
  }
  const Word &word = port.words.front();
  std::memcpy(dram_->wdata, word.data, BUS_BYTES);
  std::memcpy(dram_->wdata_we, &word.strobes, (BUS_BYTES + 7) / 8);
  WriteBurst &burst = *word.burst;
  if (++burst.sent == burst.beats) burst.ripe = cycle + 1;
  port.words.pop();
  --port.commanded;
}

void DramMemory::drive_write(std::uint64_t cycle) {
  WritePins &pins = pins_.write;
  *pins.awready = !writes_.full() && !stalls();
  const WriteBurst *burst = taking();
  *pins.wready = burst && !ports_[port_of(burst->address)].words.full() && !stalls();
  if (!response_offered_ && !writes_.empty() && writes_.front().ripe <= cycle && !stalls()) {
    response_offered_ = true;
    *pins.bresp = writes_.front().failed ? SLVERR : OKAY;
  }
  *pins.bvalid = response_offered_;
}

// The burst whose beats come next on W, or null.
DramMemory::WriteBurst *DramMemory::taking() {
  return writes_.size() > complete_ ? &writes_[complete_] : nullptr;
}

void DramMemory::sample(std::uint64_t cycle) {
  dram_->settle();
  for (unsigned number = 0; number < ports_.size(); ++number) {
    sample_command(number, cycle);
    if (*dram_->ports[number].rdata_valid) receive_word(number, cycle);
    sample_read(number, cycle);
  }
  sample_write(cycle);
  dram_->edge();
  if (*dram_->violation()) errors_.report(cycle, "the DRAM reports %s", dram_->violation());
}

// Takes a command that was accepted; then, as in LiteDRAM's front end, reads and writes take turns burst by burst.
void DramMemory::sample_command(unsigned number, std::uint64_t cycle) {
  Port &port = ports_[number];
  const DramPort &pins = dram_->ports[number];
  bool valid = port.reads ? wants_read(port) : wants_write(port, cycle), over = !valid;
  if (valid && (!*pins.cmd_valid || *pins.cmd_ready)) {  // not valid on the pins: outside of memory
    if (port.reads) {
      over = port.bursts.front().asked + 1 == port.bursts.front().beats;
      read_taken(port, cycle);
    } else {
      over = port.words[port.commanded].last;
      write_taken(port);
    }
  }
  if (over && (port.reads ? wants_write(port, cycle) : wants_read(port))) port.reads = !port.reads;
}

// What a read gives is decided here: the commands of a bank take effect in the order in which they are taken.
void DramMemory::read_taken(Port &port, std::uint64_t cycle) {
  ReadBurst &burst = port.bursts.front();
  Beat &beat = port.beats.push();
  beat.address = burst.address + std::uint64_t(burst.asked) * BUS_BYTES;
  beat.failed = !storage_.holds(beat.address, BUS_BYTES);
  beat.known = !beat.failed;
  beat.ripe = beat.failed ? cycle + BUFFER_CYCLES : WAITING;
  if (beat.failed)
    std::memset(beat.data, 0, BUS_BYTES);
  else
    std::memcpy(beat.expected, shadow_.bytes() + beat.address, BUS_BYTES);
  beat.last = ++burst.asked == burst.beats;
  if (beat.last) port.bursts.pop();
}

void DramMemory::write_taken(Port &port) {
  const Word &word = port.words[port.commanded++];
  shadow_.write(word.address, word.data, word.strobes, BUS_BYTES);
}

void DramMemory::receive_word(unsigned number, std::uint64_t cycle) {
  Port &port = ports_[number];
  while (port.here < port.beats.size() && port.beats[port.here].failed) ++port.here;
  if (port.here == port.beats.size()) {
    errors_.report(cycle, "port %u of the DRAM gave a word that it was not asked for", number);
    return;
  }
  Beat &beat = port.beats[port.here++];
  std::memcpy(beat.data, dram_->rdata, BUS_BYTES);
  beat.ripe = cycle + BUFFER_CYCLES;
  if (!beat.known) return;
  ++checked_;
  if (std::memcmp(beat.data, beat.expected, BUS_BYTES) != 0)
    errors_.report(cycle, "port %u of the DRAM gave other bytes for address %#llx than were stored there", number,
                   (unsigned long long)beat.address);
}

void DramMemory::sample_read(unsigned number, std::uint64_t cycle) {
  Port &port = ports_[number];
  ReadPins &pins = pins_.read[number];
  if (port.offered && *pins.rready) {
    port.offered = false;
    port.beats.pop();
    if (port.here) --port.here;
    counts_.line_read();
  }
  if (!*pins.arvalid && !port.held.valid) return;
  check_held(errors_, "AR", port.held, *pins.arvalid, *pins.arready, *pins.araddr, *pins.arlen, cycle);
  if (!*pins.arvalid || !*pins.arready) return;
  check_burst(errors_, "AR", *pins.araddr, *pins.arlen, *pins.arsize, *pins.arburst, cycle);
  port.bursts.push() = {*pins.araddr, *pins.arlen + 1u, 0};
}

void DramMemory::sample_write(std::uint64_t cycle) {
  WritePins &pins = pins_.write;
  if (response_offered_ && *pins.bready) {
    response_offered_ = false;
    const WriteBurst &burst = writes_.front();
    counts_.acknowledged(burst.address, burst.address + std::uint64_t(burst.beats) * BUS_BYTES, cycle);
    writes_.pop();
    --complete_;
  }
  if (*pins.wvalid && *pins.wready) take_line(cycle);
  check_held(errors_, "AW", write_held_, *pins.awvalid, *pins.awready, *pins.awaddr, *pins.awlen, cycle);
  if (!*pins.awvalid || !*pins.awready) return;
  check_burst(errors_, "AW", *pins.awaddr, *pins.awlen, *pins.awsize, *pins.awburst, cycle);
  writes_.push() = {*pins.awaddr, WAITING, *pins.awlen + 1u, 0, 0, false};
}

// A line from W goes to the user port of its bank, or nowhere if it is outside of memory.
void DramMemory::take_line(std::uint64_t cycle) {
  const WritePins &pins = pins_.write;
  WriteBurst &burst = *taking();
  std::uint64_t address = burst.address + std::uint64_t(burst.taken) * BUS_BYTES, strobes = 0;
  std::memcpy(&strobes, pins.wstrb, (BUS_BYTES + 7) / 8);
  counts_.line_written(burst.address, unsigned(__builtin_popcountll(strobes)));
  bool last = ++burst.taken == burst.beats;
  if (last != bool(*pins.wlast))
    errors_.report(cycle, "WLAST is %d in beat %u of %u", int(*pins.wlast), burst.taken, burst.beats);
  if (last) ++complete_;
  if (storage_.holds(address, BUS_BYTES)) {
    Word &word = ports_[port_of(address)].words.push();
    word = {address, strobes, cycle + BUFFER_CYCLES, &burst, last, {}};
    std::memcpy(word.data, pins.wdata, BUS_BYTES);
    return;
  }
  burst.failed = true;
  if (++burst.sent == burst.beats) burst.ripe = cycle + BUFFER_CYCLES;
}

bool DramMemory::dram_counts(std::uint64_t *values) const {
  const DramCounts &counts = dram_->counts;
  values[0] = counts.reads;
  values[1] = counts.writes;
  values[2] = checked_;
  values[3] = counts.refreshes;
  return true;
}

void DramMemory::host_wrote(std::uint64_t address, std::uint64_t size) {
  std::memcpy(shadow_.bytes() + address, storage_.bytes() + address, size);
  for (Port &port : ports_)  // a read in flight may give what was there before
    for (unsigned place = 0; place < port.beats.size(); ++place) {
      Beat &beat = port.beats[place];
      if (beat.address < address + size && address < beat.address + BUS_BYTES) beat.known = false;
    }
}

}  // namespace daedal
