// What the clock loop needs of a memory: the AXI side of a model of one.
#pragma once

#include <cstdint>

namespace daedal {

constexpr unsigned OKAY = 0, SLVERR = 2;  // of RRESP and BRESP

class Memory {
 public:
  virtual ~Memory() = default;

  // Sets the inputs of the core for this cycle, from its outputs after the last clock edge.
  virtual void drive(std::uint64_t cycle) = 0;
  // Whether it does not look at these outputs, so that it can drive a cycle before the clock edge that begins it.
  virtual bool drives_before_edge() const { return false; }
  // Takes the handshakes of this cycle, after the core has settled and before the clock edge.
  virtual void sample(std::uint64_t cycle) = 0;
  // The host has put bytes into the storage, between two cycles.
  virtual void host_wrote(std::uint64_t, std::uint64_t) {}
  // Fills words read and written, words compared with what was stored, refreshes; false if the model has no such.
  virtual bool dram_counts(std::uint64_t *) const { return false; }
};

}  // namespace daedal
