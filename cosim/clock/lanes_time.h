// The execute unit and the store unit.
#pragma once
#include <vector>

#include "queues_time.h"

namespace daedal::timing {

class LanesTime {
 public:
  LanesTime(const Config& config, MemoryTime& memory, Queues& queues);

  Stream<Executed> work;
  Stream<Stored> stores;

  // Both do what they can; whether they did something.
  bool advance();
  bool store();
  void force() { forced_ = true; }
  // Another launch, that was rung for at this time, and whose stores go no earlier than the other one.
  void launch(Time rung, Time not_before);
  // There are no tokens from the last one until then, when the launch's access side is over.
  void idle(Time until);
  // All is stored: when the last line is acknowledged.
  Time flush();
  bool mixed = false;

 private:
  struct Register {
    Time first = -100, last = -100;  // when its beats were issued
    Time stored = -100;              // from when on it is read to be stored
  };
  struct TreeBeats {
    Time at, beats;
  };
  enum Phase { FETCHED, POPPING, DONE };

  bool begin(const Executed& one);
  bool pop(const Executed& one);
  void join(const Executed& one, std::uint64_t n, std::uint64_t most, Time there, Time& at);
  void pass_first(const Executed& one, Time& at);
  Time crowded(const Executed& one) const;
  void combine();
  void finish(const Executed& one);
  bool put(const Executed& one);
  void line(Time at, std::uint64_t number);
  void batch(Time at, bool is_short);
  bool unknown(Time at) { return at == UNKNOWN && !forced_; }
  static void clear(Register& one) { one.first = one.last = -100; }
  Register& of(std::uint8_t number, std::uint8_t context) { return registers_[number][context]; }

  const Config& config_;
  MemoryTime& memory_;
  Queues& queues_;
  // Cycles of hw/execute_unit/latencies.py: between sums of an element, and until one is stored or read again.
  const Time loop_, result_, read_after_write_;
  static constexpr unsigned AHEAD = 3;
  const std::uint64_t joined_;  // lines of a beat, if these are no longer than it
  Time ready_ = 0, taken_[AHEAD] = {};
  std::uint64_t beats_ = 0;
  const Time partials_;    // beats of a reduction's partial sums
  Time tree_beats_ = 0;    // of its tree
  Register registers_[16][MAX_CONTEXTS];
  Time scalars_[16] = {};
  std::vector<TreeBeats> tree_;  // to come
  Phase phase_ = FETCHED;
  bool forced_ = false;
  Time lane_ = 0, start_ = 0, tokens_ = 0, sends_ = 0, iterative_ = 0;
  Time began_ = 0;  // this launch, for the lanes: those without work wait for tokens from then on
  std::uint64_t popped_[2] = {};  // lines of this instruction
  // Store port and store unit.
  Time port_ = 0, unit_ = 0, last_line_at_ = 0, not_before_ = 0, acknowledged_ = 0;
  std::uint64_t last_line_ = ~0ull, held_ = 0, burst_ = 0, in_row_ = 0;
  std::uint64_t rows_ = 0, row_ = ~0ull;  // of the DRAM, to which the held lines go
  Time room_ = 0;
  static constexpr std::uint64_t MARGIN = 12;
  std::uint64_t places_ = 1;  // of lines that wait to be written
};

}  // namespace daedal::timing
