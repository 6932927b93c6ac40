// Loads of levels: lines that are read ahead, and when they are there.
#include <algorithm>

#include "front_time.h"

namespace daedal::timing {

namespace {

constexpr Time ACTIVATE = 10;        // from a parent's bundle to the first line's request
constexpr Time LOOK_UP = 3;          // of an iteration's cycles, those from the look-up of its elements on
constexpr Time LOAD_TO_BUNDLE = 7;   // from a line to the bundle with its element
constexpr Time SKIPPED_TO_BUNDLE = 5;  // the same if it is there, and the lines before it are skipped
constexpr Time SERIAL_TO_BUNDLE = 14; // the same of a serial level
constexpr Time RESTART = 6;          // from a line that is not wanted to the request for the one that is
constexpr Time SKIP = 2;             // for each line between
constexpr Time TURN_ASKS = 3;        // from one request of an activation that runs in turn to its next one
constexpr std::uint64_t SERIAL_LINES = 3;  // of each load that a serial level has ahead of the one that it uses

}  // namespace

// Loads and rows share a way to memory, on which loads go first.
void FrontTime::ask_load(Time at, std::uint64_t address, std::uint32_t lines, std::uint32_t reader, std::uint64_t number) {
  memory_.ask(at, address, lines, reader, number);
  load_asks_.insert(at, [&](Time other) { return other > at; });
}

bool FrontTime::is_random(unsigned unit) const {
  return !config_.serial[unit / 4] && unit % 4 >= static_cast<unsigned>(config_.sequential_loads[unit / 4]);
}

// Before a level has a bundle its loads read from where their arrays begin, if they know where that is.
void FrontTime::hint(unsigned unit, Time at) {
  Load& load = loads_[unit];
  const LevelShape& shape = levels_[unit / 4].shape;
  const Array& array = shape.arrays[unit % 4];
  const bool reads = !lines[unit].empty() && lines[unit].front().nest == levels_[unit / 4].nest;
  if (shape.interleaves) return;
  if (shape.serial || (reads && lines[unit].front().line == array.first)) {
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
    const Time there = loads_[unit].early[levels_[level].shape.arrays[unit % 4].first];
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
    if (skipped >= stream.size() || stream.ahead(skipped).nest != levels_[unit / 4].nest) {
      if (over || levels_[unit / 4].nest < nests) overrun(unit, at);
      return;
    }
    const LoadLine& first = stream.ahead(skipped);
    const bool follows = first.line == load.last_line + 1;
    if (!follows && comes(unit, first, at)) continue;
    if (!follows && !(wanted && skipped == 0)) {
      overrun(unit, at);
      return;
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
    ask_load(load.asks, first.address, count, LOADS + unit, load.asked);
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
    ask_load(load.asks, map_(first * bus), static_cast<std::uint32_t>(count), EARLY_LOADS + unit, first);
    load.last_line += count;
  }
}

std::uint64_t FrontTime::begin_turns(unsigned unit) {
  Load& load = loads_[unit];
  while (!load.turns.empty() && load.turns.front().is_over && load.turns.front().used == load.turns.front().lines.size()) {
    load.turns.pop();
    ++load.turn;
  }
  Turns& one = load.turns.put();
  one.lines.clear();
  one.asked = one.used = 0;
  one.asks = 0;
  one.is_over = false;
  return load.turn + load.turns.size() - 1;
}

// Asks for lines of an activation, so many at most.
void FrontTime::ask_turns(unsigned unit, Turns& turns, std::uint64_t most, Time at) {
  Load& load = loads_[unit];
  for (; turns.asked < most && turns.asked < turns.lines.size(); ++turns.asked) {
    Turns::Line& line = turns.lines[turns.asked];
    line.number = load.asked;
    turns.asks = std::max(turns.asks + TURN_ASKS, at);
    load.there[load.asked] = UNKNOWN;
    ask_load(turns.asks, line.address, 1, LOADS + unit, load.asked++);
  }
}

// Activations that are over make room for others: those that have a context ask for all lines that they have places for,
// those that wait for one for half as many.
void FrontTime::enter(unsigned unit, unsigned parent, bool from_parent, Time at) {
  Load& load = loads_[unit];
  const auto count = static_cast<std::uint64_t>(config_.context_count);
  const std::uint64_t places = turn_places(), known = load.turn + load.turns.size();
  const std::uint64_t entries = count * static_cast<std::uint64_t>(config_.context_ahead);
  load.placed = std::max(load.placed, load.turn);
  for (std::uint64_t number = load.placed; number < std::min(load.ended + entries, known); ++number) {
    const bool is_placed = number < load.ended + count;
    if (!is_placed && number < load.entered) continue;
    if (from_parent && number >= load.started) {  // its bundle must be there
      Stream<Time>& outs = levels_[parent].outs;
      if (number - load.started >= outs.size()) return;
      at = std::max(at, outs.ahead(number - load.started) + ACTIVATE);
    }
    ask_turns(unit, load.turns.ahead(number - load.turn), is_placed ? places : places / 2, at);
    if (is_placed) load.placed = number + 1;
    load.entered = std::max(load.entered, number + 1);
  }
}

// Lines that each activation which runs in turn has places for.
std::uint64_t FrontTime::turn_places() const {
  const auto entries = static_cast<std::uint64_t>(config_.context_ahead * config_.context_count);
  return std::max<std::uint64_t>(2, 2 * static_cast<std::uint64_t>(config_.lookahead_lines) / entries);
}

bool FrontTime::turn_line(unsigned unit, const Entry& entry) {
  Load& load = loads_[unit];
  Level& level = levels_[unit / 4];
  Turns& turns = load.turns.ahead(entry.address - load.turn);
  const Time at = std::max(level.out, level.prepared) - LOOK_UP;
  if (entry.flags & ACTIVATES && entry.address == load.started) {
    ++load.started;
    load.from_parent = entry.flags & FROM_PARENT;
  }
  enter(unit, entry.size, load.from_parent, at);
  ask_turns(unit, turns, turns.used + turn_places(), at);
  const Time there = load.there[turns.lines[turns.used].number];
  if (wait(there)) return false;
  level.ready = std::max(level.ready, there + LOAD_TO_BUNDLE);
  ++load.used;
  if (++turns.used == turns.lines.size() && turns.is_over) ++load.ended;
  return true;
}

bool FrontTime::line(const Entry& entry) {
  const unsigned unit = 4u * entry.level + entry.slot;
  Load& load = loads_[unit];
  if (load.spread) return turn_line(unit, entry);
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
    for (std::uint64_t n = load.used_line + 1; n < number; ++n) {
      if (wait(load.early[n])) return false;
      at = std::max(at, load.early[n]) + SKIP;
    }
    if (!config_.serial[entry.level]) at -= LOAD_TO_BUNDLE - SKIPPED_TO_BUNDLE;
    there = std::max(there, at);
  }
  level.ready = std::max(level.ready, there + (config_.serial[entry.level] ? SERIAL_TO_BUNDLE : LOAD_TO_BUNDLE));
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
    ask_load(at, next.address, 1, LOADS + unit, load.asked);
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
