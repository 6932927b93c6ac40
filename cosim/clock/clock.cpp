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

void Clock::level(bool enabled, bool interleaves, bool deals, unsigned loads, unsigned operations, unsigned operands,
                  unsigned held, unsigned words) {
  const std::size_t number = front_->shapes.size() % static_cast<std::size_t>(config_.levels);
  if (number == 0) interleaves_ = 0;
  interleaves_ |= static_cast<unsigned>(interleaves) << number;
  front_->shapes.push_back({enabled, config_.serial[number] != 0, interleaves, deals, static_cast<std::uint8_t>(loads),
                            static_cast<std::uint8_t>(operations), static_cast<std::uint8_t>(operands),
                            static_cast<std::uint8_t>(words), static_cast<std::uint8_t>(held),
                            {arrays_[0], arrays_[1], arrays_[2], arrays_[3]}});
}

// Slots 2k and 2k + 1 that read the same array have each line read once, as the first of them.
void Clock::load(unsigned level, unsigned slot, bool random, unsigned context, bool first, std::uint64_t address,
                 std::uint64_t line) {
  if (!random && interleaves_ >> level & 1) {
    std::uint64_t& last = last_lines_[4 * level + slot][context];
    std::uint32_t& place = places_[4 * level + slot][context];
    if (first) place = 0;
    if (!first && line == last) return;
    last = line;
    front_->lines[4 * level + slot].push({address, line, nest_, static_cast<std::uint16_t>(place++), static_cast<std::uint16_t>(context)});
    front_->walk.push({Kind::LINE, static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(slot), 0, 0, address});
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
  front_->lines[4 * level + slot].push({address, line, nest_, 0, 0});
  front_->walk.push({random ? Kind::RANDOM : Kind::LINE, static_cast<std::uint8_t>(level),
                     static_cast<std::uint8_t>(slot), 0, 0, address});
}

void Clock::nest(unsigned words) {
  for (auto& unit : last_lines_) std::fill(std::begin(unit), std::end(unit), ~0ull - 1);
  ++nest_;
  for (Stream<Entry>* unit : {&front_->program, &front_->walk, &front_->events})
    unit->push({Kind::NEST, 0, 0, 0, words, 0});
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
  while (memory_->pending() && serve()) {
  }
  lanes_->idle(front_->done());
  const Time over = std::max(lanes_->flush(), rung_ + 1);
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
