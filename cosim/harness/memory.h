// The memory model `ideal`: fixed latency, a number of lines per cycle for reads and writes together, fair
// among the ports; optionally with random stalls and with ports overtaking each other.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "counts.h"
#include "errors.h"
#include "pins.h"
#include "storage.h"

namespace daedal {

constexpr std::uint64_t NEVER = ~std::uint64_t(0);

struct MemoryOptions {
  std::uint64_t latency = 100;
  double lines = 1;
  double stall = 0;
  std::uint64_t pause_after = NEVER;  // lines that move before it stops answering
  std::uint64_t pause = NEVER;        // cycles for which it does
  std::uint32_t seed = 1;
  bool random = false;
};

// xorshift64*: small and good enough to decide on stalls.
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(0x9E3779B97F4A7C15u ^ (std::uint64_t(seed) << 16)) {}

  std::uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return std::uint32_t((state_ * 0x2545F4914F6CDD1Du) >> 32);
  }

  // True with this probability, which is given in units of 2**-32.
  bool chance(std::uint64_t probability) { return probability && next() < probability; }

 private:
  std::uint64_t state_;
};

struct Burst {
  std::uint64_t address;
  unsigned beats;         // in all
  unsigned done;          // beats moved so far
  std::uint64_t ripe;     // first cycle in which a beat (or the response) may appear
  bool failed;
};

// An address channel as it was in a cycle in which it was not taken: it must not change.
struct Held {
  bool valid = false;
  std::uint64_t address = 0;
  unsigned length = 0;
};

class Memory {
 public:
  Memory(Pins &pins, Storage &storage, Counts &counts, Errors &errors, const MemoryOptions &options);

  // Sets the inputs of the model for this cycle from its outputs after the last clock edge.
  void drive(std::uint64_t cycle);
  // Takes the handshakes of this cycle, after the model has settled and before the clock edge.
  void sample(std::uint64_t cycle);

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
  void check_burst(const char *channel, std::uint64_t address, unsigned length, unsigned size,
                   unsigned kind, std::uint64_t cycle);
  void check_held(const char *channel, Held &held, bool valid, bool ready, std::uint64_t address,
                  unsigned length, std::uint64_t cycle);

  Pins &pins_;
  Storage &storage_;
  Counts &counts_;
  Errors &errors_;
  MemoryOptions options_;
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
