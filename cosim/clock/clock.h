// The emulator's clock: hears what the machine does, and says how many cycles the RTL would take for it.
#pragma once
#include <algorithm>
#include <array>
#include <memory>

#include "front_time.h"
#include "lanes_time.h"
#include "narrow_rows.h"

namespace daedal {

class Clock {
 public:
  static constexpr bool TICKS = true;
  explicit Clock(const Config& config);

  void set(const timing::Parameters& parameters);
  void mix(bool mixed) { mixed_ = mixed; }
  // Rows of the DRAM's banks that were opened since the last reset.
  std::uint64_t activations() const { return memory_->activations; }
  // Lines that a port was asked for since then.
  std::uint64_t lines_of(unsigned port) const { return memory_->lines_of(port); }
  void reset();
  void rang();
  template <class Space>
  void begin(const Space& space, std::uint64_t block, std::uint64_t header, std::uint64_t bytes, bool fence) {
    begin(space.map(block), header / WORD_BYTES, (bytes + bus_ - 1) / bus_, bytes > header, fence);
  }
  // A program's word; the first one of those that follow their block is in a line that is here already.
  void word(const ProgramWord& word, std::uint64_t place, bool first, std::uint64_t address) {
    front_->program.push({timing::Kind::WORD, units_of(word), 0, first, address % bus_ == 0 || first, place});
  }
  // So many words has the program, which stands by itself.
  void length(std::uint64_t words) {
    front_->program.push({timing::Kind::LENGTH, 0, 0, 0, static_cast<std::uint32_t>((words * WORD_BYTES + bus_ - 1) / bus_), 0});
  }
  void level(unsigned number, bool enabled, bool interleaves, bool deals, unsigned loads, unsigned operations,
             unsigned operands, unsigned held);
  // The line that a load of the level that follows does not read, nor any behind it, before it is wanted; and that from
  // which on it reads before it knows what is wanted, or ~0.
  void array(unsigned slot, std::uint64_t limit, std::uint64_t line) { arrays_[slot] = {limit, line}; }
  // The nest is complete.
  void nest();
  // Another line of a load, for an activation in this context; the levels whose activations begin.
  void load(unsigned level, unsigned slot, bool random, unsigned context, std::uint32_t begins, std::uint64_t address,
            std::uint64_t line);
  // A bundle comes to the event unit, of which levels it is an iteration and the first one; its number.
  std::uint64_t arrive(std::uint32_t iterates, std::uint32_t begins);
  // Its events are next.
  void deliver(std::uint64_t number) {
    front_->events.push({timing::Kind::DELIVER, 0, 0, 0, static_cast<std::uint32_t>(number), 0});
  }
  void step(bool token, bool scalar, bool store) {
    flags_ = static_cast<std::uint8_t>(token * timing::TOKEN | scalar * timing::SCALAR | store * timing::STORE);
    open_ = true;
  }
  // A row, in parts that one request reads.
  template <class Space>
  void fetch(const Space& space, std::uint64_t queue, std::uint64_t address, std::uint64_t size, std::uint64_t at) {
    std::uint64_t lines = (address % bus_ + size + bus_ - 1) / bus_;
    address -= address % bus_;
    if (at != ~0ull) at -= at % bus_;
    const std::uint64_t together = space.map.together(address) / bus_;
    const std::uint64_t block = std::min<std::uint64_t>(MAX_BURST, together ? together : 1);
    while (lines) {
      const std::uint64_t room = block - address / bus_ % block, part = std::min(lines, room);
      chunk(queue, at == ~0ull ? space.map(address) : at, part);
      lines -= part;
      address += part * bus_;
      if (at != ~0ull) at += part * bus_;
    }
  }
  void stepped() {
    if (open_) front_->events.push({timing::Kind::STEP, 0, 0, flags_, 0, 0});
    open_ = false;
    if (front_->waiting() > MOST) work(LEAST);
  }
  void executed(const Instruction& bits, const Operation& operation, bool starts, std::uint64_t context,
                bool pops_scalar, bool kept, bool takes_b, bool adds_b, std::uint64_t elements, const Popped& popped,
                std::uint64_t count);
  void stored(std::uint64_t address, std::uint64_t size, bool stream) {
    lanes_->stores.push({address, static_cast<std::uint32_t>(size), stream});
  }
  // The launch is over: its cycles, stalls and marks go to the counters.
  void end(std::array<std::uint64_t, Counter::limit>& counters, bool recorded);

 private:
  static constexpr std::size_t MOST = 1 << 14, LEAST = 1 << 13;

  void begin(std::uint64_t block, std::uint64_t words, std::uint64_t lines, bool follows, bool fence);
  void end_turns(unsigned unit, unsigned context);
  std::uint8_t units_of(const ProgramWord& word) const;
  // Of a level's activation that begins: where it comes from.
  std::uint8_t activation(unsigned level, std::uint32_t begins) const {
    const bool held = level && begins >> (level - 1) & 1;
    return static_cast<std::uint8_t>(timing::ACTIVATES | (parent_of(level) != level) * timing::FROM_PARENT | held * timing::HELD_TOO);
  }
  // The enabled level before this one; itself if there is none.
  unsigned parent_of(unsigned level) const {
    for (unsigned n = level; n-- > 0;)
      if (enabled_ >> n & 1) return n;
    return level;
  }
  void chunk(std::uint64_t queue, std::uint64_t address, std::uint64_t lines) {
    const auto slot = static_cast<std::uint8_t>(queue);
    const auto size = static_cast<std::uint32_t>(lines);
    if (open_)
      front_->events.push({timing::Kind::STEP, 0, slot, static_cast<std::uint8_t>(flags_ | timing::FETCH), size, address});
    else
      front_->events.push({timing::Kind::CHUNK, 0, slot, 0, size, address});
    open_ = false;
  }
  void work(std::size_t left);
  bool serve();

  const Config config_;
  const std::uint64_t bus_;
  timing::Parameters parameters_{};
  std::unique_ptr<timing::MemoryTime> memory_;
  std::unique_ptr<timing::Queues> queues_;
  std::unique_ptr<timing::FrontTime> front_;
  std::unique_ptr<timing::LanesTime> lanes_;
  timing::Stream<timing::Time> doorbells_;
  std::uint64_t turns_[4 * MAX_LEVELS][MAX_CONTEXTS] = {};  // numbers of activations that run in turn
  std::uint64_t in_turn_[4 * MAX_LEVELS] = {};              // contexts that have one, a bit for each
  std::uint64_t last_lines_[4 * MAX_LEVELS][MAX_CONTEXTS];  // that each load has read, by context
  timing::Time now_ = 0, ended_ = 0, rung_ = 0;
  timing::Array arrays_[4];
  std::uint64_t bundles_ = 0;
  std::uint32_t nest_ = 0;
  unsigned interleaves_ = 0, enabled_ = 0, deals_ = 0;  // levels of the present nest, a bit for each
  std::int64_t context_level_ = -1;  // the one that can interleave
  std::uint8_t flags_ = 0;
  bool open_ = false, mixed_ = true;
};

}  // namespace daedal
