#include "execute_unit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "legality.h"
#include "narrow_rows.h"

namespace daedal {

namespace {

constexpr std::uint64_t NO_CALLBACK = ~0ull;
constexpr unsigned COUNT_BITS = 24;

bool is_extreme(std::uint64_t op) { return op == VectorOp::MAX || op == VectorOp::MIN; }

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  float value;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

// The bits of the nearest integer, ties to even; outside of 32 signed bits of the nearest that there is.
std::uint32_t to_integer(float value) {
  if (value != value) return 0;
  const double whole = std::nearbyint(static_cast<double>(value));
  const double most = std::numeric_limits<std::int32_t>::max(), least = std::numeric_limits<std::int32_t>::min();
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(std::clamp(whole, least, most)));
}

// An arithmetic result: every NaN is the one NaN of the machine.
inline float canonical(float value) { return value != value ? std::numeric_limits<float>::quiet_NaN() : value; }

float iterative(std::uint64_t op, float a, float b) {
  switch (op) {
    case VectorOp::RECIPROCAL:
      return canonical(1.0f / a);
    case VectorOp::DIVIDE:
      return canonical(a / b);
    case VectorOp::SQUARE_ROOT:
      return canonical(std::sqrt(a));
    case VectorOp::TO_FLOAT:
      return static_cast<float>(static_cast<std::int32_t>(bits_of(a)));
    case VectorOp::TO_INTEGER:
      return float_of(to_integer(a));
    default: {
      // Exact in binary64, for scales that leave no more than an infinity or a zero.
      const int scale = std::clamp(static_cast<std::int32_t>(bits_of(b)), -511, 511);
      return canonical(static_cast<float>(std::ldexp(static_cast<double>(a), scale)));
    }
  }
}

// d[i] = function(i); d may be one of the sources, at the same index.
template <class Function>
inline void each(float* d, std::uint64_t elements, Function function) {
#pragma GCC ivdep
  for (std::uint64_t i = 0; i < elements; ++i) d[i] = function(i);
}

}  // namespace

ExecuteUnit::ExecuteUnit(Core& core, StoreUnit& store)
    : core_(core),
      store_(store),
      lengths_(core.config.lengths),
      callbacks_(core.config.callbacks),
      kinds_(core.config.lengths),
      code_(core.config.instructions),
      registers_(core.config.vector_registers),
      scalars_(core.config.scalars),
      turns_(core.config.context_count),
      zeros_(core.config.vl_max),
      broadcast_(core.config.vl_max),
      other_broadcast_(core.config.vl_max),
      quotient_(core.config.vl_max),
      share_(core.config.context_beats * core.config.lanes) {
  for (auto& one : registers_) one.elements.resize(core.config.vl_max);
}

void ExecuteUnit::clear() {
  std::fill(lengths_.begin(), lengths_.end(), 0);
  std::fill(callbacks_.begin(), callbacks_.end(), NO_CALLBACK);
  std::fill(code_.begin(), code_.end(), Code{});
  for (auto& one : registers_) std::fill(std::begin(one.empty), std::end(one.empty), true);
  std::fill(scalars_.begin(), scalars_.end(), Scalar{});
  std::fill(turns_.begin(), turns_.end(), 0);
  scalar_turns_ = 0;
  kept_.clear();
  std::fill(std::begin(heads_), std::end(heads_), 0);
  kept_beats_ = 0;
  active_ = false;
}

void ExecuteUnit::configure(const ProgramWord& word) {
  if (word.unit == Unit::LENGTH) {
    lengths_[word.index] = word.value;
    kinds_[word.index] = word.field;
  }
  if (word.unit == Unit::CALLBACK) callbacks_[word.index] = word.value;
  if (word.unit == Unit::INSTRUCTION) {
    const Instruction bits = Instruction::decode(word.value);
    const bool scalar = bits.a_kind == OperandKind::SCALAR || bits.b_kind == OperandKind::SCALAR;
    const bool has_operand_b = bits.b_kind != OperandKind::REGISTER || bits.b_number != 0;
    const Operation& operation = OPERATIONS[bits.op];
    const bool adds_b = operation.b_replaces_c && has_operand_b;
    const bool queue = bits.a_kind == OperandKind::QUEUE;
    code_[word.index] = {bits, is_legal(core_.config, bits), scalar || operation.pops_count, adds_b,
                         queue && bits.a_number >= KEEP && bits.a_number < HEAD, queue && bits.a_number >= KEPT,
                         queue && bits.a_number >= HEAD && bits.a_number < KEPT,
                         operation.takes_head && !has_operand_b};
  }
}

