// Loads of levels: lines that are read ahead, and when they are there.
#include <algorithm>

#include "front_time.h"

namespace daedal::timing {

namespace {

constexpr Time LOOK_UP = 20;         // of an iteration's cycles, those from the look-up of its elements on
constexpr Time LOAD_TO_BUNDLE = 25;  // from a line to the bundle with its element
constexpr Time SERIAL_TO_BUNDLE = 18; // the same of a serial level
constexpr Time RESTART = 6;          // from a line that is not wanted to the request for the one that is
constexpr Time SKIP = 2;             // for each line between
constexpr std::uint64_t SERIAL_LINES = 3;  // of each load that a serial level has ahead of the one that it uses

}  // namespace

bool FrontTime::is_random(unsigned unit) const {
  return !config_.serial[unit / 4] && unit % 4 >= static_cast<unsigned>(config_.sequential_loads[unit / 4]);
}

// Before a level has a bundle its loads read from where their arrays begin, if they know where that is.
void FrontTime::hint(unsigned unit, Time at) {
  Load& load = loads_[unit];
  const LevelShape& shape = nest_[unit / 4];
  const Array& array = shape.arrays[unit % 4];
  const bool reads = !lines[unit].empty() && lines[unit].front().nest == nest_number_;
  if (shape.serial || shape.interleaves || (reads && lines[unit].front().line == array.first)) {
    prefetch(unit, true, at);
    return;
  }
  if (!shape.enabled || array.first == ~0ull || (unit % 2 && array.first - shape.arrays[unit % 4 - 1].first <= 1)) return;
  load.used_line = array.first;
  load.last_line = array.first - 1;
  overrun(unit, at);
  load.is_hinted = load.last_line != array.first - 1;
}

// A line within the look-ahead of the last one that was used is reached line by line, without asking for it anew.
bool FrontTime::comes(unsigned unit, const LoadLine& line, Time at) {
  Load& load = loads_[unit];
  if (load.last_line == ~0ull || line.line <= load.used_line) return false;
  const bool serial = config_.serial[unit / 4] != 0;
  if (line.line - load.used_line >= (serial ? SERIAL_LINES : static_cast<std::uint64_t>(config_.lookahead_lines))) return false;
  if (line.line > load.last_line) overrun(unit, at);
  if (line.line > load.last_line) return false;
  load.there[load.asked++] = EARLY;
  return true;
}

// Loads of a level go on from where lines are wanted when those are there that are not; false if that is not known.
bool FrontTime::restart(unsigned level, Time& at) {
  for (unsigned unit = 4 * level; unit < 4 * level + 4; ++unit) {
    if (!loads_[unit].is_hinted) continue;
    const Time there = loads_[unit].early[nest_[level].arrays[unit % 4].first];
    if (wait(there)) return false;
    at = std::max(at, there + RESTART);
  }
  return true;
}

// Asks for lines ahead, as far as there is room for them and they follow each other.
void FrontTime::prefetch(unsigned unit, bool wanted, Time at) {
  Load& load = loads_[unit];
  Stream<LoadLine>& stream = lines[unit];
  const bool serial = config_.serial[unit / 4] != 0;
  const std::uint64_t room = serial ? SERIAL_LINES : static_cast<std::uint64_t>(config_.lookahead_lines);
  const std::uint64_t most = serial ? 1 : static_cast<std::uint64_t>(config_.lookahead_burst);
  for (;;) {
    const std::uint64_t skipped = load.asked - load.used;
    if (skipped >= stream.size() || stream.ahead(skipped).nest != nest_number_) {
      if (!load.spread && (over || skipped < stream.size())) overrun(unit, at);
      return;
    }
    const LoadLine& first = stream.ahead(skipped);
    const bool follows = load.spread || first.line == load.last_line + 1;
    if (!follows && comes(unit, first, at)) continue;
    if (!follows && !(wanted && skipped == 0)) {
      overrun(unit, at);
      return;
    }
    if (load.spread) {
      if (!ask_spread(unit, first, at)) return;
      wanted = false;
      continue;
    }
    std::uint32_t count = 1;
    const std::uint64_t block = most - first.line % most;
    while (count < block && skipped + count < stream.size()) {
      const LoadLine& next = stream.ahead(skipped + count);
      if (next.nest != first.nest || next.line != first.line + count ||
          next.address != first.address + count * static_cast<std::uint64_t>(config_.bus_bytes))
        break;
      ++count;
    }
    if (skipped + block > room && skipped) return;
    load.asks = std::max(load.asks + 2, at);
    for (std::uint32_t n = 0; n < count; ++n) load.there[load.asked + n] = UNKNOWN;
    memory_.ask(load.asks, first.address, count, LOADS + unit, load.asked);
    load.asked += count;
    load.last_line = first.line + count - 1;
    wanted = false;
  }
}

// Lines behind those that are wanted are read too, up to the array's limit, as far as there is room.
void FrontTime::overrun(unsigned unit, Time at) {
  Load& load = loads_[unit];
  const bool serial = config_.serial[unit / 4] != 0;
  const std::uint64_t room = serial ? SERIAL_LINES : static_cast<std::uint64_t>(config_.lookahead_lines);
  const std::uint64_t most = serial ? 1 : static_cast<std::uint64_t>(config_.lookahead_burst);
  const auto bus = static_cast<std::uint64_t>(config_.bus_bytes);
  if (load.last_line == ~0ull) return;
  while (load.last_line + 1 < load.limit) {
    const std::uint64_t first = load.last_line + 1, block = most - first % most;
    if (first + block - load.used_line > room) return;
    const std::uint64_t count = std::min(block, load.limit - first);
    load.asks = std::max(load.asks + 2, at);
    for (std::uint64_t n = 0; n < count; ++n) load.early[first + n] = UNKNOWN;
    memory_.ask(load.asks, map_(first * bus), static_cast<std::uint32_t>(count), EARLY_LOADS + unit, first);
    load.last_line += count;
  }
}

// Asks for the next line of a level that interleaves, whose activations have places of their own; false if they are full.
bool FrontTime::ask_spread(unsigned unit, const LoadLine& line, Time at) {
  Load& load = loads_[unit];
  const auto entries = static_cast<std::uint64_t>(config_.context_ahead * config_.context_count);
  const std::uint64_t places = std::max<std::uint64_t>(2, 2 * static_cast<std::uint64_t>(config_.lookahead_lines) / entries);
  if (load.asked - load.used >= places * entries) return false;
  if (line.place >= places) {
    if (load.used_places[line.context] <= line.place - places) return false;
    at = std::max(at, load.used_at[line.context * PLACES + (line.place - places) % PLACES]);
  }
  load.asks = std::max(load.asks + 1, at);
  load.there[load.asked] = UNKNOWN;
  memory_.ask(load.asks, line.address, 1, LOADS + unit, load.asked++);
  return true;
}

bool FrontTime::line(const Entry& entry) {
  const unsigned unit = 4u * entry.level + entry.slot;
  Load& load = loads_[unit];
  Level& level = levels_[entry.level];
  if (load.asked == load.used) {
    Time at = std::max(level.out, level.prepared) - LOOK_UP;
    if (!restart(entry.level, at)) return false;
    prefetch(unit, true, at);
  }
  Time there = load.there[load.used];
  if (wait(there)) return false;
  if (there == EARLY) {
    const std::uint64_t number = lines[unit].front().line;
    there = load.early[number];
    Time at = std::max(level.out, level.prepared) - LOOK_UP;
    if (wait(there) || !restart(entry.level, at)) return false;
    for (std::uint64_t n = load.used_line + 1; n < number; ++n) at = std::max(at, load.early[n]) + SKIP;
    there = std::max(there, at);
  }
  level.ready = std::max(level.ready, there + (config_.serial[entry.level] ? SERIAL_TO_BUNDLE : LOAD_TO_BUNDLE));
  if (load.spread) {
    const LoadLine& one = lines[unit].front();
    load.used_places[one.context] = one.place + 1;
    load.used_at[one.context * PLACES + one.place % PLACES] = std::max(level.out - LOOK_UP, there);
  }
  load.used_line = lines[unit].front().line;
  lines[unit].pop();
  ++load.used;
  prefetch(unit, false, std::max(level.out - LOOK_UP, there));
  return true;
}

bool FrontTime::random(const Entry& entry) {
  const unsigned unit = 4u * entry.level + entry.slot;
  Load& load = loads_[unit];
  Level& level = levels_[entry.level];
  const auto most = static_cast<std::uint64_t>(config_.random_outstanding);
  while (load.asked - load.used < std::min<std::uint64_t>(most, lines[unit].size())) {
    const LoadLine& next = lines[unit].ahead(load.asked - load.used);
    Time at = std::max({load.asks + 1, level.out - LOOK_UP, level.prepared - LOOK_UP});
    if (load.asked >= most) at = std::max(at, load.there[load.asked - most]);
    load.asks = at;
    load.there[load.asked] = UNKNOWN;
    memory_.ask(at, next.address, 1, LOADS + unit, load.asked);
    ++load.asked;
  }
  const Time there = load.there[load.used];
  if (wait(there)) return false;
  level.ready = std::max(level.ready, there + LOAD_TO_BUNDLE);
  lines[unit].pop();
  ++load.used;
  return true;
}

void FrontTime::arrived(const Request& request, Time first) {
  const bool is_early = request.reader >= EARLY_LOADS;
  Window<Time>& there = request.reader == LOADER ? word_lines_
                        : is_early               ? loads_[request.reader - EARLY_LOADS].early
                                                 : loads_[request.reader - LOADS].there;
  for (std::uint32_t n = 0; n < request.lines; ++n) there[request.number + n] = first + n;
}

}  // namespace daedal::timing
