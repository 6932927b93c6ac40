// What program words put into the access unit.
#include "access_unit.h"

#include <algorithm>

namespace daedal {

namespace {

constexpr unsigned CONTROL_PART = 0;  // the three words of a load slot or an ALU operation
constexpr unsigned FIRST_PART = LevelField::LOAD0_BASE - LevelField::LOAD0;
constexpr unsigned SECOND_PART = LevelField::LOAD0_LIMIT - LevelField::LOAD0;
static_assert(FIRST_PART == LevelField::ALU0_A - LevelField::ALU0);
static_assert(SECOND_PART == LevelField::ALU0_B - LevelField::ALU0);

bool is_shift(std::uint64_t op) { return std::find(std::begin(SHIFTS), std::end(SHIFTS), op) != std::end(SHIFTS); }

}  // namespace

AccessUnit::AccessUnit(Core& core, ExecuteUnit& execute, StoreUnit& store)
    : core_(core), width_(core.space.width), execute_(execute), store_(store) {
  const Config& config = core.config;
  levels_.resize(config.levels);
  steps_.resize(config.steps);
  frames_.resize(config.levels);
  open_.reserve(config.levels);
  for (unsigned level = 0; level < levels_.size(); ++level) {
    levels_[level].sequential = config.sequential_loads[level];
    levels_[level].load_count = config.sequential_loads[level] + config.random_loads[level];
    levels_[level].alu_count = config.alus[level];
    levels_[level].contexts = config.contexts[level];
    levels_[level].shifters = config.shifters[level];
  }
}

void AccessUnit::clear() {
  for (Level& level : levels_) {
    level.control = {};
    level.check = {};
    level.count = {};
    level.step = 1;
    for (Load& load : level.loads) load.control = {};
    for (Alu& alu : level.alus) alu.control = {};
    for (EventControl& event : level.events) event = {};
  }
  done_ = true;
  open_.clear();
  parked_ = 0;
}

bool AccessUnit::configure(const ProgramWord& word) {
  const std::uint64_t value = word.value;
  if (word.unit == Unit::LEVEL) return configure_level(word.index, word.field, value);
  if (word.unit == Unit::EVENT) {
    const EventControl control = EventControl::decode(value);
    levels_[word.index / 4].events[word.index % 4] = control;
    return !control.count || (control.first + control.count <= steps_.size() && is_register(control.predicate));
  }
  Step& step = steps_[word.index];
  if (word.field != StepField::CONTROL) {
    step.constants[word.field] = width_.low(value);
    return true;
  }
  const StepControl control = step.control = StepControl::decode(value);
  core_.streams |= control.store_enable && control.stream;
  for (std::uint64_t source : {control.scalar, control.token, control.store_base, control.store_index,
                               control.store_pitch, control.store_size, control.fetch_base, control.fetch_index,
                               control.fetch_pitch, control.fetch_size})
    if (!is_register(source)) return false;
  return FetchQueue::known(control.queue);
}

bool AccessUnit::configure_level(unsigned number, std::uint64_t field, std::uint64_t value) {
  Level& level = levels_[number];
  if (field >= LevelField::ALU0)
    return configure_alu(level, (field - LevelField::ALU0) / ALU_FIELDS, (field - LevelField::ALU0) % ALU_FIELDS, value);
  if (field >= LevelField::LOAD0)
    return configure_load(level, (field - LevelField::LOAD0) / LOAD_FIELDS, (field - LevelField::LOAD0) % LOAD_FIELDS,
                          value);
  switch (field) {
    case LevelField::CONTROL:
      level.control = LevelControl::decode(value);
      return is_register(level.control.induction) && is_register(level.control.lower) &&
             is_register(level.control.upper) && (!level.control.interleave || level.contexts) &&
             (!level.control.deal || (level.contexts && core_.config.dealt_bundles && !level.control.interleave));
    case LevelField::LOWER:
      level.lower = width_.low(value);
      return true;
    case LevelField::UPPER:
      level.upper = width_.low(value);
      return true;
    case LevelField::STEP:
      level.step = width_.low(value);
      return level.step != 0;
    case LevelField::CHECK:
      level.check = CheckControl::decode(value);
      return !level.check.enable || (level.check.load < level.load_count && CheckKind::known(level.check.kind) &&
                                     CheckMode::known(level.check.mode) && is_register(level.check.limit));
    case LevelField::CHECK_LIMIT:
      level.limit = width_.low(value);
      return true;
    case LevelField::COUNT:
      level.count = CountControl::decode(value);
      return is_register(level.count.predicate) && is_register(level.count.destination);
    default:
      return false;
  }
}

bool AccessUnit::configure_load(Level& level, unsigned slot, unsigned part, std::uint64_t value) {
  Load& load = level.loads[slot];
  if (part == FIRST_PART) load.base = width_.low(value);
  if (part == SECOND_PART) load.limit = width_.low(value);  // only bounds reading ahead
  if (part != CONTROL_PART) return true;
  load.control = LoadControl::decode(value);
  load.line = ~0ull;
  const bool indexed = load.control.index != LoadIndex::INDUCTION;
  return is_register(load.control.index) && is_register(load.control.base) && is_register(load.control.destination) &&
         !(indexed && slot < level.sequential);
}

bool AccessUnit::configure_alu(Level& level, unsigned slot, unsigned part, std::uint64_t value) {
  Alu& alu = level.alus[slot];
  if (part == FIRST_PART) alu.a = width_.low(value);
  if (part == SECOND_PART) alu.b = width_.low(value);
  if (part != CONTROL_PART) return true;
  alu.control = AluControl::decode(value);
  return AluOp::known(alu.control.op) && is_register(alu.control.a) && is_register(alu.control.b) &&
         is_register(alu.control.destination) && (level.shifters || !is_shift(alu.control.op));
}

}  // namespace daedal