std::uint64_t ExecuteUnit::own_number(std::uint64_t name) const {
  const std::uint64_t around = core_.config.rotating_registers;
  return name < around ? (name - turns_[context_]) % around : name;
}

std::uint64_t ExecuteUnit::own_scalar(std::uint64_t name) const {
  const std::uint64_t around = core_.config.rotating_scalars;
  return name < around ? (name - scalar_turns_) % around : name;
}

Instruction ExecuteUnit::renamed(Instruction code) const {
  if (code.a_kind == OperandKind::REGISTER) code.a_number = own_number(code.a_number);
  if (code.b_kind == OperandKind::REGISTER) code.b_number = own_number(code.b_number);
  if (code.mode != Mode::SCALAR) code.c = own_number(code.c);
  if (code.mode == Mode::VECTOR) code.destination = own_number(code.destination);
  if (code.a_kind == OperandKind::SCALAR_REGISTER) code.a_number = own_scalar(code.a_number);
  if (code.b_kind == OperandKind::SCALAR_REGISTER) code.b_number = own_scalar(code.b_number);
  if (code.mode == Mode::SCALAR) code.c = own_scalar(code.c);
  if (code.mode != Mode::VECTOR) code.destination = own_scalar(code.destination);
  if (code.indexed) code.element = own_scalar(code.element);
  return code;
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
  active_ = starts_ = true;
  return true;
}

// One instruction; false if something is missing or wrong.
bool ExecuteUnit::step() {
  --core_.budget;
  if (position_ >= code_.size() || !code_[position_].legal)
    return core_.raise(Cause::PROGRAM, Queue::NONE, position_);
  const Code& code = code_[position_];
  const bool turned = turns_[context_] || scalar_turns_;
  const Instruction own = turned ? renamed(code.bits) : Instruction{};
  const Instruction& bits = turned ? own : code.bits;
  if (OPERATIONS[bits.op].unit != OperationUnit::NONE) {
    const bool single = bits.mode == Mode::SCALAR;
    const std::uint64_t elements = single ? 1 : lengths_[bits.length];
    kind_ = single ? LengthField::ELEMENTS : kinds_[bits.length];
    const bool stores = bits.op == VectorOp::STORE || OPERATIONS[bits.op].stores;
    if (elements == 0 || !is_whole(elements, kind_) || ((stores || OPERATIONS[bits.op].rounds) && is_unstored(kind_)) || elements > static_cast<std::uint64_t>(core_.config.vl_max) || (context_ && elements > share_))
      return core_.raise(Cause::PROGRAM, Queue::NONE, elements);
    const bool nothing = code.kept && kept_.size() <= bits.a_number - KEPT;
    if (!nothing && !execute(code, bits, elements)) return false;
    tell(code, bits, nothing ? 0 : elements);
  } else {
    tell(code, bits, 0);
  }
  turns_[context_] += bits.rotate;
  scalar_turns_ += bits.rotate_scalars;
  active_ = !bits.last;
  ++position_;
  return true;
}

// What the clock is to know of an instruction that was carried out, on so many elements; none if it did nothing.
void ExecuteUnit::tell(const Code& code, const Instruction& bits, std::uint64_t elements) {
  const Operation& operation = OPERATIONS[bits.op];
  const bool takes_b = (operation.uses_b && !code.plain) || code.adds_b;
  const Popped popped{code.head, std::exchange(numbers_, 0), element_bits(kind_)};
  core_.clock.executed(bits, operation, starts_, context_, code.scalar, code.kept, takes_b, code.adds_b, elements, popped,
                       count_);
  starts_ = false;
}

