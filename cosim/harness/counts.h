// What the harness counts for itself about each launch, from bus traffic alone.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "encodings.h"
#include "memory/storage.h"

namespace daedal {

struct LaunchCounts {
  std::uint64_t block, record;  // addresses
  std::uint64_t start;          // cycle of the doorbell, or of the last acknowledged write before if that was later
  std::uint64_t last_write;     // cycle of the last acknowledged write, or start
  bool timed;                   // start is known: it is not if the launch waited for one that wrote nothing
  bool alone;                   // no other launch was queued or at work at any time: all lines read are its own
  std::uint64_t lines_read, lines_written, bytes_written;
};

// What moved while launches were at work.
struct Traffic {
  std::uint64_t lines_read, lines_written;
  std::uint64_t idle;     // cycles in which no line moved
  std::uint64_t longest;  // the most such cycles in a row
};

class Counts {
 public:
  explicit Counts(const Storage &storage) : storage_(storage) {}

  // The doorbell was written in this cycle while LAUNCH_HIGH:LAUNCH_LOW held `block`.
  void doorbell(std::uint64_t block, std::uint64_t cycle) {
    std::uint64_t record = storage_.word(block + 8 * LaunchWord::RECORD);
    for (auto &launch : pending_) launch.alone = false;
    pending_.push_back({block, record, cycle, cycle, true, pending_.empty(), 0, 0, 0});
  }

  // The machine was told to reset: launches are forgotten.
  void reset() { pending_.clear(); }

  void line_read() {
    moved_ = true;
    ++traffic_.lines_read;
    if (!pending_.empty()) ++pending_.front().lines_read;
  }

  void line_written(std::uint64_t address, unsigned bytes) {
    moved_ = true;
    ++traffic_.lines_written;
    if (pending_.empty() || in_record(address)) return;
    ++pending_.front().lines_written;
    pending_.front().bytes_written += bytes;
  }

  // A cycle is over.
  void cycle() {
    stands_ = moved_ || pending_.empty() ? 0 : stands_ + 1;
    traffic_.idle += stands_ != 0;
    if (stands_ > traffic_.longest) traffic_.longest = stands_;
    moved_ = false;
  }

  // A burst from `address` to before `end` was acknowledged. The one with the record's last byte ends the launch.
  void acknowledged(std::uint64_t address, std::uint64_t end, std::uint64_t cycle) {
    if (pending_.empty()) return;
    if (!in_record(address)) {
      pending_.front().last_write = cycle;
      return;
    }
    if (end < pending_.front().record + 8 * RECORD_WORDS) return;
    const LaunchCounts over = ended_[pending_.front().record] = pending_.front();
    pending_.pop_front();
    if (!pending_.empty()) begin_after(over, pending_.front());
  }

  // Of the launch that ended last with its record at this address; null if there is none.
  const LaunchCounts *of(std::uint64_t record) const {
    const auto found = ended_.find(record);
    return found == ended_.end() ? nullptr : &found->second;
  }

  // Since this was last asked for.
  Traffic traffic() { return std::exchange(traffic_, {}); }

 private:
  static void begin_after(const LaunchCounts &last, LaunchCounts &next) {
    next.timed = last.timed && last.lines_written != 0;
    if (last.last_write > next.start) next.start = next.last_write = last.last_write;
  }

  bool in_record(std::uint64_t address) {
    std::uint64_t offset = address - pending_.front().record;
    return offset < 8 * RECORD_WORDS;
  }

  const Storage &storage_;
  std::deque<LaunchCounts> pending_;
  std::unordered_map<std::uint64_t, LaunchCounts> ended_;  // by the record's address
  Traffic traffic_{};
  std::uint64_t stands_ = 0;  // cycles since a line moved
  bool moved_ = false;
};

}  // namespace daedal
