// What Python asks of a machine with a clock, beside what it asks of the emulator.
#include <cstring>

#include "machine.h"

extern "C" {

// The memory's times, in the order of Parameters; before the first launch.
void clock_set(void* machine, const std::int64_t* values) {
  daedal::timing::Parameters parameters;
  std::memcpy(&parameters, values, sizeof parameters);
  static_cast<daedal::Machine*>(machine)->core().clock.set(parameters);
}

// Rows of the DRAM's banks that were opened so far.
std::uint64_t clock_activations(void* machine) { return static_cast<daedal::Machine*>(machine)->core().clock.activations(); }

// Lines that a port was asked for so far.
std::uint64_t clock_lines(void* machine, unsigned port) {
  return static_cast<daedal::Machine*>(machine)->core().clock.lines_of(port);
}
}
