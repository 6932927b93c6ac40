// What a memory checks of the bursts that it is asked for.
#pragma once

#include <cstdint>

#include "encodings.h"
#include "errors.h"
#include "pins.h"

namespace daedal {

// An address channel as it was in a cycle in which it was not taken: it must not change.
struct Held {
  bool valid = false;
  std::uint64_t address = 0;
  unsigned length = 0;
};

// Reports a burst that is not of whole lines in order, is too long, or crosses 4 KiB.
inline void check_burst(Errors &errors, const char *channel, std::uint64_t address, unsigned length, unsigned size,
                        unsigned kind, std::uint64_t cycle) {
  constexpr std::uint64_t BOUNDARY = 4096;
  constexpr unsigned INCR = 1;
  std::uint64_t end = address + (std::uint64_t(length) + 1) * BUS_BYTES - 1;
  if (length >= MAX_BURST || address % BUS_BYTES || (1u << size) != BUS_BYTES || kind != INCR)
    errors.report(cycle, "%s burst at %#llx with length %u, size %u, kind %u is not whole lines in order", channel,
                  (unsigned long long)address, length, size, kind);
  if (address / BOUNDARY != end / BOUNDARY)
    errors.report(cycle, "%s burst at %#llx of %u beats crosses a 4 KiB boundary", channel,
                  (unsigned long long)address, length + 1);
}

// Reports an address that changed while it waited.
inline void check_held(Errors &errors, const char *channel, Held &held, bool valid, bool ready, std::uint64_t address,
                       unsigned length, std::uint64_t cycle) {
  if (held.valid && (!valid || address != held.address || length != held.length))
    errors.report(cycle, "%s changed while it waited at address %#llx", channel, (unsigned long long)held.address);
  held = {valid && !ready, address, length};
}

}  // namespace daedal
