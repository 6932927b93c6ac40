// When entries of the queues come and go: what access, execute and store side know of each other.
#pragma once
#include "memory_time.h"

namespace daedal::timing {

enum Stall : unsigned { TOKEN_FULL, SCALAR_FULL, ADDRESS_FULL, VECTOR_FULL, PORT_BUSY, LOAD, TOKEN_EMPTY, VECTOR_EMPTY,
                        SCALAR_EMPTY, STORE_FULL, HAZARD, STALLS };

// A queue: when each entry came, and when each was taken.
struct QueueTimes {
  explicit QueueTimes(std::int64_t depth)
      : depth(static_cast<std::uint64_t>(depth)), in(4 * this->depth + 64), out(4 * this->depth + 64) {}
  std::uint64_t depth, put = 0, taken = 0;
  Window<Time> in, out;
  std::uint64_t mark = 0, mark_at = 0;
  std::uint64_t came = 0, gone = 0;  // entries, by the time that was asked for last

  // When there is a place for the next entry; UNKNOWN if nobody knows yet.
  Time room(std::uint64_t more = 0) const {
    const std::uint64_t places = depth + more;
    if (put < places) return 0;
    return taken > put - places ? const_cast<QueueTimes*>(this)->out[put - places] : UNKNOWN;
  }
  void add(Time at) {
    in[put++] = at;
    // The most entries at a time: those that came and were not taken by then.
    while (mark_at < taken && out[mark_at] <= at) ++mark_at;
    const std::uint64_t held = put - mark_at;
    if (held > mark) mark = held;
  }
  void take(Time at) { out[taken++] = at; }
  // Entries that are there at this time, which is no earlier than in the call before, and were not taken.
  std::uint64_t waiting(Time at) {
    while (came < put && in[came] != UNKNOWN && in[came] <= at) ++came;
    while (gone < taken && out[gone] <= at) ++gone;
    return came - std::min(came, gone);
  }
};

struct Queues {
  explicit Queues(const Config& config)
      : rows{QueueTimes(config.vector_beats), QueueTimes(config.vector_beats), QueueTimes(config.vector_beats)},
        tokens(config.token_depth), scalars(config.scalar_depth), addresses(config.store_address_depth),
        data(config.store_beats), budget(static_cast<std::uint64_t>(config.reorder_beats)), order(4 * budget + 64) {}

  QueueTimes rows[3];  // lines: `in` is when they are there, UNKNOWN before they are
  QueueTimes tokens, scalars, addresses, data;
  // Whether the execute unit has rows for longer than memory needs for a short batch of writes.
  bool plenty(Time at) {
    const std::uint64_t most = std::min(rows[0].depth, budget) / 8 * 7;
    return rows[0].waiting(at) + rows[1].waiting(at) >= most;
  }
  std::uint64_t budget, reserved = 0;
  Window<std::uint64_t> order;  // of each line reserved: its queue in the low bits, its number there
  Time stalls[STALLS] = {};

  // When so many more lines of this queue can be reserved.
  Time slots(unsigned queue, std::uint64_t lines) {
    QueueTimes& rows_ = rows[queue];
    Time at = 0;
    if (rows_.put + lines > rows_.depth) {
      const std::uint64_t before = rows_.put + lines - rows_.depth - 1;
      if (rows_.taken <= before) return UNKNOWN;
      at = rows_.out[before];
    }
    if (reserved + lines > budget) {
      const std::uint64_t entry = order[reserved + lines - budget - 1], number = entry >> 2;
      QueueTimes& other = rows[entry & 3];
      if (other.taken <= number) return UNKNOWN;
      at = std::max(at, other.out[number]);
    }
    return at;
  }
  void reserve(unsigned queue, std::uint64_t lines) {
    QueueTimes& rows_ = rows[queue];
    for (std::uint64_t n = 0; n < lines; ++n) {
      rows_.in[rows_.put] = UNKNOWN;
      order[reserved++] = rows_.put++ << 2 | queue;
    }
    const std::uint64_t held = rows_.put - rows_.taken;
    if (held > rows_.mark) rows_.mark = held;
  }
};

}  // namespace daedal::timing
