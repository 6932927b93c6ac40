// An AXI4-Lite master that does one transaction at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "counts.h"
#include "pins.h"

namespace daedal {

class LiteMaster {
 public:
  // `counts` are those of the tiles: of one whose registers begin at 0, or of each of PAGE_BYTES, behind a page of all.
  LiteMaster(const LitePins &pins, std::vector<Counts *> counts)
      : pins_(pins), counts_(std::move(counts)), blocks_(counts_.size()) {
    *pins_.bready = *pins_.rready = 1;
  }

  void start_write(std::uint32_t address, std::uint32_t value) {
    *pins_.awaddr = RegisterPin(address);
    *pins_.wdata = value;
    *pins_.wstrb = 0xF;
    *pins_.awvalid = *pins_.wvalid = 1;
    busy_ = true;
  }

  void start_read(std::uint32_t address) {
    *pins_.araddr = RegisterPin(address);
    *pins_.arvalid = 1;
    busy_ = true;
  }

  bool busy() const { return busy_; }
  std::uint32_t value() const { return value_; }

  // Takes the handshakes of this cycle; what was taken goes down with `release` after the clock edge.
  void sample(std::uint64_t cycle) {
    if (!busy_) return;
    address_taken_ = *pins_.awvalid && *pins_.awready;
    data_taken_ = *pins_.wvalid && *pins_.wready;
    read_taken_ = *pins_.arvalid && *pins_.arready;
    if (data_taken_) note(cycle);
    if (*pins_.bvalid) busy_ = false;
    if (*pins_.rvalid) {
      busy_ = false;
      value_ = *pins_.rdata;
    }
  }

  void release() {
    if (address_taken_) *pins_.awvalid = 0;
    if (data_taken_) *pins_.wvalid = 0;
    if (read_taken_) *pins_.arvalid = 0;
    address_taken_ = data_taken_ = read_taken_ = false;
  }

 private:
  // What the counts must know about a register that was just written.
  void note(std::uint64_t cycle) {
    std::uint32_t address = *pins_.awaddr, value = *pins_.wdata, tile = 0;
    if (IS_SYSTEM) {
      tile = address / PAGE_BYTES - 1;  // of the system's own page: more than there are
      address %= PAGE_BYTES;
      if (tile >= counts_.size()) return;
    }
    std::uint64_t &block = blocks_[tile];
    if (address == Register::LAUNCH_LOW) block = (block & ~std::uint64_t(0xFFFFFFFF)) | value;
    if (address == Register::LAUNCH_HIGH) block = (block & 0xFFFFFFFF) | std::uint64_t(value) << 32;
    // A system gives it to the tile in the next cycle.
    if (address == Register::DOORBELL) counts_[tile]->doorbell(block, cycle + IS_SYSTEM);
    if (address == Register::CONTROL && Control::decode(value).reset) counts_[tile]->reset();
  }

  LitePins pins_;
  std::vector<Counts *> counts_;
  bool busy_ = false, address_taken_ = false, data_taken_ = false, read_taken_ = false;
  std::uint32_t value_ = 0;
  std::vector<std::uint64_t> blocks_;  // LAUNCH_HIGH:LAUNCH_LOW of each tile
};

}  // namespace daedal
