// The clock of a machine that has none. What cosim/clock puts in its place hears what the machine does, and says how long
// the RTL takes for it.
#pragma once
#include "encodings.h"

namespace daedal {

struct Clock {
  explicit Clock(const Config&) {}
  template <class... Given> void mix(const Given&...) {}
  void reset() {}
  void rang() {}
  template <class... Given> void begin(const Given&...) {}
  template <class... Given> void word(const Given&...) {}
  template <class... Given> void length(const Given&...) {}
  template <class... Given> void level(const Given&...) {}
  template <class... Given> void array(const Given&...) {}
  template <class... Given> void nest(const Given&...) {}
  template <class... Given> void load(const Given&...) {}
  template <class... Given> std::uint64_t arrive(const Given&...) { return 0; }
  template <class... Given> void deliver(const Given&...) {}
  template <class... Given> void step(const Given&...) {}
  template <class... Given> void fetch(const Given&...) {}
  void stepped() {}
  template <class... Given> void executed(const Given&...) {}
  template <class... Given> void stored(const Given&...) {}
  template <class... Given> void end(const Given&...) {}
};

}  // namespace daedal
