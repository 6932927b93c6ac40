#include "memory/ideal_memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace daedal {

IdealMemory::IdealMemory(Pins &pins, Storage &storage, Counts &counts, Errors &errors, const IdealOptions &options)
    : pins_(pins),
      storage_(storage),
      counts_(counts),
      errors_(errors),
      options_(options),
      stall_(std::uint64_t(options.stall * 4294967296.0)),
      random_(options.seed),
      reads_(pins.read.size()),
      credit_most_(std::ceil(options.lines)) {
  if (options.lines != credit_most_) credit_most_ += 1;
}

std::uint64_t IdealMemory::ripe(std::uint64_t cycle) {
  std::uint64_t more = options_.random ? random_.next() % (options_.latency + 1) : 0;
  return cycle + options_.latency + more;
}

void IdealMemory::drive(std::uint64_t cycle) {
  for (unsigned port = 0; port < reads_.size(); ++port) {
    *pins_.read[port].arready = !stalls();
    *pins_.read[port].rvalid = reads_[port].offered;
  }
  WritePins &write = pins_.write;
  *write.awready = !stalls();
  *write.wready = 0;
  if (paused(cycle)) {  // beats and responses that are already offered stay
    *write.bvalid = response_offered_;
    return;
  }
  if (!response_offered_ && !responses_.empty() && responses_.front().ripe <= cycle && !stalls()) {
    response_offered_ = true;
    *write.bresp = responses_.front().failed ? SLVERR : OKAY;
  }
  *write.bvalid = response_offered_;
  arbitrate(cycle);
}

// Whether memory is in the pause that begins once so many lines have moved.
bool IdealMemory::paused(std::uint64_t cycle) {
  if (moved_ < options_.pause_after) return false;
  if (!pause_end_) pause_end_ = options_.pause > NEVER - cycle ? NEVER : cycle + options_.pause;
  return cycle < pause_end_;
}

void IdealMemory::arbitrate(std::uint64_t cycle) {
  credit_ = std::min(credit_ + options_.lines, credit_most_);
  unsigned ports = unsigned(reads_.size()) + 1, first = options_.random ? random_.next() % ports : turn_;
  for (unsigned asked = 0, port = first; asked < ports && credit_ >= 1; ++asked, port = port + 1 == ports ? 0 : port + 1)
    if (grant(port, cycle)) {
      credit_ -= 1;
      turn_ = port + 1 == ports ? 0 : port + 1;
    }
}

// Whether this port moves a line in this cycle. The port after the last read port is the write port.
bool IdealMemory::grant(unsigned port, std::uint64_t cycle) {
  if (port == reads_.size()) {
    if (!*pins_.write.wvalid || writes_.empty() || stalls()) return false;
    *pins_.write.wready = 1;
    return true;
  }
  ReadPort &read = reads_[port];
  if (read.offered || read.bursts.empty() || read.bursts.front().ripe > cycle || stalls()) return false;
  offer(port);
  return true;
}

void IdealMemory::offer(unsigned port) {
  ReadPins &pins = pins_.read[port];
  Burst &burst = reads_[port].bursts.front();
  std::uint64_t address = burst.address + std::uint64_t(burst.done) * BUS_BYTES;
  bool inside = storage_.holds(address, BUS_BYTES);
  if (inside)
    std::memcpy(pins.rdata, storage_.bytes() + address, BUS_BYTES);
  else
    std::memset(pins.rdata, 0, BUS_BYTES);
  *pins.rresp = inside ? OKAY : SLVERR;
  *pins.rlast = burst.done + 1 == burst.beats;
  *pins.rvalid = 1;
  reads_[port].offered = true;
}

void IdealMemory::sample(std::uint64_t cycle) {
  for (unsigned port = 0; port < reads_.size(); ++port) sample_read(port, cycle);
  sample_write(cycle);
}

void IdealMemory::sample_read(unsigned port, std::uint64_t cycle) {
  ReadPins &pins = pins_.read[port];
  ReadPort &read = reads_[port];
  if (read.offered && *pins.rready) {
    read.offered = false;
    counts_.line_read();
    ++moved_;
    if (++read.bursts.front().done == read.bursts.front().beats) read.bursts.pop_front();
  }
  if (!*pins.arvalid && !read.held.valid) return;
  check_held(errors_, "AR", read.held, *pins.arvalid, *pins.arready, *pins.araddr, *pins.arlen, cycle);
  if (!*pins.arvalid || !*pins.arready) return;
  check_burst(errors_, "AR", *pins.araddr, *pins.arlen, *pins.arsize, *pins.arburst, cycle);
  std::uint64_t first = read.bursts.empty() ? 0 : read.bursts.back().ripe;
  read.bursts.push_back({*pins.araddr, *pins.arlen + 1u, 0, std::max(first, ripe(cycle)), false});
}

void IdealMemory::sample_write(std::uint64_t cycle) {
  WritePins &pins = pins_.write;
  if (response_offered_ && *pins.bready) {
    response_offered_ = false;
    const Burst &burst = responses_.front();
    counts_.acknowledged(burst.address, burst.address + std::uint64_t(burst.beats) * BUS_BYTES, cycle);
    responses_.pop_front();
  }
  if (*pins.wvalid && *pins.wready) take_line(cycle);
  check_held(errors_, "AW", write_held_, *pins.awvalid, *pins.awready, *pins.awaddr, *pins.awlen, cycle);
  if (!*pins.awvalid || !*pins.awready) return;
  check_burst(errors_, "AW", *pins.awaddr, *pins.awlen, *pins.awsize, *pins.awburst, cycle);
  writes_.push_back({*pins.awaddr, *pins.awlen + 1u, 0, 0, false});
}

void IdealMemory::take_line(std::uint64_t cycle) {
  Burst &burst = writes_.front();
  std::uint64_t address = burst.address + std::uint64_t(burst.done) * BUS_BYTES, strobes = 0;
  std::memcpy(&strobes, pins_.write.wstrb, (BUS_BYTES + 7) / 8);
  const std::uint8_t *data = static_cast<const std::uint8_t *>(pins_.write.wdata);
  if (!storage_.holds(address, BUS_BYTES))
    burst.failed = true;
  else
    storage_.write(address, data, strobes, BUS_BYTES);
  counts_.line_written(burst.address, unsigned(__builtin_popcountll(strobes)));
  ++moved_;
  bool last = ++burst.done == burst.beats;
  if (last != bool(*pins_.write.wlast))
    errors_.report(cycle, "WLAST is %d in beat %u of %u", int(*pins_.write.wlast), burst.done, burst.beats);
  if (!last) return;
  burst.ripe = ripe(cycle);
  responses_.push_back(burst);
  writes_.pop_front();
}

}  // namespace daedal
