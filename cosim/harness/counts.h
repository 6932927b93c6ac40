// What the harness counts for itself about each launch, from bus traffic alone.
#pragma once

#include <cstdint>
#include <deque>

#include "encodings.h"
#include "storage.h"

namespace daedal {

struct LaunchCounts {
  std::uint64_t block, record;  // addresses
  std::uint64_t start;          // cycle of the doorbell
  std::uint64_t last_write;     // cycle of the last acknowledged write, or start
  bool waited;                  // behind another launch, whose end no bus shows: cycles cannot be told
  std::uint64_t lines_read, lines_written, bytes_written;
};

class Counts {
 public:
  explicit Counts(const Storage &storage) : storage_(storage) {}

  // The doorbell was written in this cycle while LAUNCH_HIGH:LAUNCH_LOW held `block`.
  void doorbell(std::uint64_t block, std::uint64_t cycle) {
    std::uint64_t record = storage_.word(block + 8 * LaunchWord::RECORD);
    pending_.push_back({block, record, cycle, cycle, !pending_.empty(), 0, 0, 0});
  }

  // The machine was told to reset: launches are forgotten.
  void reset() { pending_.clear(); }

  void line_read() {
    if (!pending_.empty()) ++pending_.front().lines_read;
  }

  void line_written(std::uint64_t address, unsigned bytes) {
    if (pending_.empty() || in_record(address)) return;
    ++pending_.front().lines_written;
    pending_.front().bytes_written += bytes;
  }

  // A burst from `address` to before `end` was acknowledged. The one with the record's last byte ends the launch.
  void acknowledged(std::uint64_t address, std::uint64_t end, std::uint64_t cycle) {
    if (pending_.empty()) return;
    if (!in_record(address)) {
      pending_.front().last_write = cycle;
      return;
    }
    if (end < pending_.front().record + 8 * RECORD_WORDS) return;
    last_ = pending_.front();
    any_ = true;
    pending_.pop_front();
  }

  bool any() const { return any_; }
  const LaunchCounts &last() const { return last_; }

 private:
  bool in_record(std::uint64_t address) {
    std::uint64_t offset = address - pending_.front().record;
    return offset < 8 * RECORD_WORDS;
  }

  const Storage &storage_;
  std::deque<LaunchCounts> pending_;
  LaunchCounts last_{};
  bool any_ = false;
};

}  // namespace daedal
