#include "execute_unit.h"

#include <algorithm>
#include <limits>

namespace daedal {

namespace {

constexpr std::uint64_t NO_CALLBACK = ~0ull;
constexpr unsigned COUNT_BITS = 24;

bool has_b(std::uint64_t op) {
  return op == VectorOp::MULTIPLY || op == VectorOp::FMA || op == VectorOp::MUL_ADD;
}

// An arithmetic result: every NaN is the one NaN of the machine.
inline float canonical(float value) { return value != value ? std::numeric_limits<float>::quiet_NaN() : value; }

// d[i] = operation(i); d may be one of the sources, at the same index.
template <class Operation>
inline void each(float* d, std::uint64_t elements, Operation operation) {
#pragma GCC ivdep
  for (std::uint64_t i = 0; i < elements; ++i) d[i] = operation(i);
}

}  // namespace

ExecuteUnit::ExecuteUnit(Core& core, StoreUnit& store)
    : core_(core),
      store_(store),
      lengths_(core.config.lengths),
      callbacks_(core.config.callbacks),
      code_(core.config.instructions),
      registers_(core.config.vector_registers),
      zeros_(core.config.vl_max),
      broadcast_(core.config.vl_max),
      share_(core.config.context_beats * core.config.lanes) {
  for (auto& one : registers_) one.elements.resize(core.config.vl_max);
}

void ExecuteUnit::clear() {
  std::fill(lengths_.begin(), lengths_.end(), 0);
  std::fill(callbacks_.begin(), callbacks_.end(), NO_CALLBACK);
  std::fill(code_.begin(), code_.end(), Code{});
  for (auto& one : registers_) std::fill(std::begin(one.empty), std::end(one.empty), true);
  active_ = false;
}

void ExecuteUnit::configure(const ProgramWord& word) {
  if (word.unit == Unit::LENGTH) lengths_[word.index] = word.value;
  if (word.unit == Unit::CALLBACK) callbacks_[word.index] = word.value;
  if (word.unit == Unit::INSTRUCTION) {
    const Instruction bits = Instruction::decode(word.value);
    const bool scalar = bits.a_kind == OperandKind::SCALAR || bits.b_kind == OperandKind::SCALAR;
    code_[word.index] = {bits, legal(bits), scalar || bits.op == VectorOp::DIVIDE_COUNT};
  }
}

bool ExecuteUnit::legal(const Instruction& code) const {
  const std::uint64_t registers = core_.config.vector_registers;
  const auto operand = [&](std::uint64_t kind, std::uint64_t number) {
    if (kind == OperandKind::REGISTER) return number < registers;
    if (kind == OperandKind::QUEUE) return number < FetchQueue::STORE;
    return kind == OperandKind::SCALAR;
  };
  const bool b_absent = code.b_kind == OperandKind::REGISTER && code.b_number == 0;
  const bool a_register = code.a_kind == OperandKind::REGISTER;
  const bool same_pop = code.a_kind == code.b_kind && !a_register &&
                        (code.a_kind == OperandKind::SCALAR || code.a_number == code.b_number);
  const bool needs_register = code.op == VectorOp::STORE || code.op == VectorOp::DIVIDE_COUNT;
  return VectorOp::known(code.op) && code.reserved == 0 && code.destination < registers && code.c < registers &&
         operand(code.a_kind, code.a_number) && operand(code.b_kind, code.b_number) && !same_pop &&
         (has_b(code.op) || b_absent) && (a_register || !needs_register) &&
         code.length < static_cast<std::uint64_t>(core_.config.lengths);
}

bool ExecuteUnit::run() {
  while (true) {
    if (!active_ && (core_.tokens.empty() || !start())) break;
    if (!step()) break;
  }
  return !core_.faulted();
}

bool ExecuteUnit::start() {
  const auto [token, context] = core_.tokens.front();
  core_.tokens.pop();
  if (token >= callbacks_.size() || callbacks_[token] == NO_CALLBACK)
    return core_.raise(Cause::PROGRAM, Queue::TOKEN, token);
  context_ = context;
  position_ = std::min<std::uint64_t>(callbacks_[token], code_.size());
  active_ = true;
  return true;
}

// One instruction; false if something is missing or wrong.
bool ExecuteUnit::step() {
  --core_.budget;
  if (position_ >= code_.size() || !code_[position_].legal)
    return core_.raise(Cause::PROGRAM, Queue::NONE, position_);
  const Code& code = code_[position_];
  const Instruction& bits = code.bits;
  if (bits.op != VectorOp::NOP) {
    const std::uint64_t elements = lengths_[bits.length];
    if (elements == 0 || elements > static_cast<std::uint64_t>(core_.config.vl_max) || (context_ && elements > share_))
      return core_.raise(Cause::PROGRAM, Queue::NONE, elements);
    if (!available(code)) return false;
    std::uint64_t scalar = 0;
    if (code.scalar) {
      scalar = core_.scalars.front();
      core_.scalars.pop();
    }
    float broadcast;
    const auto low = static_cast<std::uint32_t>(scalar);
    std::memcpy(&broadcast, &low, sizeof broadcast);
    const float *a = nullptr, *b = nullptr;
    if (!operand({bits.a_number, bits.a_kind}, elements, broadcast, &a)) return false;
    if (has_b(bits.op) && !operand({bits.b_number, bits.b_kind}, elements, broadcast, &b)) return false;
    compute(bits, elements, a, b, scalar);
    if (core_.faulted()) return false;
  }
  active_ = !bits.last;
  ++position_;
  return true;
}

// Whether everything that the instruction pops is there; else `missing_` is what is not.
bool ExecuteUnit::available(const Code& code) {
  const Instruction& bits = code.bits;
  if (code.scalar && core_.scalars.empty()) {
    missing_ = Queue::SCALAR;
    return false;
  }
  const Operand operands[] = {{bits.a_number, bits.a_kind}, {bits.b_number, bits.b_kind}};
  for (const Operand& one : operands) {
    if (one.kind == OperandKind::QUEUE && core_.rows[one.number].empty()) {
      missing_ = queue_of(one.number);
      return false;
    }
  }
  return true;
}

bool ExecuteUnit::operand(const Operand& operand, std::uint64_t elements, float scalar, const float** data) {
  if (operand.kind == OperandKind::QUEUE) return pop_row(operand, elements, data);
  if (operand.kind == OperandKind::SCALAR) {
    std::fill_n(broadcast_.begin(), elements, scalar);
    *data = broadcast_.data();
  } else {
    Register& source = registers_[operand.number];
    *data = source.empty[context_] ? zeros_.data() : this->elements(source);
  }
  return true;
}

bool ExecuteUnit::pop_row(const Operand& operand, std::uint64_t elements, const float** data) {
  const Row row = core_.rows[operand.number].front();
  core_.rows[operand.number].pop();
  if (row.size != elements * ELEMENT_BYTES)
    return core_.raise(Cause::FRAMING, queue_of(operand.number), elements);
  *data = static_cast<const float*>(core_.bytes(row, scratch_[operand.number]));
  return true;
}

void ExecuteUnit::compute(const Instruction& code, std::uint64_t n, const float* a, const float* b,
                          std::uint64_t scalar) {
  const std::uint64_t lanes = core_.config.lanes;
  if (code.op == VectorOp::STORE) {
    store_.offer(a, n);
    if (code.clear) registers_[code.a_number].empty[context_] = true;
    return;
  }
  core_.counters[Counter::LANE_BEATS] += (n + lanes - 1) / lanes;
  Register& added = registers_[code.c];
  const float* c = added.empty[context_] ? zeros_.data() : elements(added);
  Register& result = registers_[code.destination];
  float* d = elements(result);
  const bool first = added.empty[context_] && (code.op == VectorOp::MAX || code.op == VectorOp::MIN);
  const float count = static_cast<float>(low_bits(scalar, COUNT_BITS));
  switch (first ? VectorOp::MOVE : code.op) {
    case VectorOp::MOVE:
      std::memmove(d, a, n * sizeof *d);
      break;
    case VectorOp::ADD:
      each(d, n, [=](auto i) { return canonical(a[i] + c[i]); });
      break;
    case VectorOp::SUBTRACT:
      each(d, n, [=](auto i) { return canonical(a[i] - c[i]); });
      break;
    case VectorOp::MULTIPLY:
      each(d, n, [=](auto i) { return canonical(a[i] * b[i]); });
      break;
    case VectorOp::FMA:
      each(d, n, [=](auto i) { return canonical(__builtin_fmaf(a[i], b[i], c[i])); });
      break;
    case VectorOp::MUL_ADD:
      each(d, n, [=](auto i) { return canonical(a[i] * b[i] + c[i]); });
      break;
    case VectorOp::MAX:
      each(d, n, [=](auto i) { return a[i] > c[i] ? a[i] : c[i]; });
      break;
    case VectorOp::MIN:
      each(d, n, [=](auto i) { return a[i] < c[i] ? a[i] : c[i]; });
      break;
    case VectorOp::ABS:
      each(d, n, [=](auto i) { return __builtin_fabsf(a[i]); });
      break;
    case VectorOp::DIVIDE_COUNT:
      if (count == 0)
        std::memmove(d, a, n * sizeof *d);
      else
        each(d, n, [=](auto i) { return canonical(a[i] / count); });
      break;
    default:
      core_.raise(Cause::PROGRAM, Queue::NONE, position_);
  }
  if (code.clear && code.a_kind == OperandKind::REGISTER) registers_[code.a_number].empty[context_] = true;
  result.empty[context_] = false;
}

}  // namespace daedal
