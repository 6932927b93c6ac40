#include "access_unit.h"

#include <algorithm>

namespace daedal {

namespace {

bool holds(std::uint64_t predicate, std::uint64_t sense, const std::uint64_t* registers) {
  return predicate == Predicate::ALWAYS || (registers[predicate - 1] != 0) == (sense == Sense::NONZERO);
}

std::uint64_t calculate(Width width, std::uint64_t op, std::uint64_t a, std::uint64_t b) {
  constexpr unsigned SHIFT_BITS = 6;
  const std::int64_t x = width.as_signed(a), y = width.as_signed(b);
  switch (op) {
    case AluOp::ADD: return width.low(a + b);
    case AluOp::SUB: return width.low(a - b);
    case AluOp::MUL: return width.low(low_bits(a, INDEX_BITS) * low_bits(b, PITCH_BITS));
    case AluOp::AND: return a & b;
    case AluOp::MIN: return x < y ? a : b;
    case AluOp::MAX: return x > y ? a : b;
    case AluOp::EQUAL: return a == b;
    case AluOp::NOT_EQUAL: return a != b;
    case AluOp::LESS: return x < y;
    case AluOp::SHIFT_LEFT: return width.low(a << low_bits(b, SHIFT_BITS));
    case AluOp::SHIFT_RIGHT: return a >> low_bits(b, SHIFT_BITS);
    default: return 0;
  }
}

std::uint64_t place(Width width, std::uint64_t base, std::uint64_t index, std::uint64_t pitch) {
  return width.low(base + low_bits(index, INDEX_BITS) * low_bits(pitch, PITCH_BITS));
}

}  // namespace

void AccessUnit::start() {
  done_ = started_ = false;
  open_.clear();
  interleaving_ = dealing_ = levels_.size();
  for (unsigned level = 0; level < levels_.size(); ++level)
    if (levels_[level].control.enable) {
      if (levels_[level].control.interleave) interleaving_ = level;
      if (levels_[level].control.deal) dealing_ = level;
    }
  in_order_ = interleaving_ == levels_.size() && dealing_ == levels_.size();
  core_.loaded.clear();
  tell();
  lost_ = false;
  if (dealing_ < levels_.size()) dealer_.start(levels_[dealing_].contexts, core_.config.dealt_bundles);
  contexts_.assign(interleaving_ < levels_.size() ? levels_[interleaving_].contexts : 0, Frame{});
  parked_ = next_ = 0;
  for (unsigned kind = 0; kind < EventKind::limit; ++kind) {
    masks_[kind] = 0;
    for (unsigned level = 0; level < levels_.size(); ++level)
      masks_[kind] |= (levels_[level].events[kind].count != 0) << level;
  }
  foresee();
}

// Which rows come next is in the elements that follow the present ones: the host is told early, as its memory is slow.
void AccessUnit::foresee() {
  std::fill(std::begin(follows_), std::end(follows_), nullptr);
  for (unsigned number = 0; number < levels_.size(); ++number) {
    const Level& level = levels_[number];
    const EventControl& event = level.events[EventKind::ITER];
    if (!level.control.enable) continue;
    for (unsigned slot = 0; slot < level.sequential; ++slot) {
      const LoadControl& load = level.loads[slot].control;
      if (!load.enable || !load.destination || load.index != LoadIndex::INDUCTION) continue;
      for (unsigned k = 0; k < event.count; ++k) {
        const Step& step = steps_[event.first + k];
        if (step.control.fetch_enable && step.control.fetch_index == load.destination) follows_[4 * number + slot] = &step;
      }
    }
  }
}

// Has the host fetch the row of an element some places further on, if that is one; no more than a hint.
void AccessUnit::prefetch(unsigned unit, const Bundle& bundle, std::uint64_t at, unsigned size) const {
  constexpr unsigned ELEMENTS_AHEAD = 16, HOST_LINE = 64;
  const Step& step = *follows_[unit];
  at += ELEMENTS_AHEAD * size;
  if (!core_.memory.contains(at, size)) return;
  const std::uint64_t base = step.value(step.control.fetch_base, StepField::FETCH_BASE, bundle.registers);
  const std::uint64_t pitch = step.value(step.control.fetch_pitch, StepField::FETCH_PITCH, bundle.registers);
  const std::uint64_t row = core_.space.map(place(width_, base, core_.memory.read(at, size), pitch));
  if (core_.memory.contains(row, HOST_LINE)) __builtin_prefetch(core_.memory.at(row));
}

// Registers that may differ from bundle to bundle of a level's parent, within one of its activations; all if it has none
// that runs one after the other.
std::uint64_t AccessUnit::changes_before(unsigned number) const {
  if (number < 2 || !levels_[number - 1].control.enable || levels_[number - 1].control.interleave) return ~0ull;
  const Level& parent = levels_[number - 1];
  std::uint64_t changes = 0;
  const auto written = [&](std::uint64_t destination) { changes |= destination ? 1ull << (destination - 1) : 0; };
  written(parent.control.induction);
  written(parent.count.destination);
  for (unsigned slot = 0; slot < parent.load_count; ++slot)
    if (parent.loads[slot].control.enable) written(parent.loads[slot].control.destination);
  for (unsigned k = 0; k < parent.alu_count; ++k) written(parent.alus[k].control.destination);
  return changes;
}

// What the clock is to know of a nest's levels.
void AccessUnit::tell() {
  for (unsigned number = 0; number < levels_.size(); ++number) {
    const Level& level = levels_[number];
    const std::uint64_t changes = changes_before(number);
    unsigned loads = 0, operations = 0, operands[2] = {0, 0};  // of the parent's registers: further out, its own
    const auto operand = [&](std::uint64_t source) {
      if (source) ++operands[changes >> (source - 1) & 1];
    };
    operand(level.control.lower);
    operand(level.control.upper);
    for (unsigned slot = 0; slot < level.load_count; ++slot) {
      loads += level.loads[slot].control.enable;
      if (level.loads[slot].control.enable) operand(level.loads[slot].control.base);
      tell(level, slot);
    }
    for (unsigned k = 0; k < level.alu_count; ++k) operations += level.alus[k].control.op != AluOp::NONE;
    if (level.check.enable) operand(level.check.limit);
    core_.clock.level(number, level.control.enable != 0, level.control.interleave != 0, level.control.deal != 0, loads, operations,
                      operands[1], operands[0]);
  }
  core_.clock.nest();
}

// Where a load of a level ends, and where it begins as far as is known before there is a bundle.
void AccessUnit::tell(const Level& level, unsigned slot) {
  const Load& load = level.loads[slot];
  const unsigned place = static_cast<unsigned>(core_.config.place_bits);
  const bool from_base = slot < level.sequential && load.control.enable && !load.control.base &&
                         (level.control.lower || !level.lower) && load.base >> place == load.limit >> place &&
                         load.base < load.limit;
  const std::uint64_t bus = core_.config.bus_bytes;
  core_.clock.array(slot, (load.limit + bus - 1) / bus, from_base ? load.base / bus : NOWHERE);
}

bool AccessUnit::work() {
  Bundle bundle;
  if (!started_) {
    started_ = true;
    if (!descend(0, bundle)) return false;
  }
  while (core_.budget > 0) {
    if (dealing_ < levels_.size() && dealer_.take(open_.empty(), bundle)) {
      --core_.budget;
      if (!deliver(bundle)) return false;
      continue;
    }
    if (lost_) return fail(poisoned_, poison_.level, poison_.cause, Queue::NONE, poison_.value, 0);
    const bool inner = !open_.empty() && open_.back() > interleaving_;
    if (!inner && parked_ && (open_.empty() || parked_ == contexts_.size())) {
      --core_.budget;
      if (!turn()) return false;
      continue;
    }
    if (open_.empty()) break;
    const unsigned level = open_.back();
    if (frames_[level].done()) {
      open_.pop_back();
      continue;
    }
    --core_.budget;
    if (!iterate(level, frames_[level], bundle) || !descend(level + 1, bundle)) return false;
  }
  done_ = open_.empty() && !parked_ && !lost_ && (dealing_ == levels_.size() || dealer_.empty());
  return true;
}

// Takes a bundle through the levels from `level` on, as the first iteration of each, and to the event unit.
bool AccessUnit::descend(unsigned level, Bundle& bundle) {
  for (; level < levels_.size(); ++level) {
    if (level == interleaving_) {
      park(bundle);
      return true;
    }
    if (!bundle.live || !levels_[level].control.enable) continue;
    bool iterates;
    if (!activate(level, frames_[level], bundle, iterates)) return false;
    if (!iterates) continue;
    open_.push_back(level);
    if (!iterate(level, frames_[level], bundle)) return false;
  }
  return arrive(bundle);
}

// Gives a bundle the first context that is free.
AccessUnit::Frame& AccessUnit::park(const Bundle& bundle) {
  auto place = std::find_if(contexts_.begin(), contexts_.end(), [](const Frame& frame) { return !frame.occupied; });
  *place = Frame{};
  place->occupied = true;
  place->parent = bundle;
  place->parent.context = place - contexts_.begin();
  ++parked_;
  return *place;
}

// The next bundle of the next context that has one.
bool AccessUnit::turn() {
  while (!contexts_[next_].occupied) next_ = (next_ + 1) % contexts_.size();
  Frame& frame = contexts_[next_];
  next_ = (next_ + 1) % contexts_.size();
  Bundle bundle = frame.parent;
  if (frame.poisoned) {
    ++core_.counters[Counter::BUNDLES];
    return fail(bundle, poison_.level, poison_.cause, Queue::NONE, poison_.value, 0);
  }
  bool iterates = frame.begun;
  if (!frame.begun && bundle.live && !activate(interleaving_, frame, bundle, iterates)) return false;
  frame.begun = true;
  if (iterates && !iterate(interleaving_, frame, bundle)) return false;
  if (!iterates || frame.done()) {
    frame.occupied = false;
    --parked_;
  }
  return descend(interleaving_ + 1, bundle);
}

bool AccessUnit::activate(unsigned number, Frame& frame, Bundle& bundle, bool& iterates) {
  const Level& level = levels_[number];
  const std::uint64_t lower = Source{level.control.lower, level.lower}.value(bundle.registers);
  const std::uint64_t upper = Source{level.control.upper, level.upper}.value(bundle.registers);
  if (width_.as_signed(upper) < width_.as_signed(lower))
    return poison(bundle, number, Cause::BOUNDS_ORDER, static_cast<std::uint64_t>(width_.as_signed(upper)));
  iterates = width_.as_signed(lower) < width_.as_signed(upper);
  if (iterates) {
    frame.parent = bundle;
    frame.index = width_.as_signed(lower);
    frame.upper = width_.as_signed(upper);
    frame.count = 0;
    frame.first = true;
    return true;
  }
  bundle.live = false;
  bundle.begin |= 1u << number;
  bundle.end |= 1u << number;
  if (level.count.enable && level.count.destination) bundle.registers[level.count.destination - 1] = 0;
  return true;
}

// The next bundle of an activation that has one.
bool AccessUnit::iterate(unsigned number, Frame& frame, Bundle& bundle) {
  Level& level = levels_[number];
  const std::uint32_t bit = 1u << number;
  const std::uint64_t induction = width_.low(static_cast<std::uint64_t>(frame.index));
  frame.index += level.control.interleave ? 1 : static_cast<std::int64_t>(level.step);
  bundle = frame.parent;
  bundle.begin = frame.first ? bundle.begin | bit : 0;
  bundle.iteration = (frame.first ? bundle.iteration : 0) | bit;
  bundle.end = frame.index >= frame.upper ? bundle.end | bit : 0;
  if (!frame.first) {
    bundle.replaced = 0;
    bundle.has_warned = false;
  }
  frame.first = false;
  if (level.control.induction) bundle.registers[level.control.induction - 1] = induction;
  std::uint64_t loaded[4] = {};
  // The check comes after its slot, but for a sequential slot only after all of these.
  const unsigned checked = level.check.load, after = std::max(checked + 1, level.sequential);
  for (unsigned slot = 0; slot < level.load_count; ++slot) {
    if (level.loads[slot].control.enable && !load(number, slot, frame, induction, bundle, loaded[slot])) return false;
    if (level.check.enable && slot + 1 == after && !check(number, frame, loaded, bundle)) return false;
  }
  for (unsigned k = 0; k < level.alu_count; ++k) {
    const Alu& alu = level.alus[k];
    if (alu.control.op == AluOp::NONE || !alu.control.destination) continue;
    bundle.registers[alu.control.destination - 1] =
        calculate(width_, alu.control.op, Source{alu.control.a, alu.a}.value(bundle.registers),
                  Source{alu.control.b, alu.b}.value(bundle.registers));
  }
  if (level.count.enable) {
    frame.count += holds(level.count.predicate, level.count.sense, bundle.registers);
    if (level.count.destination) bundle.registers[level.count.destination - 1] = width_.low(frame.count);
  }
  return true;
}

bool AccessUnit::load(unsigned number, unsigned slot, const Frame& frame, std::uint64_t induction, Bundle& bundle,
                      std::uint64_t& loaded) {
  const bool sequential = slot < levels_[number].sequential;
  Load& load = levels_[number].loads[slot];
  const Registers& seen = sequential ? frame.parent.registers : bundle.registers;
  const std::uint64_t index = load.control.index == LoadIndex::INDUCTION ? induction : seen[load.control.index - 1];
  const unsigned size = 1u << load.control.size;
  const std::uint64_t base = Source{load.control.base, load.base}.value(seen);
  const std::uint64_t address = width_.low(base + (index << load.control.size)) & -static_cast<std::uint64_t>(size);
  const std::uint64_t at = core_.space.map(address);  // elements never go on into another granule
  if (!core_.memory.contains(at, size))
    return poison(bundle, number, Cause::MEMORY_ERROR, 0, core_.space.line(address));
  if (core_.stored.has(at, size) && !core_.unstored(address, size, Queue::NONE))
    return poison(bundle, number, EmulatedCause::READ_AFTER_STORE, size, address);
  if (!in_order_ && core_.may_store(at)) core_.loaded.put(at, size);
  loaded = core_.memory.read(at, size);
  if (load.control.is_signed && size < sizeof loaded) {
    const unsigned unused = 64 - 8 * size;
    loaded = static_cast<std::uint64_t>(static_cast<std::int64_t>(loaded << unused) >> unused);
  }
  const std::uint64_t line = address / core_.config.bus_bytes;
  if (!sequential || line != load.line) 
      core_.clock.load(number, slot, !sequential, frame.parent.context, bundle.begin, at, line);
  core_.counters[Counter::LINES_READ] += !sequential || line != load.line;
  if (follows_[4 * number + slot]) prefetch(4 * number + slot, bundle, at, size);
  load.line = line;
  if (load.control.destination) bundle.registers[load.control.destination - 1] = width_.low(loaded);
  return true;
}

bool AccessUnit::check(unsigned number, const Frame& frame, const std::uint64_t* values, Bundle& bundle) {
  const Level& level = levels_[number];
  const std::uint64_t loaded = values[level.check.load];
  const bool is_index = level.check.kind == CheckKind::INDEX;
  const std::int64_t limit = width_.as_signed(Source{level.check.limit, level.limit}.value(frame.parent.registers));
  const bool inside = limit > 0 && loaded < static_cast<std::uint64_t>(limit);
  if (inside || level.check.mode != CheckMode::FATAL) {
    core_.counters[Counter::LOOKUPS] += is_index;
    if (!inside) replace(level, loaded, bundle);
    return true;
  }
  return poison(bundle, number, is_index ? Cause::INDEX : Cause::OFFSET, loaded);
}

// 0 takes the place of a value outside its bounds, unless a later slot has written the register since.
void AccessUnit::replace(const Level& level, std::uint64_t loaded, Bundle& bundle) {
  const unsigned slot = level.check.load;
  const LoadControl& control = level.loads[slot].control;
  bool kept = control.enable && control.destination;
  for (unsigned later = slot + 1; later < level.sequential; ++later)
    kept = kept && !(level.loads[later].control.enable && level.loads[later].control.destination == control.destination);
  if (kept) bundle.registers[control.destination - 1] = 0;
  ++bundle.replaced;
  if (level.check.mode == CheckMode::WARN && !bundle.has_warned) {
    bundle.has_warned = true;
    bundle.warned = loaded;
  }
}

// A fault in a level: the bundle goes to the event unit, but does nothing there. Before a level that interleaves, it
// takes its turn among the activations, and is the last that is given to them.
bool AccessUnit::poison(const Bundle& bundle, unsigned level, std::uint64_t cause, std::uint64_t value,
                        std::uint64_t address) {
  const bool waits = cause != Cause::MEMORY_ERROR && cause != EmulatedCause::READ_AFTER_STORE;
  if (waits && level < interleaving_ && !contexts_.empty()) {
    park(bundle).poisoned = true;
    return wait(level, cause, value);
  }
  if (waits && dealing_ < levels_.size()) {
    ++core_.counters[Counter::BUNDLES];
    poisoned_ = bundle;
    lost_ = true;
    return wait(level, cause, value);
  }
  ++core_.counters[Counter::BUNDLES];
  return fail(bundle, level, cause, Queue::NONE, value, address);
}

// Nothing comes behind a poisoned bundle, but those before it have their turns first.
bool AccessUnit::wait(unsigned level, std::uint64_t cause, std::uint64_t value) {
  open_.clear();
  poison_ = {};
  poison_.cause = cause;
  poison_.level = level;
  poison_.value = value;
  return false;
}

bool AccessUnit::fail(const Bundle& bundle, unsigned level, std::uint64_t cause, std::uint64_t queue,
                      std::uint64_t value, std::uint64_t address) {
  core_.raise(cause, queue, value, address);
  core_.fault.level = level;
  std::copy(std::begin(bundle.registers), std::end(bundle.registers), core_.fault.registers);
  return false;
}

// A bundle comes to the event unit, where it may have to wait for its turn.
bool AccessUnit::arrive(Bundle& bundle) {
  ++core_.counters[Counter::BUNDLES];
  core_.counters[Counter::BOUNDS_WARNINGS] += bundle.replaced;
  if (bundle.has_warned && !core_.has_warned) {
    core_.has_warned = true;
    core_.warned = bundle.warned;
  }
  bundle.number = core_.clock.arrive(bundle.iteration, bundle.begin);
  if (dealing_ == levels_.size()) return deliver(bundle);
  dealer_.put(bundle, bundle.begin >> dealing_ & 1, bundle.end >> dealing_ & 1);
  return true;
}

// The events of a bundle in order.
bool AccessUnit::deliver(const Bundle& bundle) {
  core_.clock.deliver(bundle.number);
  const std::uint32_t begin = bundle.begin & masks_[EventKind::BEGIN];
  const std::uint32_t iteration = bundle.iteration & masks_[EventKind::ITER];
  const std::uint32_t end = bundle.end & masks_[EventKind::END];
  const unsigned count = levels_.size();
  for (unsigned level = 0; (begin | iteration) >> level; ++level) {
    const auto& events = levels_[level].events;
    if (begin >> level & 1 && !event(level, events[EventKind::BEGIN], bundle)) return false;
    if (iteration >> level & 1 && !event(level, events[EventKind::ITER], bundle)) return false;
  }
  for (unsigned level = count; end && level-- > 0;)
    if (end >> level & 1 && !event(level, levels_[level].events[EventKind::END], bundle)) return false;
  return true;
}

bool AccessUnit::event(unsigned level, const EventControl& control, const Bundle& bundle) {
  if (!holds(control.predicate, control.sense, bundle.registers)) return true;
  for (unsigned k = 0; k < control.count; ++k)
    if (!step(level, steps_[control.first + k], bundle)) return false;
  return true;
}

bool AccessUnit::step(unsigned level, const Step& step, const Bundle& bundle) {
  --core_.budget;
  const StepControl& control = step.control;
  const Registers& registers = bundle.registers;
  core_.clock.step(control.token_enable != 0, control.scalar_enable != 0, control.store_enable != 0);
  if (control.scalar_enable) {
    const std::uint64_t value = step.value(control.scalar, StepField::SCALAR, registers);
    core_.record(Queue::SCALAR, value);
    if (!core_.push(core_.scalars, value, Queue::SCALAR)) return false;
  }
  if (control.store_enable) {
    const std::uint64_t address = place(width_, step.value(control.store_base, StepField::STORE_BASE, registers),
                                        step.value(control.store_index, StepField::STORE_INDEX, registers),
                                        step.value(control.store_pitch, StepField::STORE_PITCH, registers));
    const std::uint64_t size = low_bits(step.value(control.store_size, StepField::STORE_SIZE, registers), SIZE_BITS);
    if (size == 0 || size % STORE_STEP || address % STORE_STEP)
      return fail(bundle, level, Cause::ALIGNMENT, Queue::STORE_ADDRESS, size, address);
    core_.record(Queue::STORE_ADDRESS, address, size, control.stream);
    if (!core_.push(core_.store_addresses, {address, size, control.stream != 0}, Queue::STORE_ADDRESS)) return false;
  }
  if (control.token_enable) {
    const std::uint64_t token = low_bits(step.value(control.token, StepField::TOKEN, registers), TOKEN_BITS);
    core_.record(Queue::TOKEN, token, bundle.context);
    ++core_.counters[Counter::TOKENS];
    if (!core_.push(core_.tokens, {token, bundle.context}, Queue::TOKEN)) return false;
  }
  if (control.fetch_enable && !fetch(level, step, bundle)) return false;
  core_.clock.stepped();
  return store_.run() && execute_.run();
}

bool AccessUnit::fetch(unsigned level, const Step& step, const Bundle& bundle) {
  const StepControl& control = step.control;
  const Registers& registers = bundle.registers;
  const std::uint64_t line = core_.config.bus_bytes;
  const std::uint64_t address = place(width_, step.value(control.fetch_base, StepField::FETCH_BASE, registers),
                                      step.value(control.fetch_index, StepField::FETCH_INDEX, registers),
                                      step.value(control.fetch_pitch, StepField::FETCH_PITCH, registers));
  const std::uint64_t size = low_bits(step.value(control.fetch_size, StepField::FETCH_SIZE, registers), SIZE_BITS);
  const std::uint64_t name = queue_of(control.queue);
  const bool across = size && core_.lines(address, size) > (size + line - 1) / line;
  if (size == 0 || size % ROW_GRANULE || address % ROW_GRANULE || across)
    return fail(bundle, level, Cause::ALIGNMENT, name, size, address);
  core_.record(name, address, size);
  const bool together = size <= core_.space.map.together(address);
  const std::uint64_t at = together ? core_.space.map.of_row(address) : SCATTERED;
  if (!(together ? core_.memory.contains(at, size) : core_.space.contains(address, size)))
    return core_.raise(Cause::MEMORY_ERROR, Queue::NONE, 0, core_.space.missing(address, size));
  const bool one = together && !core_.space.map.is_copied(address);  // a memory address is enough
  if (!(one && !core_.stored.has(at, size)) && !core_.unstored(address, size, name))
    return fail(bundle, level, EmulatedCause::READ_AFTER_STORE, name, size, address);
  core_.clock.fetch(core_.space, control.queue, address, size, at);
  ++core_.counters[Counter::ROWS];
  core_.counters[Counter::LINES_READ] += core_.lines(address, size);
  return core_.push(core_.rows[control.queue], {address, size, at}, name);
}

}  // namespace daedal
