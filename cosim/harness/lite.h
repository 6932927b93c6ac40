// An AXI4-Lite master that does one transaction at a time.
#pragma once

#include <cstdint>

#include "counts.h"
#include "pins.h"

namespace daedal {

class LiteMaster {
 public:
  LiteMaster(Pins &pins, Counts &counts) : pins_(pins.lite), counts_(counts) {
    *pins_.bready = *pins_.rready = 1;
  }

  void start_write(std::uint32_t address, std::uint32_t value) {
    *pins_.awaddr = CData(address);
    *pins_.wdata = value;
    *pins_.wstrb = 0xF;
    *pins_.awvalid = *pins_.wvalid = 1;
    busy_ = true;
  }

  void start_read(std::uint32_t address) {
    *pins_.araddr = CData(address);
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
    std::uint32_t address = *pins_.awaddr, value = *pins_.wdata;
    if (address == Register::LAUNCH_LOW) block_ = (block_ & ~std::uint64_t(0xFFFFFFFF)) | value;
    if (address == Register::LAUNCH_HIGH) block_ = (block_ & 0xFFFFFFFF) | std::uint64_t(value) << 32;
    if (address == Register::DOORBELL) counts_.doorbell(block_, cycle);
    if (address == Register::CONTROL && Control::decode(value).reset) counts_.reset();
  }

  LitePins &pins_;
  Counts &counts_;
  bool busy_ = false, address_taken_ = false, data_taken_ = false, read_taken_ = false;
  std::uint32_t value_ = 0;
  std::uint64_t block_ = 0;
};

}  // namespace daedal
