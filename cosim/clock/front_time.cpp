#include "front_time.h"

#include <algorithm>

namespace daedal::timing {

namespace {

// Cycles from one thing to the next, as the RTL has them (docs/measuring/model.md).
constexpr Time LEVEL_START = 7;      // from a nest's last word to the first level's bundle
constexpr Time HINT = 17;            // from there to the first request of a load
constexpr Time ACTIVATE = 10;        // from a parent's bundle to the first iteration's, if its lines are there
constexpr Time ACTIVATE_HELD = 28;   // the same of a level that keeps what its parent's activation has
constexpr Time TO_EVENTS = 23;       // from a bundle to its first step
constexpr Time TAKES = 5;            // from a nest's words until a bundle of it is taken
constexpr Time ENDED = 7;            // from a level's last bundle until it takes words of the next nest
constexpr Time DEALT = 1;            // more if bundles are dealt
constexpr Time TO_CHUNK = 8;         // from a step to its first chunk's slots
// Of a serial level, and of steps where all levels are serial.
constexpr Time SERIAL_BUNDLE = 4, SERIAL_LOAD = 4, SERIAL_OPERATION = 2;
constexpr Time SERIAL_TOUCH = 8;  // from the first request of a load to that of the next one
constexpr Time SERIAL_STEP = 6, SERIAL_ROW = 7;
constexpr Time TO_QUEUE = 3;         // from a step to the queues
constexpr Time FROM_PORT = 3;        // from a request's leaving a port's queue back to the row fetch
constexpr std::uint64_t LANDING = 10;     // entries that a step's outputs have in front of their queues
constexpr Time THROUGH = 11;          // from a nest's last step until the event unit is through with it
constexpr Time SETTLE = 4;           // cycles of the loader from a nest's last word to the first one of the next nest
constexpr std::uint64_t BUNDLES = 38;     // in front of the event unit
constexpr std::uint64_t ACTIVATIONS = 40; // from one level on their way through the next one
constexpr Time LOOK_UP = 3;               // of an iteration's cycles, those from the look-up of its elements on
constexpr std::uint64_t ROWS_AHEAD = 18;  // steps' rows that wait for their slots

}  // namespace

FrontTime::FrontTime(const Config& config, MemoryTime& memory, Queues& queues)
    : config_(config), map_(config), memory_(memory), queues_(queues) {
  burst_ = static_cast<std::uint64_t>(std::min<std::int64_t>(MAX_BURST, config.page_bytes / config.bus_bytes));
  for (std::int64_t n = 0; n < config.levels; ++n) is_serial_ &= config.serial[n] != 0;
}

// A level goes to the next nest, whose words must have come.
bool FrontTime::nest(unsigned number) {
  Level& level = levels_[number];
  if (level.through != level.nest) {
    if (!level.shape.enabled && !is_through(number) && !forced_) return false;
    level.through = level.nest;
    level.ended = level.out;
    level.words.began = UNKNOWN;
    level.words.next = level.out + ENDED;
  }
  hand_out(level.words);
  if (level.words.began == UNKNOWN) return false;
  level.shape = shapes[number].front();
  shapes[number].pop();
  ++level.nest;
  level.begins = level.words.began;
  level.out = std::max(level.out, level.begins + LEVEL_START);
  level.ready = level.prepared = level.out;
  for (unsigned unit = 4 * number; unit < 4 * number + 4; ++unit) {
    Load& load = loads_[unit];
    Stream<LoadLine>& stream = lines[unit];
    load.last_line = ~0ull;
    load.limit = level.shape.arrays[unit % 4].limit;
    load.used_line = !stream.empty() && stream.front().nest == level.nest ? stream.front().line : ~0ull >> 1;
    load.spread = level.shape.interleaves;
    load.is_hinted = false;
    const Time touch = level.shape.serial ? SERIAL_TOUCH * static_cast<Time>(unit % 4) : 0;
    if (!is_random(unit)) hint(unit, level.begins + HINT + touch);
  }
  return true;
}

// Whether the last bundle has passed a level that is not enabled: the one before it that is says when.
bool FrontTime::is_through(unsigned number) {
  Level& level = levels_[number];
  for (unsigned n = number; n-- > 0;) {
    const Level& outer = levels_[n];
    if (outer.nest == level.nest && !outer.shape.enabled && outer.through != outer.nest) continue;
    if (outer.through < level.nest) return false;
    level.out = std::max(level.out, outer.ended);
    break;
  }
  return true;
}

// The activation that comes next, if one does, is prepared; false if the bundle that begins it is not there yet.
bool FrontTime::activate(unsigned number, unsigned flags, unsigned parent) {
  Level& level = levels_[number];
  if (!(flags & ACTIVATES) || level.activated) return true;
  Time from = level.begins + LEVEL_START;
  if (flags & FROM_PARENT) {
    Level& outer = levels_[parent];
    if (outer.outs.empty()) {
      if (!forced_) return false;
    } else {
      from = outer.outs.front();
      outer.outs.pop();
      outer.taken[outer.took++] = std::max(from, level.out - LOOK_UP);
    }
  }
  const Time read = level.shape.operands + (flags & HELD_TOO ? level.shape.held : 0);
  level.prepared = std::max(level.prepared + std::max<Time>(1, read), from + (number > 1 && !level.shape.serial ? ACTIVATE_HELD : ACTIVATE));
  level.activated = true;
  return true;
}

// Activations that wait at a level, or that it has lines read for.
std::uint64_t FrontTime::room_for(unsigned number) const {
  const auto entries = static_cast<std::uint64_t>(config_.context_ahead * config_.context_count);
  return ACTIVATIONS + (levels_[number].shape.interleaves ? entries : 0);
}

// A bundle goes from a level to the next one, or to the event unit.
bool FrontTime::bundle(unsigned number, const Entry& entry) {
  Level& level = levels_[number];
  const bool to_events = entry.flags & TO_EVENTS_UNIT, deals = entry.flags & DEALT_OUT;
  const auto dealt = static_cast<std::uint64_t>(config_.dealt_bundles);
  const auto last = std::min<unsigned>(entry.level, static_cast<unsigned>(config_.levels) - 1);
  if (!activate(number, entry.flags, entry.slot)) return false;
  if (!forced_) {
    if (to_events && (delivering_ < level.nest || bundle_ - delivered_ >= (deals ? dealt : BUNDLES))) return false;
    if (!to_events && level.outs.size() >= room_for(entry.level)) return false;
    for (unsigned n = number + 1; n <= last; ++n)
      if (levels_[n].nest < level.nest) return false;
  }
  if (entry.flags & ACTIVATES) level.activated = false;
  Time interval = 1;
  if (level.shape.serial)
    interval = SERIAL_BUNDLE + SERIAL_LOAD * level.shape.loads + SERIAL_OPERATION * level.shape.operations;
  if (!(entry.flags & PASSES)) level.out = std::max({level.out + interval, level.prepared, level.ready});
  // It leaves when the levels that it passes, and the next one, are at this nest too.
  for (unsigned n = number + 1; n <= last; ++n) level.out = std::max(level.out, levels_[n].begins + TAKES);
  if (!to_events) {
    const std::uint64_t room = room_for(entry.level);
    if (level.put >= room) level.out = std::max(level.out, level.taken[level.put - room]);
    ++level.put;
    level.outs.push(level.out);
    return true;
  }
  Time at = level.out = std::max(level.out, events_started_ + TAKES);
  if (!deals && bundle_ >= BUNDLES) {
    const Time room = delivered_at_[bundle_ - BUNDLES];
    at = std::max(at, room);
    level.out = std::max(level.out, room - TO_EVENTS);
  }
  bundles_[bundle_++] = at + TO_EVENTS + (deals ? DEALT : 0);
  const std::uint64_t window = dealt / 8 * 7;
  if (deals && bundle_ > window && delivered_ > bundle_ - window)
    level.out = std::max(level.out, delivered_at_[bundle_ - window]);
  return true;
}

// The event unit is through with a nest, and has the words of the next one.
bool FrontTime::next_events() {
  if (through_ != delivering_) {
    through_ = delivering_;
    over_[through_] = event_ + THROUGH;
    event_words_.began = UNKNOWN;
    event_words_.next = event_ + THROUGH;
  }
  hand_out(event_words_);
  if (event_words_.began == UNKNOWN) return false;
  ++delivering_;
  event_ = events_started_ = event_words_.began;
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
  const Time wanted = at;
  for (; !load_asks_.empty() && load_asks_.front() <= std::max(at, way_); load_asks_.pop())
    way_ = std::max(way_, load_asks_.front()) + 1;
  at = std::max(at, way_);
  way_ = at + 1;
  queues_.stalls[PORT_BUSY] += at - wanted;
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
  if (entry.kind == Kind::LENGTH) {
    know_length(entry.size);
  } else {
    words_ = std::max(words_, began_);
    mark(true, words_);
    words_ += SETTLE;
    mark(false, words_);
  }
  return true;
}

bool FrontTime::step_level(unsigned number) {
  const Entry& entry = walk[number].front();
  switch (entry.kind) {
    case Kind::NEST: return nest(number);
    case Kind::LINE: return activate(number, entry.flags, entry.size) && line(entry);
    case Kind::RANDOM: return activate(number, entry.flags, entry.size) && random(entry);
    default: return bundle(number, entry);
  }
}

bool FrontTime::step_events() {
  const Entry& entry = events.front();
  switch (entry.kind) {
    case Kind::NEST: return next_events();
    case Kind::DELIVER: return deliver(entry);
    case Kind::CHUNK: return chunk(entry);
    default: return step(entry);
  }
}

bool FrontTime::advance() {
  const std::size_t before = waiting();
  while (!program.empty() && load_word()) done(program);
  for (unsigned n = 0; n < static_cast<unsigned>(config_.levels); ++n)
    while (!walk[n].empty() && step_level(n)) done(walk[n]);
  while (!events.empty() && step_events()) done(events);
  return waiting() != before;
}

void FrontTime::force() { forced_ = true; }

}  // namespace daedal::timing
