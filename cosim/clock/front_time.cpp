#include "front_time.h"

#include <algorithm>

namespace daedal::timing {

namespace {

// Cycles from one thing to the next, as the RTL has them (docs/measuring/model.md).
constexpr Time LEVEL_START = 7;      // from a nest's last word to the first level's bundle
constexpr Time HINT = 17;            // from there to the first request of a load
constexpr Time ACTIVATE = 22;        // from a parent's bundle to the first iteration's, if its lines are there
constexpr Time TO_EVENTS = 9;        // from a bundle to its first step
constexpr Time DEALT = 1;            // more if bundles are dealt
constexpr Time TO_CHUNK = 8;         // from a step to its first chunk's slots
// Of a serial level, and of steps where all levels are serial.
constexpr Time SERIAL_BUNDLE = 4, SERIAL_LOAD = 4, SERIAL_OPERATION = 2;
constexpr Time SERIAL_TOUCH = 8;  // from the first request of a load to that of the next one
constexpr Time SERIAL_STEP = 6, SERIAL_ROW = 7;
constexpr Time TO_QUEUE = 3;         // from a step to the queues
constexpr Time FROM_PORT = 3;        // from a request's leaving a port's queue back to the row fetch
constexpr std::uint64_t LANDING = 10;     // entries that a step's outputs have in front of their queues
constexpr Time THROUGH = 4;          // from a nest's last step until the event unit is through with it
constexpr std::uint32_t NESTS_AHEAD = 2;  // levels may be one nest ahead of the event unit
constexpr std::uint64_t BUNDLES = 24;     // in front of the event unit
constexpr std::uint64_t ROWS_AHEAD = 18;  // steps' rows that wait for their slots

}  // namespace

FrontTime::FrontTime(const Config& config, MemoryTime& memory, Queues& queues)
    : config_(config), map_(config), memory_(memory), queues_(queues) {
  burst_ = static_cast<std::uint64_t>(std::min<std::int64_t>(MAX_BURST, config.page_bytes / config.bus_bytes));
  for (std::int64_t n = 0; n < config.levels; ++n) is_serial_ &= config.serial[n] != 0;
}

// The levels go to the next nest: it must be complete, and the event unit must be through with the one before the last.
bool FrontTime::nest() {
  if (loaded_ == nest_number_) return false;
  const std::uint32_t number = nest_number_ + 1;
  if (number > NESTS_AHEAD && delivering_ <= number - NESTS_AHEAD) return false;
  const Time free = number > NESTS_AHEAD ? over_[number - NESTS_AHEAD] : 0;
  const auto count = static_cast<std::size_t>(config_.levels);
  const auto first = shapes.begin() + static_cast<std::ptrdiff_t>(shape_);
  nest_.assign(first, first + static_cast<std::ptrdiff_t>(count));
  shape_ += count;
  if (shape_ == shapes.size()) {
    shapes.clear();
    shape_ = 0;
  }
  started_ = std::max(complete_[number], free);
  nest_number_ = number;
  deals_ = false;
  for (std::size_t n = 0; n < count; ++n) {
    Level& level = levels_[n];
    // A level has its words once it is through with the nest before.
    level.begins = std::max(started_, level.out + nest_[n].words);
    level.out = std::max(level.out, level.begins + LEVEL_START);
    level.ready = level.prepared = level.out;
    deals_ |= nest_[n].deals;
  }
  for (unsigned unit = 0; unit < 4 * count; ++unit) {
    Load& load = loads_[unit];
    Stream<LoadLine>& stream = lines[unit];
    load.last_line = ~0ull;
    load.limit = nest_[unit / 4].arrays[unit % 4].limit;
    load.used_line = !stream.empty() && stream.front().nest == nest_number_ ? stream.front().line : ~0ull >> 1;
    load.spread = nest_[unit / 4].interleaves;
    load.is_hinted = false;
    const Time touch = nest_[unit / 4].serial ? SERIAL_TOUCH * static_cast<Time>(unit % 4) : 0;
    if (!is_random(unit)) hint(unit, levels_[unit / 4].begins + HINT + touch);
  }
  return true;
}

// A bundle goes from the outermost level that iterates to the event unit.
bool FrontTime::bundle(const Entry& entry) {
  const auto dealt = static_cast<std::uint64_t>(config_.dealt_bundles);
  if (bundle_ - delivered_ >= (deals_ ? dealt : BUNDLES) && !forced_) return false;
  const std::uint32_t iterates = entry.size & 0xff, begins = entry.size >> 8;
  Time parent = UNKNOWN, at = std::max(started_ + LEVEL_START, began_);
  for (unsigned n = 0; n < nest_.size(); ++n) {
    const LevelShape& shape = nest_[n];
    if (!shape.enabled) continue;
    Level& level = levels_[n];
    const bool first = begins >> n & 1;
    if (!(iterates >> n & 1)) {
      at = level.out;
      if (parent == UNKNOWN && !first) continue;
    }
    if (parent != UNKNOWN || first) {  // another activation
      const Time from = parent == UNKNOWN ? at : parent;
      const bool begins_before = n && begins >> (n - 1) & 1;
      const Time read = shape.operands + (begins_before ? shape.held : 0);
      level.prepared = std::max(level.prepared + std::max<Time>(1, read), from + ACTIVATE);
    }
    Time interval = 1;
    if (shape.serial) interval = SERIAL_BUNDLE + SERIAL_LOAD * shape.loads + SERIAL_OPERATION * shape.operations;
    parent = at = level.out = std::max({level.out + interval, level.prepared, level.ready});
  }
  const auto wait_for = [&](Time room) {
    for (unsigned n = 0; n < nest_.size(); ++n)
      if (nest_[n].enabled && iterates >> n & 1) levels_[n].out = std::max(levels_[n].out, room);
  };
  if (!deals_ && bundle_ >= BUNDLES) {
    const Time room = delivered_at_[bundle_ - BUNDLES];
    at = std::max(at, room);
    wait_for(room - TO_EVENTS);
  }
  bundles_[bundle_++] = at + TO_EVENTS + (deals_ ? DEALT : 0);
  const std::uint64_t window = dealt / 8 * 7;
  if (deals_ && bundle_ > window && delivered_ > bundle_ - window) wait_for(delivered_at_[bundle_ - window]);
  return true;
}

// The event unit is through with a nest, and has the words of the next one.
bool FrontTime::next_events(const Entry& entry) {
  if (loaded_ == delivering_) return false;
  over_[delivering_++] = event_ + THROUGH;
  events_started_ = complete_[delivering_];
  event_ = std::max(event_ + THROUGH + static_cast<Time>(entry.size), events_started_);
  return true;
}

// A bundle's events are next.
bool FrontTime::deliver(const Entry& entry) {
  if (static_cast<std::int32_t>(static_cast<std::uint32_t>(bundle_) - entry.size) <= 0) return false;  // it has not come yet
  const Time came = bundles_[entry.size];
  if (came > event_ + 1) queues_.stalls[LOAD] += came - std::max(event_ + 1, events_started_ + LEVEL_START + TO_EVENTS);
  event_ = std::max(event_ + 1, came);
  delivered_at_[delivered_++] = event_;
  stepped_ = false;
  return true;
}

bool FrontTime::step(const Entry& entry) {
  // A bundle's first step takes the bundle's own cycle.
  Time at = stepped_ ? event_ + 1 : event_;
  if (is_serial_) at = event_ + SERIAL_STEP + SERIAL_ROW * (!!(entry.flags & STORE) + !!(entry.flags & FETCH));
  const struct {
    StepFlag flag;
    Stall stall;
    QueueTimes& queue;
  } outputs[] = {{SCALAR, SCALAR_FULL, queues_.scalars},
                 {STORE, ADDRESS_FULL, queues_.addresses},
                 {TOKEN, TOKEN_FULL, queues_.tokens}};
  const Time wanted = at;
  Stall stall = TOKEN_FULL;
  for (const auto& one : outputs) {
    if (!(entry.flags & one.flag)) continue;
    const Time room = one.queue.room(LANDING);
    if (wait(room)) return false;
    if (room > at) {
      stall = one.stall;
      at = room;
    }
  }
  const Time held = at - wanted;
  if (entry.flags & FETCH) {
    if (chunks_ >= ROWS_AHEAD) at = std::max(at, chunk_starts_[(chunks_ - ROWS_AHEAD) % STARTS]);
    now_ = at;
    if (!chunk(entry)) return false;
  }
  for (const auto& one : outputs)
    if (entry.flags & one.flag) one.queue.add(at + TO_QUEUE);
  queues_.stalls[stall] += held;
  event_ = at;
  stepped_ = true;
  delivered_at_[delivered_ - 1] = at;
  return true;
}

bool FrontTime::chunk(const Entry& entry) {
  const unsigned port = memory_.port_of(entry.address);
  const Time slots = queues_.slots(entry.slot, entry.size);
  if (wait(slots)) return false;
  const Time room = memory_.room(port);
  if (wait(room)) return false;
  Time at = std::max(chunk_ + 1, now_ + TO_CHUNK);
  if (chunk_port_ > at) {
    queues_.stalls[PORT_BUSY] += chunk_port_ - at;
    at = chunk_port_;
  }
  if (slots > at) {
    queues_.stalls[VECTOR_FULL] += slots - at;
    at = slots;
  }
  chunk_port_ = room - FROM_PORT;
  chunk_ = at;
  chunk_starts_[chunks_++ % STARTS] = at - TO_CHUNK;
  const std::uint64_t number = queues_.rows[entry.slot].put;
  queues_.reserve(entry.slot, entry.size);
  memory_.ask(std::max(at, room - FROM_PORT), entry.address, entry.size, entry.slot, number);
  return true;
}

bool FrontTime::load_word() {
  const Entry& entry = program.front();
  if (entry.kind == Kind::WORD) return word(entry);
  if (entry.kind == Kind::LENGTH)
    know_length(entry.size);
  else
    complete_[++loaded_] = std::max(words_, began_);
  return true;
}

bool FrontTime::step_levels() {
  const Entry& entry = walk.front();
  switch (entry.kind) {
    case Kind::NEST: return nest();
    case Kind::LINE: return line(entry);
    case Kind::RANDOM: return random(entry);
    default: return bundle(entry);
  }
}

bool FrontTime::step_events() {
  const Entry& entry = events.front();
  switch (entry.kind) {
    case Kind::NEST: return next_events(entry);
    case Kind::DELIVER: return deliver(entry);
    case Kind::CHUNK: return chunk(entry);
    default: return step(entry);
  }
}

bool FrontTime::advance() {
  const std::size_t before = waiting();
  while (!program.empty() && load_word()) done(program);
  while (!walk.empty() && step_levels()) done(walk);
  while (!events.empty() && step_events()) done(events);
  return waiting() != before;
}

void FrontTime::force() { forced_ = true; }

}  // namespace daedal::timing
