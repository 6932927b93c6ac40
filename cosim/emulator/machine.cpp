#include "machine.h"

#include "legality.h"

#include <algorithm>

namespace daedal {

namespace {

constexpr std::uint64_t LONGEST_PROGRAM = 1 << 15;  // words; the loader counts in 16 bits
constexpr std::uint64_t SHORTEST_PROGRAM = 3;

// The checksum behind one word more (hw/isa/checksum.py).
std::uint64_t next_sum(std::uint64_t so_far, std::uint64_t word) {
  const std::uint64_t carried = so_far >> (SUM_BITS - 1) ? SUM_POLYNOMIAL : 0;
  std::uint64_t sum = so_far ^ so_far << 1 ^ carried ^ word;
  for (unsigned number = 1; number * SUM_BITS < 8 * WORD_BYTES; ++number) {
    const std::uint64_t quarter = low_bits(word >> number * SUM_BITS, SUM_BITS), places = SUM_ROTATIONS[number - 1];
    sum ^= quarter ^ quarter << places ^ quarter >> (SUM_BITS - places);
  }
  return low_bits(sum, SUM_BITS);
}

}  // namespace

Machine::Machine(const Config& config, DeviceMemory& memory)
    : core_(config, memory),
      store_(core_),
      execute_(core_, store_),
      access_(core_, execute_, store_),
      arguments_(config.arguments) {}

std::uint32_t Machine::read(std::uint32_t address) const {
  switch (address) {
    case Register::IDENTITY: return IDENTITY;
    case Register::REVISION: return REVISION;
    case Register::CONFIG_HASH: return core_.config.hash;
    case Register::CONTROL: return Control{0, interrupt_enable_, mixed_, 0}.encode();
    case Register::STATUS: return Status{busy_, faulted_, overflow_, 0, queue_.size(), 0}.encode();
    case Register::LAUNCH_LOW: return launch_low_;
    case Register::LAUNCH_HIGH: return launch_high_;
    case Register::COMPLETED: return completed_;
    case Register::INTERRUPT: return interrupt_;
    case Register::FAULT: return cause_;
    default: return 0;
  }
}

void Machine::write(std::uint32_t address, std::uint32_t value) {
  switch (address) {
    case Register::CONTROL:
      interrupt_enable_ = Control::decode(value).interrupt_enable;
      mixed_ = Control::decode(value).mixed;
      core_.clock.mix(mixed_);
      if (Control::decode(value).reset) reset();
      break;
    case Register::LAUNCH_LOW: launch_low_ = value; break;
    case Register::LAUNCH_HIGH: launch_high_ = value; break;
    case Register::DOORBELL: doorbell(); break;
    case Register::INTERRUPT:
      if (value & 1) interrupt_ = false;
      break;
    default: break;
  }
}

void Machine::doorbell() {
  const std::uint64_t block = core_.space.width.low(launch_low_ | static_cast<std::uint64_t>(launch_high_) << 32);
  if (faulted_ || queue_.size() >= LAUNCH_QUEUE_DEPTH) {
    overflow_ = true;
  } else if (busy_) {
    core_.clock.rang();
    queue_.push_back(block);
  } else {
    core_.clock.rang();
    begin(block);
  }
}

void Machine::reset() {
  queue_.clear();
  busy_ = faulted_ = overflow_ = false;
  cause_ = Cause::NONE;
  core_.clock.reset();
  core_.clear();
  access_.clear();
  execute_.clear();
}

void Machine::begin(std::uint64_t block) {
  busy_ = true;
  core_.clear();
  access_.clear();
  execute_.clear();
  store_.clear();
  position_ = length_ = sum_ = nest_ = 0;
  started_ = false;
  if (!read_block(block, true)) return;
  if (!follows_ && program_ % LAUNCH_ALIGNMENT) core_.raise(Cause::ALIGNMENT, Queue::NONE, 0, program_);
}

// Header and arguments of a launch block; false, with a fault raised, if there is none. A program that follows it is read
// with it.
bool Machine::read_block(std::uint64_t block, bool arguments) {
  const Space& memory = core_.space;
  has_record_ = false;
  if (block % LAUNCH_ALIGNMENT) return core_.raise(Cause::ALIGNMENT, Queue::NONE, 0, block);
  const std::uint64_t header = LAUNCH_HEADER_WORDS * WORD_BYTES;
  if (!memory.contains(block, header)) return core_.raise(Cause::MEMORY_ERROR, Queue::NONE, 0, block);
  const auto read = [&](std::uint64_t number) { return memory.read(block + number * WORD_BYTES, WORD_BYTES); };
  const LaunchFlags flags = LaunchFlags::decode(read(LaunchWord::FLAGS));
  follows_ = flags.last_word >= LEAST_FOLLOWING - 1;
  present_arguments_ = follows_ ? flags.last_argument + 1 : arguments_.size();
  const std::uint64_t size = header + present_arguments_ * WORD_BYTES;
  const std::uint64_t whole = size + follows_ * (flags.last_word + 1) * WORD_BYTES;
  if (!memory.contains(block, whole)) return core_.raise(Cause::MEMORY_ERROR, Queue::NONE, 0, block);
  program_ = core_.space.width.low(follows_ ? block + size : read(LaunchWord::PROGRAM));
  record_ = core_.space.width.low(read(LaunchWord::RECORD));
  number_ = read(LaunchWord::LAUNCH);
  has_record_ = record_ % LAUNCH_ALIGNMENT == 0 && memory.contains(record_, RECORD_WORDS * WORD_BYTES);
  if (arguments) {
    core_.counters[Counter::LINES_READ] += core_.lines(block, size);
    core_.clock.begin(core_.space, block, size, whole, flags.fence);
    if (follows_) length_ = flags.last_word + 1;
    for (std::uint64_t k = 0; k < std::min<std::uint64_t>(present_arguments_, arguments_.size()); ++k)
      arguments_[k] = low_bits(read(LaunchWord::ARGUMENTS + k), VALUE_BITS);
    const StoreWindow given = StoreWindow::decode(read(LaunchWord::WINDOW));
    const unsigned bits = core_.config.place_bits - __builtin_ctzll(STORE_GRANULE);
    core_.window = {low_bits(given.first, bits), low_bits(given.last, bits)};
    if (record_ % LAUNCH_ALIGNMENT) return core_.raise(Cause::ALIGNMENT, Queue::NONE, 0, record_);
    if (!has_record_) return core_.raise(Cause::MEMORY_ERROR, Queue::NONE, 0, record_);
  }
  return true;
}

Machine::Progress Machine::run(std::int64_t budget) {
  if (!busy_) return Progress::IDLE;
  ended_ = false;
  core_.budget = budget;
  while (core_.budget > 0 && !ended_) {
    if (core_.faulted())
      end();
    else if (!access_.done())
      run_nest();
    else
      word();
  }
  return ended_ ? Progress::ENDED : Progress::WORKING;
}

void Machine::run_nest() {
  if (access_.work() && access_.done()) access_.clear();
}

bool Machine::illegal() { return core_.raise(Cause::PROGRAM, Queue::NONE, position_); }

// The next word of the program; false after a fault and after the last one.
bool Machine::word() {
  --core_.budget;
  const std::uint64_t address = core_.space.width.low(program_ + position_ * WORD_BYTES);
  const std::uint64_t missing = core_.space.missing(address, WORD_BYTES);
  if (missing != NOWHERE) return core_.raise(Cause::MEMORY_ERROR, Queue::NONE, 0, missing);
  if (!core_.unstored(address, WORD_BYTES, Queue::NONE)) return false;
  core_.counters[Counter::LINES_READ] += (position_ == 0 && !follows_) || address % core_.config.bus_bytes == 0;
  const std::uint64_t bits = core_.space.read(address, WORD_BYTES);
  sum_ = next_sum(sum_, bits);
  ProgramWord word = ProgramWord::decode(bits);
  core_.clock.word(word, core_.space.map(address), position_ == 0, address);
  if (!exists(word) || misplaced(word)) return illegal();
  if (word.substitute && word.unit != Unit::CONTROL)
    word.value = low_bits(word.value + arguments_[word.argument], VALUE_BITS);
  if (!carry_out(word)) return false;
  if (!ended_) ++position_;  // else the next launch may be at its first word by now
  return true;
}

bool Machine::carry_out(const ProgramWord& word) {
  switch (word.unit) {
    case Unit::LEVEL:
    case Unit::EVENT:
    case Unit::STEP:
      return access_.configure(word) || illegal();
    case Unit::LENGTH:
    case Unit::CALLBACK:
    case Unit::INSTRUCTION:
      execute_.configure(word);
      return true;
    default:
      break;
  }
  if (word.field == ControlField::LENGTH && !follows_) {
    length_ = word.value;
    core_.clock.length(length_);
  }
  if (word.field == ControlField::RUN) {
    nest_ += started_;
    started_ = true;
    access_.start();
  }
  if (word.field == ControlField::END) {
    if (sum_) return illegal();
    if (drained()) end();
    return false;  // the next launch, which may have begun, is at its first word
  }
  return true;
}

// Whether CONFIG, LENGTH and END are where they must be, and only there, and right.
bool Machine::misplaced(const ProgramWord& word) const {
  const auto is = [&](std::uint64_t field) { return word.unit == Unit::CONTROL && word.field == field; };
  if (is(ControlField::CONFIG) != (position_ == 0) || is(ControlField::LENGTH) != (position_ == 1)) return true;
  if (position_ == 0) return word.substitute || word.value != static_cast<std::uint64_t>(core_.config.hash);
  if (position_ == 1) return word.substitute || word.value < SHORTEST_PROGRAM || word.value >= LONGEST_PROGRAM;
  return is(ControlField::END) != (position_ == length_ - 1);
}

bool Machine::exists(const ProgramWord& word) const {
  if (word.substitute && word.argument >= std::min<std::uint64_t>(present_arguments_, arguments_.size())) return false;
  return known_field(word.unit, word.field) && field_exists(word);
}

bool Machine::field_exists(const ProgramWord& word) const {
  const Config& config = core_.config;
  const auto below = [&](std::int64_t limit) { return word.index < static_cast<std::uint64_t>(limit); };
  switch (word.unit) {
    case Unit::CONTROL: return word.index == 0;
    case Unit::EVENT: return below(4 * config.levels) && EventKind::known(word.index % 4);
    case Unit::STEP: return below(config.steps);
    case Unit::LENGTH: return below(config.lengths) && !started_ && has_kind(config, word.field);
    case Unit::CALLBACK: return below(config.callbacks) && !started_;
    case Unit::INSTRUCTION: return below(config.instructions) && !started_;
    default: break;
  }
  if (!below(config.levels)) return false;
  const std::uint64_t loads = config.sequential_loads[word.index] + config.random_loads[word.index];
  if (word.field >= LevelField::ALU0)
    return (word.field - LevelField::ALU0) / ALU_FIELDS < static_cast<std::uint64_t>(config.alus[word.index]);
  return word.field < LevelField::LOAD0 || (word.field - LevelField::LOAD0) / LOAD_FIELDS < loads;
}

// Whether nothing is left that would keep a launch from ending; else the fault HANG, which names first a queue
// that a unit waits for in vain, then one that nobody empties.
bool Machine::drained() {
  const auto& rows = core_.rows;
  const std::uint64_t starving = execute_.starving();
  if (starving != Queue::NONE) return core_.raise(Cause::HANG, starving);
  if (!core_.store_addresses.empty()) return core_.raise(Cause::HANG, Queue::STORE_DATA);
  if (!rows[FetchQueue::STORE].empty()) return core_.raise(Cause::HANG, Queue::STREAM);
  if (!core_.store_data.empty()) return core_.raise(Cause::HANG, Queue::STORE_DATA);
  if (!core_.scalars.empty()) return core_.raise(Cause::HANG, Queue::SCALAR);
  if (!rows[FetchQueue::VECTOR1].empty()) return core_.raise(Cause::HANG, Queue::VECTOR1);
  if (!rows[FetchQueue::VECTOR0].empty()) return core_.raise(Cause::HANG, Queue::VECTOR0);
  return true;
}

// The launch has ended, well or by a fault; a fault takes the queued ones with it.
void Machine::end() {
  if (core_.faulted()) {
    // A queue that is full because the execute unit waits for another one is not to blame.
    if (core_.fault.cause == Cause::HANG && execute_.starving() != Queue::NONE) core_.fault.queue = execute_.starving();
    faulted_ = true;
    cause_ = core_.fault.cause;
    write_record(State::FAULTED, nest_);
  } else {
    write_record(State::DONE, 0);
  }
  busy_ = false;
  const bool goes_on = !faulted_ && !queue_.empty();
  while (faulted_ && !queue_.empty()) {
    const std::uint64_t block = queue_.front();
    queue_.pop_front();
    core_.fault = {};
    core_.counters.fill(0);
    read_block(block, false);
    core_.fault = {};
    write_record(State::CANCELLED, 0);
  }
  if (goes_on) {
    const std::uint64_t block = queue_.front();
    queue_.pop_front();
    begin(block);
  }
}

void Machine::write_record(std::uint64_t state, std::uint64_t nest) {
  ended_ = interrupt_ = true;
  if (state != State::CANCELLED) core_.clock.end(core_.counters, has_record_);
  ++completed_;
  if (!has_record_) return;
  const Fault& fault = core_.fault;
  std::array<std::uint64_t, RECORD_WORDS> words{};
  words[RecordWord::HEAD] = RecordHead{state, fault.cause, nest, fault.level, fault.queue, number_}.encode();
  words[RecordWord::VALUE] = state == State::DONE ? core_.warned : fault.value;
  words[RecordWord::ADDRESS] = fault.address;
  std::copy(std::begin(fault.registers), std::end(fault.registers), &words[RecordWord::REGISTER0]);
  std::copy(core_.counters.begin(), core_.counters.end(), &words[RecordWord::COUNTERS]);
  core_.space.copy_to(record_, words.size() * WORD_BYTES, words.data());
}

}  // namespace daedal