// Pop what the instruction takes and do it; false as for `step`.
bool ExecuteUnit::execute(const Code& code, const Instruction& bits, std::uint64_t elements) {
  if (!available(code, elements)) return false;
  std::uint64_t scalar = 0;
  if (code.scalar) {
    scalar = core_.scalars.front();
    core_.scalars.pop();
    count_ = low_bits(scalar, COUNT_BITS);
  }
  const float broadcast = float_of(scalar);
  const float *a = nullptr, *b = nullptr;
  if (bits.indexed) {
    if (!element(bits, &a)) return false;
  } else if (code.head) {
    if (!pop_head(bits.a_number - HEAD, elements, &a)) return false;
  } else if (code.kept) {
    if (!drop_row(elements, &a)) return false;
  } else if (OPERATIONS[bits.op].takes_head) {
    if (!pop_row({bits.a_number, bits.a_kind}, elements, &a, true)) return false;
  } else if (code.keeps) {
    if (!pop_row({bits.a_number - KEEP, bits.a_kind}, elements, &a)) return false;
    kept_.emplace_back(a, a + elements);
    kept_beats_ += beats(elements);
  } else if (!operand({bits.a_number, bits.a_kind}, elements, broadcast, broadcast_, &a)) {
    return false;
  }
  if ((OPERATIONS[bits.op].uses_b || code.adds_b) && !code.plain &&
      !operand({bits.b_number, bits.b_kind}, elements, broadcast, other_broadcast_, &b))
    return false;
  compute(code, bits, elements, a, b, scalar);
  return !core_.faulted();
}

// Whether everything that the instruction pops is there; else `missing_` is what is not. An index that is none is
// found before rows are waited for.
bool ExecuteUnit::available(const Code& code, std::uint64_t elements) {
  const Instruction& bits = code.bits;
  if (code.scalar && core_.scalars.empty()) {
    missing_ = Queue::SCALAR;
    return false;
  }
  const float* unused;
  if (bits.indexed && !element(renamed(bits), &unused)) return false;
  if (code.keeps && !fits(elements)) return false;
  const Operand operands[] = {{bits.a_number % KEEP, bits.a_kind}, {bits.b_number, bits.b_kind}};
  for (const Operand& one : operands) {
    const bool kept = &one == operands && code.kept;
    if (one.kind == OperandKind::QUEUE && !kept && core_.rows[one.number].empty()) {
      missing_ = queue_of(one.number);
      return false;
    }
  }
  return true;
}

bool ExecuteUnit::element(const Instruction& code, const float** data) {
  const std::uint64_t index = scalars_[code.element].empty ? 0 : scalars_[code.element].bits;
  if (index >= (context_ ? share_ : static_cast<std::uint64_t>(core_.config.vl_max)))
    return core_.raise(Cause::PROGRAM, Queue::NONE, index);
  Register& source = registers_[code.a_number];
  *data = source.empty[context_] ? zeros_.data() : elements(source) + index;
  return true;
}

bool ExecuteUnit::operand(const Operand& operand, std::uint64_t elements, float scalar, std::vector<float>& room,
                          const float** data) {
  if (operand.kind == OperandKind::QUEUE) return pop_row(operand, elements, data);
  if (operand.kind == OperandKind::REGISTER) {
    Register& source = registers_[operand.number];
    *data = source.empty[context_] ? zeros_.data() : this->elements(source);
    return true;
  }
  if (operand.kind == OperandKind::SCALAR_REGISTER) {
    const Scalar& source = scalars_[operand.number];
    scalar = source.empty ? 0.0f : float_of(source.bits);
  }
  std::fill_n(room.begin(), elements, scalar);
  *data = room.data();
  return true;
}

