#include "clock.h"

#include <algorithm>

namespace daedal {

using namespace timing;

namespace {

constexpr Time DOORBELLS = 20;  // from one to the next, over AXI4-Lite
constexpr Time RECORD = 45;     // from the last acknowledgement until the record is in memory, but for its latency

}  // namespace

Clock::Clock(const Config& config) : config_(config), bus_(static_cast<std::uint64_t>(config.bus_bytes)) {
  parameters_.latency = 100;
  parameters_.line_time = 256;
  parameters_.banks = config.banks;
  parameters_.port_words = 1 << 20;
  for (std::int64_t n = config.levels; n-- > 0;)
    if (config.contexts[n]) context_level_ = n;
  reset();
}

void Clock::set(const Parameters& parameters) {
  parameters_ = parameters;
  reset();
}

// A machine without any launch, at the time that it is.
void Clock::reset() {
  memory_ = std::make_unique<MemoryTime>(config_, parameters_);
  queues_ = std::make_unique<Queues>(config_);
  front_ = std::make_unique<FrontTime>(config_, *memory_, *queues_);
  lanes_ = std::make_unique<LanesTime>(config_, *memory_, *queues_);
  doorbells_.clear();
  open_ = false;
  now_ = ended_ = rung_ = 0;
  bundles_ = nest_ = 0;
  std::fill(std::begin(in_turn_), std::end(in_turn_), 0);
}

void Clock::rang() {
  now_ += DOORBELLS;
  doorbells_.push(now_);
}

void Clock::begin(std::uint64_t block, std::uint64_t words, std::uint64_t lines, bool follows, bool fence) {
  rung_ = doorbells_.empty() ? now_ : doorbells_.front();
  if (!doorbells_.empty()) doorbells_.pop();
  lanes_->mixed = mixed_;
  lanes_->launch(rung_, ended_);
  front_->launch(rung_, block, words, lines, follows, fence ? now_ : 0);
}

// The units in whose queues a word waits: levels, and behind them the event unit (hw/access_unit/access_unit.py).
std::uint8_t Clock::units_of(const ProgramWord& word) const {
  const unsigned events = 1u << config_.levels;
  if (word.unit == Unit::EVENT || word.unit == Unit::STEP) return static_cast<std::uint8_t>(events);
  if (word.unit != Unit::LEVEL || word.index >= static_cast<std::uint64_t>(config_.levels)) return 0;
  unsigned units = 1u << word.index;
  const std::uint64_t next = word.index + 1;
  if (next > 1 && next < static_cast<std::uint64_t>(config_.levels) && !config_.serial[next]) units |= 1u << next;
  const bool deals = config_.dealt_bundles && word.field == LevelField::CONTROL &&
                     static_cast<std::int64_t>(word.index) == context_level_;
  if (word.field == LevelField::CHECK || deals) units |= events;
  return static_cast<std::uint8_t>(units);
}

void Clock::level(unsigned number, bool enabled, bool interleaves, bool deals, unsigned loads, unsigned operations,
                  unsigned operands, unsigned held) {
  const auto put = [&](unsigned& levels, bool is) { levels = (levels & ~(1u << number)) | static_cast<unsigned>(is) << number; };
  put(interleaves_, interleaves);
  put(enabled_, enabled);
  put(deals_, deals);
  front_->shapes[number].push({enabled, config_.serial[number] != 0, interleaves, static_cast<std::uint8_t>(loads),
                               static_cast<std::uint8_t>(operations), static_cast<std::uint8_t>(operands),
                               static_cast<std::uint8_t>(held), {arrays_[0], arrays_[1], arrays_[2], arrays_[3]}});
}

// Each level from the outermost one that iterates on has an entry of its own.
std::uint64_t Clock::arrive(std::uint32_t iterates, std::uint32_t begins) {
  const auto levels = static_cast<unsigned>(config_.levels);
  const auto deals = static_cast<std::uint8_t>(deals_ ? DEALT_OUT : 0);
  const unsigned active = enabled_ & (iterates | begins);
  if (!active) {
    front_->walk[levels - 1].push({Kind::BUNDLE, static_cast<std::uint8_t>(levels), 0, static_cast<std::uint8_t>(PASSES | TO_EVENTS_UNIT | deals), 0, 0});
    return bundles_++;
  }
  bool inner = false;
  for (unsigned n = static_cast<unsigned>(__builtin_ctz(active)); n < levels;) {
    unsigned next = n + 1;
    while (next < levels && !(enabled_ >> next & 1)) ++next;
    std::uint8_t flags = inner || begins >> n & 1 ? activation(n, begins) : std::uint8_t{0};
    if (next == levels) flags = static_cast<std::uint8_t>(flags | TO_EVENTS_UNIT | deals);
    front_->walk[n].push({Kind::BUNDLE, static_cast<std::uint8_t>(next), static_cast<std::uint8_t>(parent_of(n)), flags, 0, 0});
    inner = true;
    n = next;
  }
  return bundles_++;
}

// Slots 2k and 2k + 1 that read the same array have each line read once, as the first of them.
void Clock::load(unsigned level, unsigned slot, bool random, unsigned context, std::uint32_t begins, std::uint64_t address,
                 std::uint64_t line) {
  const bool first = begins >> level & 1;
  const std::uint8_t flags = first ? activation(level, begins) : std::uint8_t{0};
  const std::uint32_t parent = parent_of(level);
  if (!random && interleaves_ >> level & 1) {
    const unsigned unit = 4 * level + slot;
    std::uint64_t& last = last_lines_[unit][context];
    if (!first && line == last) return;
    last = line;
    if (first) {
      end_turns(unit, context);
      turns_[unit][context] = front_->begin_turns(unit);
      in_turn_[unit] |= 1ull << context;
    }
    front_->turn_line(unit, turns_[unit][context], address);
    front_->walk[level].push({Kind::LINE, static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(slot), flags, parent, turns_[unit][context]});
    return;
  }
  random = random && !config_.serial[level];
  if (config_.serial[level]) {  // keeps some lines of each load, whatever its kind
    std::uint64_t& last = last_lines_[4 * level + slot][context];
    if (line == last) return;
    last = line;
  } else if (!random) {
    std::uint64_t& own = last_lines_[4 * level + slot][context];
    std::uint64_t& even = last_lines_[4 * level + (slot & ~1u)][context];
    if (slot & 1 && (line == even || line == even + 1)) slot &= ~1u;
    if (line == (slot & 1 ? own : even)) return;
    (slot & 1 ? own : even) = line;
  }
  front_->lines[4 * level + slot].push({address, line, nest_});
  front_->walk[level].push({random ? Kind::RANDOM : Kind::LINE, static_cast<std::uint8_t>(level),
                            static_cast<std::uint8_t>(slot), flags, parent, address});
}

// An activation that runs in turn with others reads no more lines.
void Clock::end_turns(unsigned unit, unsigned context) {
  if (in_turn_[unit] >> context & 1) front_->end_turns(unit, turns_[unit][context]);
  in_turn_[unit] &= ~(1ull << context);
}

void Clock::nest() {
  for (unsigned unit = 0; unit < 4 * MAX_LEVELS; ++unit)
    while (in_turn_[unit]) end_turns(unit, static_cast<unsigned>(__builtin_ctzll(in_turn_[unit])));
  for (auto& unit : last_lines_) std::fill(std::begin(unit), std::end(unit), ~0ull - 1);
  front_->nests = ++nest_;
  for (Stream<Entry>* unit : {&front_->program, &front_->events}) unit->push({Kind::NEST, 0, 0, 0, 0, 0});
  for (std::int64_t n = 0; n < config_.levels; ++n) front_->walk[n].push({Kind::NEST, 0, 0, 0, 0, 0});
}

// Cycles that the iterative unit takes of numbers that are neither subnormal nor special.
static std::uint8_t iterations(std::uint64_t op) {
  switch (op) {
    case VectorOp::DIVIDE:
    case VectorOp::RECIPROCAL: return 39;
    case VectorOp::SQUARE_ROOT: return 37;
    case VectorOp::SCALE: return 5;
    default: return 15;  // conversions of integers
  }
}

void Clock::executed(const Instruction& bits, const Operation& operation, bool starts, std::uint64_t context,
                     bool pops_scalar, bool kept, bool takes_b, bool adds_b, std::uint64_t elements, const Popped& popped,
                     std::uint64_t count) {
  Executed& one = lanes_->work.put();  // made where it stays: what is copied after it was written byte by byte is slow
  one = Executed{};
  const auto lanes = static_cast<std::uint64_t>(config_.lanes);
  one.context = static_cast<std::uint8_t>(context);
  one.starts = starts;
  one.a = one.b = one.c = one.destination = NO_REGISTER;
  if (!elements) return;
  one.pops_scalar = pops_scalar;
  one.beats = static_cast<std::uint16_t>((elements + lanes - 1) / lanes);
  one.passes = 1;
  one.clears = bits.clear || operation.stores;
  const bool scalars = bits.mode == Mode::SCALAR;
  if (operation.stores) {
    one.work = Work::QUOTIENT;
    one.passes = count <= 1 ? 0 : count < 512 ? 1 : 2;
  } else if (bits.op == VectorOp::STORE) {
    one.work = Work::STORE;
  } else if (operation.unit == OperationUnit::ITERATIVE) {
    one.work = Work::ITERATIVE;
    one.iterations = iterations(bits.op);
  } else {
    one.work = scalars ? Work::SCALAR : bits.mode == Mode::REDUCE ? Work::REDUCE : Work::LANES;
    if (bits.op == VectorOp::DIVIDE_COUNT && count >= 512) one.passes = 2;
  }
  const std::uint64_t bytes = (elements * popped.bits + 7) / 8;
  one.data = static_cast<std::uint16_t>((bytes + LANE_BYTES * lanes - 1) / (LANE_BYTES * lanes));
  one.scalar_source = bits.a_kind == OperandKind::SCALAR_REGISTER;
  one.waits_for_head = popped.is_head;
  one.adds_bias = operation.takes_head && config_.two_pass;
  const auto lines = [&](std::uint64_t queue) {  // rows of queue 1 are of elements of 32 bits
    const std::uint64_t size = queue ? elements * LANE_BYTES : bytes + popped.numbers * LANE_BYTES;
    return static_cast<std::uint16_t>((size + bus_ - 1) / bus_);
  };
  if (bits.a_kind == OperandKind::QUEUE && !kept && !popped.is_head) one.lines[bits.a_number % KEEP] = lines(bits.a_number % KEEP);
  if (bits.a_kind == OperandKind::REGISTER || one.scalar_source) one.a = static_cast<std::uint8_t>(bits.a_number);
  if (takes_b && bits.b_kind == OperandKind::QUEUE) one.lines[bits.b_number] = lines(bits.b_number);
  one.scalar_factor = takes_b && bits.b_kind == OperandKind::SCALAR_REGISTER;
  if (takes_b && (bits.b_kind == OperandKind::REGISTER || one.scalar_factor)) one.b = static_cast<std::uint8_t>(bits.b_number);
  if (one.work == Work::LANES || one.work == Work::SCALAR) {
    if (!adds_b && operation.uses_c) one.c = static_cast<std::uint8_t>(bits.c);
    one.destination = static_cast<std::uint8_t>(bits.destination);
  } else if (one.work == Work::REDUCE || one.work == Work::ITERATIVE) {
    if (bits.octets) one.around = static_cast<std::uint8_t>(OCTET / lanes);
    one.destination = static_cast<std::uint8_t>(bits.destination);
  }
}

bool Clock::serve() {
  Request request;
  Time first;
  if (!memory_->serve(request, first)) return false;
  if (request.reader == WRITER) return true;
  if (request.reader >= LOADS) {
    front_->arrived(request, first);
  } else {
    QueueTimes& rows = queues_->rows[request.reader];
    for (std::uint32_t n = 0; n < request.lines; ++n) rows.in[request.number + n] = first + n;
  }
  return true;
}

void Clock::work(std::size_t left) {
  unsigned idle = 0;
  front_->over = left == 0;
  while (front_->waiting() > left) {
    if (front_->advance()) {
      idle = 0;
      continue;
    }
    const bool lanes = lanes_->advance(), stores = lanes_->store();
    if (lanes || stores || serve()) continue;
    if (++idle > 1) lanes_->force();
    front_->force();
  }
  if (left) return;
  idle = 0;
  while (!lanes_->work.empty() || !lanes_->stores.empty()) {
    const bool lanes = lanes_->advance(), stores = lanes_->store();
    if (lanes || stores || serve()) continue;
    if (++idle > 2) break;
    lanes_->force();
  }
}

void Clock::end(std::array<std::uint64_t, Counter::limit>& counters, bool recorded) {
  work(0);
  counters[Counter::LINES_READ] = memory_->lines_asked;
  memory_->lines_asked = 0;
  const Time flushed = lanes_->flush();
  while (memory_->pending() && serve()) {
  }
  lanes_->idle(front_->done());
  const Time written = mixed_ ? memory_->written + parameters_.write_latency : 0;
  const Time over = std::max({flushed, written, rung_ + 1});
  counters[Counter::CYCLES] = static_cast<std::uint64_t>(over - std::max(rung_, ended_));
  static constexpr std::uint64_t STALL[] = {
      Counter::STALL_TOKEN_FULL, Counter::STALL_SCALAR_FULL, Counter::STALL_STORE_ADDRESS_FULL, Counter::STALL_VECTOR_FULL,
      Counter::STALL_PORT_BUSY, Counter::STALL_LOAD, Counter::STALL_TOKEN_EMPTY, Counter::STALL_VECTOR_EMPTY,
      Counter::STALL_SCALAR_EMPTY, Counter::STALL_STORE_FULL, Counter::STALL_HAZARD};
  for (unsigned n = 0; n < STALLS; ++n) {
    counters[STALL[n]] = static_cast<std::uint64_t>(std::max<Time>(0, queues_->stalls[n]));
    queues_->stalls[n] = 0;
  }
  const std::pair<std::uint64_t, QueueTimes*> marks[] = {
      {Counter::MARK_TOKEN, &queues_->tokens}, {Counter::MARK_SCALAR, &queues_->scalars},
      {Counter::MARK_VECTOR0, &queues_->rows[0]}, {Counter::MARK_VECTOR1, &queues_->rows[1]},
      {Counter::MARK_STREAM, &queues_->rows[2]}, {Counter::MARK_STORE_ADDRESS, &queues_->addresses},
      {Counter::MARK_STORE_DATA, &queues_->data}};
  for (const auto& [counter, queue] : marks) {
    counters[counter] = std::min(queue->mark, queue->depth);
    queue->mark = 0;
  }
  ended_ = over;
  now_ = over + (recorded ? RECORD + parameters_.latency : RECORD);
}

}  // namespace daedal
