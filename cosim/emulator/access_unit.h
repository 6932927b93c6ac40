// The access unit: loop nests by the event contract (docs/machine/machine.md).
#pragma once
#include "bundle_dealer.h"
#include "execute_unit.h"

namespace daedal {

class AccessUnit {
 public:
  AccessUnit(Core& core, ExecuteUnit& execute, StoreUnit& store);

  // Before a launch and after a nest: levels and events disabled.
  void clear();
  // A word of unit LEVEL, EVENT or STEP, its argument added; false if it says something that the machine lacks.
  bool configure(const ProgramWord& word);
  // Begins the nest that is loaded.
  void start();
  // Goes on until the nest is done or the core's budget is used up; false after a fault.
  bool work();
  bool done() const { return done_; }

 private:
  using Registers = std::uint64_t[MAX_REGISTERS];

  struct Source {
    std::uint64_t source = 0, constant = 0;
    std::uint64_t value(const Registers& registers) const { return source ? registers[source - 1] : constant; }
  };
  struct Load {
    LoadControl control{};
    std::uint64_t base = 0, limit = 0, line = ~0ull;
  };
  struct Alu {
    AluControl control{};
    std::uint64_t a = 0, b = 0;
  };
  struct Level {
    LevelControl control{};
    CheckControl check{};
    CountControl count{};
    std::uint64_t lower = 0, upper = 0, step = 0, limit = 0;
    Load loads[4];
    Alu alus[4];
    EventControl events[EventKind::limit]{};
    unsigned sequential = 0, load_count = 0, alu_count = 0;
    unsigned contexts = 0;
    bool shifters = false;
  };
  struct Bundle {
    Registers registers{};
    bool live = true;
    std::uint32_t begin = 0, iteration = 0, end = 0;  // one bit per level
    unsigned context = 0;
    unsigned replaced = 0;    // values that checks replaced by 0
    bool has_warned = false;  // the first of these in mode WARN:
    std::uint64_t warned = 0;
    std::uint64_t number = 0;  // that the clock gave it
  };
  struct Frame {  // an activation
    Bundle parent;
    std::int64_t index = 0, upper = 0;
    std::uint64_t count = 0;
    bool first = true;
    bool occupied = false, begun = false, poisoned = false;  // only of a context
    bool done() const { return index >= upper; }
  };
  struct Step {
    StepControl control{};
    std::uint64_t constants[StepField::limit]{};
    std::uint64_t value(std::uint64_t source, std::uint64_t field, const Registers& registers) const {
      return source ? registers[source - 1] : constants[field];
    }
  };

  bool configure_level(unsigned level, std::uint64_t field, std::uint64_t value);
  bool configure_load(Level& level, unsigned slot, unsigned part, std::uint64_t value);
  bool configure_alu(Level& level, unsigned slot, unsigned part, std::uint64_t value);
  bool is_register(std::uint64_t source) const { return source <= static_cast<std::uint64_t>(core_.config.registers); }
  bool poison(const Bundle& bundle, unsigned level, std::uint64_t cause, std::uint64_t value, std::uint64_t address = 0);

  bool wait(unsigned level, std::uint64_t cause, std::uint64_t value);
  bool fail(const Bundle& bundle, unsigned level, std::uint64_t cause, std::uint64_t queue, std::uint64_t value,
            std::uint64_t address);

  bool descend(unsigned level, Bundle& bundle);
  Frame& park(const Bundle& bundle);
  bool turn();
  bool activate(unsigned level, Frame& frame, Bundle& bundle, bool& iterates);
  bool iterate(unsigned level, Frame& frame, Bundle& bundle);
  bool load(unsigned level, unsigned slot, const Frame& frame, std::uint64_t induction, Bundle& bundle,
            std::uint64_t& loaded);
  bool check(unsigned level, const Frame& frame, const std::uint64_t* loaded, Bundle& bundle);
  void replace(const Level& level, std::uint64_t loaded, Bundle& bundle);
  void tell();
  void tell(const Level& level, unsigned slot);
  void foresee();
  void prefetch(unsigned unit, const Bundle& bundle, std::uint64_t at, unsigned size) const;
  std::uint64_t changes_before(unsigned number) const;
  bool arrive(Bundle& bundle);
  bool deliver(const Bundle& bundle);
  bool event(unsigned level, const EventControl& control, const Bundle& bundle);
  bool step(unsigned level, const Step& step, const Bundle& bundle);
  bool fetch(unsigned level, const Step& step, const Bundle& bundle);

  Core& core_;
  const Width width_;
  ExecuteUnit& execute_;
  StoreUnit& store_;
  std::vector<Level> levels_;
  std::vector<Step> steps_;
  std::vector<Frame> frames_;      // by level
  std::vector<unsigned> open_;     // levels with an activation in work, innermost last
  std::vector<Frame> contexts_;    // of the level that interleaves
  unsigned interleaving_ = 0;      // that level; as many as there are: none
  unsigned parked_ = 0;            // contexts that are occupied
  unsigned next_ = 0;              // context whose turn it is
  BundleDealer<Bundle> dealer_;
  unsigned dealing_ = 0;           // the level whose activations are dealt to contexts; as many as there are: none
  bool in_order_ = true;           // no activations take turns
  bool lost_ = false;              // a poisoned bundle waits until all others are dealt:
  Bundle poisoned_;
  Fault poison_;                   // what is wrong with a poisoned bundle that waits for its turn
  bool started_ = false, done_ = true;
  std::uint32_t masks_[EventKind::limit] = {};  // levels with an event of that kind
  const Step* follows_[4 * MAX_LEVELS] = {};    // of each load: a step that fetches the row that its element names
};

}  // namespace daedal