bool ExecuteUnit::pop_row(const Operand& operand, std::uint64_t elements, const float** data, bool headed) {
  const Row row = core_.rows[operand.number].front();
  core_.rows[operand.number].pop();
  core_.pop(row);
  const std::uint64_t taken = numbers_ = std::exchange(heads_[operand.number], 0);
  const std::uint64_t kind = is_converted(operand.number) ? kind_ : std::uint64_t{LengthField::ELEMENTS};
  const bool fits = headed ? taken == 0 && is_unsigned(kind) : taken == 0 || (taken == HEAD_WORDS && is_unsigned(kind));
  const std::uint64_t before = (headed ? HEAD_WORDS : taken) * LANE_BYTES;
  if (!fits || row.size != whole(row_bytes(elements, kind)) + before)
    return core_.raise(Cause::FRAMING, queue_of(operand.number), elements);
  const auto* bytes = static_cast<const std::uint8_t*>(core_.bytes(row, scratch_[operand.number]));
  if (headed) {
    std::memcpy(head_, bytes, sizeof head_);
    numbers_ = HEAD_WORDS;
  }
  bytes += before;
  *data = reinterpret_cast<const float*>(bytes);
  if (kind == LengthField::ELEMENTS) return true;
  widen_row(bytes, elements, kind, widened_[operand.number]);
  *data = widened_[operand.number].data();
  return true;
}

bool ExecuteUnit::pop_head(std::uint64_t queue, std::uint64_t elements, const float** data) {
  const Row row = core_.rows[queue].front();
  const std::uint64_t before = heads_[queue]++ * LANE_BYTES;
  if (heads_[queue] > HEAD_WORDS || row.size <= before + LANE_BYTES)
    return core_.raise(Cause::FRAMING, queue_of(queue), elements);
  const void* bytes = core_.bytes(row, scratch_[queue]);
  float number;
  std::memcpy(&number, static_cast<const std::uint8_t*>(bytes) + before, sizeof number);
  std::fill_n(broadcast_.begin(), elements, number);
  *data = broadcast_.data();
  return true;
}

bool ExecuteUnit::drop_row(std::uint64_t elements, const float** data) {
  dropped_ = std::move(kept_.front());
  kept_.pop_front();
  kept_beats_ -= beats(dropped_.size());
  if (dropped_.size() != elements) return core_.raise(Cause::FRAMING, Queue::NONE, elements);
  *data = dropped_.data();
  return true;
}

bool ExecuteUnit::fits(std::uint64_t elements) {
  if (kept_beats_ + beats(elements) <= static_cast<std::uint64_t>(core_.config.kept_beats)) return true;
  return core_.raise(Cause::PROGRAM, Queue::NONE, elements);
}

std::uint64_t ExecuteUnit::beats(std::uint64_t elements) const {
  const std::uint64_t lanes = core_.config.lanes;
  return (elements + lanes - 1) / lanes;
}

void ExecuteUnit::clear_source(const Instruction& code) {
  if (!code.clear) return;
  if (code.a_kind == OperandKind::REGISTER) registers_[code.a_number].empty[context_] = true;
  if (code.a_kind == OperandKind::SCALAR_REGISTER) scalars_[code.a_number].empty = true;
}

void ExecuteUnit::store(const float* row, std::uint64_t elements) {
  if (kind_ == LengthField::ELEMENTS) {
    store_.offer(row, elements * LANE_BYTES);
    return;
  }
  narrow_row(row, elements, kind_, narrowed_);
  store_.offer(narrowed_.data(), elements * sizeof narrowed_[0]);
}

void ExecuteUnit::compute(const Code& whole, const Instruction& code, std::uint64_t n, const float* a, const float* b,
                          std::uint64_t scalar) {
  if (code.op == VectorOp::STORE) {
    store(a, n);
    clear_source(code);
    return;
  }
  const Operation& operation = OPERATIONS[code.op];
  if (operation.stores) {
    Register& dividend = registers_[code.a_number];
    float* result = dividend.empty[context_] ? quotient_.data() : elements(dividend);
    operate(code.op, n, result, a, b, nullptr, scalar);
    store(result, n);
    dividend.empty[context_] = true;
    return;
  }
  core_.counters[Counter::LANE_BEATS] += beats(n);
  if (code.mode == Mode::VECTOR) {
    Register& added = registers_[code.c];
    const bool none = added.empty[context_];
    Register& result = registers_[code.destination];
    operate(none && operation.takes_a ? VectorOp::MOVE : code.op, n, elements(result), a, b,
            whole.adds_b ? b : none ? zeros_.data() : elements(added), scalar);
    clear_source(code);
    result.empty[context_] = false;
    return;
  }
  float result;
  if (code.mode == Mode::REDUCE) {
    result = reduce(code, n, a, b);
    auto& empty = registers_[code.c].empty;
    if (n > share_)
      std::fill(std::begin(empty), std::end(empty), true);
    else
      empty[context_] = true;
  } else if (operation.unit == OperationUnit::ITERATIVE) {
    result = iterative(code.op, *a, operation.uses_b ? *b : 0);
  } else {
    const Scalar& added = scalars_[code.c];
    const float c = added.empty ? 0.0f : float_of(added.bits);
    operate(added.empty && operation.takes_a ? VectorOp::MOVE : code.op, 1, &result, a, b, whole.adds_b ? b : &c,
            scalar);
  }
  clear_source(code);
  scalars_[code.destination] = {bits_of(result), false};
}

