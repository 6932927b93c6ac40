// Keeps the bursts that the core asks for on its memory ports, as the pins show them: whatever memory answers.
#pragma once

#include <cstdint>
#include <vector>

#include "pins.h"

namespace daedal {

// As the host reads it: four words.
struct RecordedBurst {
  std::uint64_t cycle;    // in which the address was taken
  std::uint64_t address;  // of the first line, as memory sees it
  std::uint32_t beats;
  std::uint32_t port;     // a read port's number, or WRITE_PORT
};

constexpr std::uint32_t WRITE_PORT = 0xFFFFFFFF;

class Recorder {
 public:
  explicit Recorder(const Pins &pins) : pins_(pins) {}

  // Begins anew, or stops; what was kept before is gone.
  void set(bool on) {
    on_ = on;
    bursts_.clear();
  }

  // Takes the addresses of this cycle, after the model has settled and before the clock edge.
  void sample(std::uint64_t cycle) {
    if (!on_) return;
    for (std::uint32_t port = 0; port < pins_.read.size(); ++port) {
      const ReadPins &pins = pins_.read[port];
      if (*pins.arvalid && *pins.arready) bursts_.push_back({cycle, *pins.araddr, *pins.arlen + 1u, port});
    }
    const WritePins &write = pins_.write;
    if (*write.awvalid && *write.awready) bursts_.push_back({cycle, *write.awaddr, *write.awlen + 1u, WRITE_PORT});
  }

  const std::vector<RecordedBurst> &bursts() const { return bursts_; }

 private:
  const Pins &pins_;
  bool on_ = false;
  std::vector<RecordedBurst> bursts_;
};

}  // namespace daedal
