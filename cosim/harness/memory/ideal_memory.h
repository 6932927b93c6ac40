// The memory model `ideal`: fixed latency, a number of lines per cycle for reads and writes together, fair
// among the ports; optionally with random stalls and with ports overtaking each other.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "bus_rules.h"
#include "counts.h"
#include "errors.h"
#include "memory/memory.h"
#include "pins.h"
#include "memory/random.h"
#include "memory/storage.h"

namespace daedal {

constexpr std::uint64_t NEVER = ~std::uint64_t(0);

struct IdealOptions {
  std::uint64_t latency = 100;
  double lines = 1;
  double stall = 0;
  std::uint64_t pause_after = NEVER;  // lines that move before it stops answering
  std::uint64_t pause = NEVER;        // cycles for which it does
  std::uint32_t seed = 1;
  bool random = false;
};

struct Burst {
  std::uint64_t address;
  unsigned beats;         // in all
  unsigned done;          // beats moved so far
  std::uint64_t ripe;     // first cycle in which a beat (or the response) may appear
  bool failed;
};

class IdealMemory final : public Memory {
 public:
  IdealMemory(Pins &pins, Storage &storage, Counts &counts, Errors &errors, const IdealOptions &options);

  void drive(std::uint64_t cycle) override;
  void sample(std::uint64_t cycle) override;

 private:
  struct ReadPort {
    std::deque<Burst> bursts;
    bool offered = false;  // a beat is on R and not taken
    Held held;
  };

  bool paused(std::uint64_t cycle);
  bool stalls() { return random_.chance(stall_); }
  std::uint64_t ripe(std::uint64_t cycle);
  void arbitrate(std::uint64_t cycle);
  bool grant(unsigned port, std::uint64_t cycle);
  void offer(unsigned port);
  void sample_read(unsigned port, std::uint64_t cycle);
  void sample_write(std::uint64_t cycle);
  void take_line(std::uint64_t cycle);

  Pins &pins_;
  Storage &storage_;
  Counts &counts_;
  Errors &errors_;
  IdealOptions options_;
  std::uint64_t stall_;
  Random random_;
  std::vector<ReadPort> reads_;
  std::deque<Burst> writes_;     // addresses taken, data not complete
  std::deque<Burst> responses_;  // data complete
  bool response_offered_ = false;
  Held write_held_;
  double credit_ = 0, credit_most_;
  std::uint64_t moved_ = 0;      // lines
  std::uint64_t pause_end_ = 0;  // cycle; 0 before the pause
  unsigned turn_ = 0;  // the port that is asked first
};

}  // namespace daedal