float ExecuteUnit::reduce(const Instruction& code, std::uint64_t n, const float* a, const float* b) {
  const std::uint64_t op = code.op, partials = code.octets ? OCTET : PARTIAL_SUMS;
  const std::uint64_t combine = is_extreme(op) ? op : VectorOp::ADD;
  const float infinity = std::numeric_limits<float>::infinity();
  float partial[PARTIAL_SUMS];
  std::fill(std::begin(partial), std::end(partial),
            op == VectorOp::MAX ? -infinity : op == VectorOp::MIN ? infinity : -0.0f);
  std::vector<float> absolute;
  if (op == VectorOp::ABS) {
    absolute.resize(n);
    operate(op, n, absolute.data(), a, nullptr, nullptr, 0);
    a = absolute.data();
  }
  for (std::uint64_t first = 0; first < n; first += partials)
    operate(op == VectorOp::ABS ? combine : op, std::min(partials, n - first), partial, a + first, b ? b + first : nullptr, partial, 0);
  for (std::uint64_t distance = 1; code.octets && distance < OCTET; distance *= 2)
    for (std::uint64_t first = 0; first < OCTET; first += 2 * distance)
      operate(combine, 1, partial + first, partial + first + distance, nullptr, partial + first, 0);
  for (std::uint64_t half = code.octets ? 0 : PARTIAL_SUMS / 2; half; half /= 2)
    operate(combine, half, partial, partial + half, nullptr, partial, 0);
  return partial[0];
}

void ExecuteUnit::operate(std::uint64_t op, std::uint64_t n, float* d, const float* a, const float* b, const float* c,
                          std::uint64_t scalar) {
  const float count = static_cast<float>(low_bits(scalar, COUNT_BITS));
  switch (op) {
    case VectorOp::MOVE:
      std::memmove(d, a, n * sizeof *d);
      break;
    case VectorOp::ROUND:
      each(d, n, [=](auto i) { return float_of(rounded(bits_of(a[i]), kind_)); });
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
    case VectorOp::AFFINE: {
      const float scale = b ? canonical(head_[0] * b[0]) : head_[0], bias = b ? canonical(head_[1] * b[0]) : head_[1];
      each(d, n, [=](auto i) { return canonical(__builtin_fmaf(a[i], scale, canonical(c[i] + bias))); });
      break;
    }
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
    case VectorOp::STORE_QUOTIENT:
      if (count <= 1)
        std::memmove(d, a, n * sizeof *d);
      else
        each(d, n, [=](auto i) { return canonical(a[i] / count); });
      break;
    case VectorOp::SELECT:
      each(d, n, [=](auto i) { return b[i] != 0 ? a[i] : c[i]; });
      break;
    case VectorOp::GREATER:
      each(d, n, [=](auto i) { return a[i] > c[i] ? 1.0f : 0.0f; });
      break;
    case VectorOp::LESS:
      each(d, n, [=](auto i) { return a[i] < c[i] ? 1.0f : 0.0f; });
      break;
    case VectorOp::EQUAL:
      each(d, n, [=](auto i) { return a[i] == c[i] ? 1.0f : 0.0f; });
      break;
    default:
      core_.raise(Cause::PROGRAM, Queue::NONE, position_);
  }
}

}  // namespace daedal
