#include <algorithm>

#include "lanes_time.h"

namespace daedal::timing {

namespace {

constexpr Time DATA = 2;             // from the queue to the store unit
constexpr Time STREAM = 3;           // from the return bus to the store unit
constexpr Time LINE = 5;             // from there to the batch
constexpr Time FLUSH = 6;            // from the last line to the last burst

}  // namespace

// Stores rows as far as their data are there; whether it stored something.
bool LanesTime::store() {
  bool did = false;
  const auto bus = static_cast<std::uint64_t>(config_.bus_bytes), lanes = 4 * static_cast<std::uint64_t>(config_.lanes);
  while (!stores.empty()) {
    const Stored& row = stores.front();
    QueueTimes& from = row.stream ? queues_.rows[2] : queues_.data;
    if (!in_row_ && queues_.addresses.taken == queues_.addresses.put) return did;
    const std::uint64_t unit = row.stream ? bus : lanes;
    const std::uint64_t beats = (row.size + unit - 1) / unit;
    while (in_row_ < beats) {
      if (from.taken == from.put || from.in[from.taken] == UNKNOWN) return did;
      Time at = std::max({unit_ + 1, from.in[from.taken] + (row.stream ? STREAM : DATA), not_before_, room_});
      if (!in_row_) at = std::max(at, queues_.addresses.in[queues_.addresses.taken] + 2);
      // Whether a short batch goes depends on the lines that have come by then.
      if (!mixed && at > memory_.now() && memory_.pending() && !forced_) return did;
      if (mixed && memory_.unwritten >= places_) {
        if (!forced_) return did;
      }
      if (!in_row_) queues_.addresses.take(at);
      from.take(at);
      unit_ = at;
      const std::uint64_t first = row.address + in_row_ * unit;
      const std::uint64_t last = std::min<std::uint64_t>(row.address + row.size, first + unit) - 1;
      ++in_row_;
      if (first / bus != last / bus && in_row_ == 1) ++unit_;
      for (std::uint64_t number = first / bus; number <= last / bus; ++number) line(at, number);
      did = true;
    }
    in_row_ = 0;
    stores.pop();
  }
  return did;
}

// A beat for this line; the line before it is complete.
void LanesTime::line(Time at, std::uint64_t number) {
  if (number == last_line_) {
    last_line_at_ = at;
    return;
  }
  const auto whole = static_cast<std::uint64_t>(config_.write_batch);
  const std::uint64_t early = std::min(whole, static_cast<std::uint64_t>(config_.vector_beats) / 4);
  if (!mixed && held_ >= early) {  // memory may have had nothing to read since the line before
    const Time idle = memory_.idle_from(last_line_at_ + LINE, at + LINE);
    if (idle != MemoryTime::NEVER) batch(idle, true);
  }
  const std::uint64_t row = memory_.row_of(number * static_cast<std::uint64_t>(config_.bus_bytes));
  rows_ += row != row_;
  row_ = row;
  const bool joins = number == last_line_ + 1 && burst_ < static_cast<std::uint64_t>(config_.write_burst);
  last_line_ = number;
  last_line_at_ = at;
  if (mixed) {
    if (!joins && burst_) {
      memory_.write(at + LINE, burst_, MemoryTime::NO_HOLD);
      burst_ = 0;
    }
    ++burst_;
    return;
  }
  ++held_;
  const bool is_short = held_ < whole;
  if (!is_short || (held_ >= early && queues_.plenty(at))) batch(at + LINE, is_short);
}

// All lines that are held are written; reads wait meanwhile.
void LanesTime::batch(Time at, bool is_short) {
  if (!held_) return;
  const Time until = memory_.write(at, held_, is_short ? MemoryTime::SHORT : MemoryTime::WHOLE, rows_);
  rows_ = 0;
  // Lines that come meanwhile take the places of those that have gone.
  room_ = std::max(room_, at + (places_ - MARGIN <= held_ ? 40 : 0));
  acknowledged_ = std::max(acknowledged_, until);
  held_ = 0;
}

Time LanesTime::flush() {
  const Time at = std::max(last_line_at_, unit_) + LINE + FLUSH;
  if (mixed) {
    if (burst_) memory_.write(at, burst_, MemoryTime::NO_HOLD);
    burst_ = 0;
  } else {
    batch(at, false);
  }
  last_line_ = ~0ull;
  return std::max({acknowledged_, at, lane_});
}

}  // namespace daedal::timing
