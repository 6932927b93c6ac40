// Runs patterns through verilated converters, and through those of the emulator.
#include <cstdint>
#include <memory>

#include "Vmodel.h"
#include "coverage.h"
#include "narrow_rows.h"
#include "verilated.h"

namespace {

struct Bench {
  VerilatedContext context;
  Vmodel model{&context};
  Coverage coverage{context};
};

}  // namespace

extern "C" {

void rtl_widen(std::uint32_t kind, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  Bench bench;
  bench.model.kind = kind;
  for (std::uint64_t n = 0; n < count; ++n) {
    bench.model.element = in[n];
    bench.model.eval();
    out[n] = bench.model.widened;
  }
}

void rtl_narrow(std::uint32_t kind, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  Bench bench;
  bench.model.kind = kind;
  for (std::uint64_t n = 0; n < count; ++n) {
    bench.model.number = in[n];
    bench.model.eval();
    out[n] = bench.model.narrowed;
  }
}

void rtl_shorten(std::uint32_t kind, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  Bench bench;
  bench.model.kind = kind;
  for (std::uint64_t n = 0; n < count; ++n) {
    bench.model.number = in[n];
    bench.model.eval();
    out[n] = bench.model.shortened;
  }
}

void emulator_widen(std::uint32_t kind, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  for (std::uint64_t n = 0; n < count; ++n) out[n] = daedal::widened(in[n], kind);
}

void emulator_narrow(std::uint32_t kind, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  for (std::uint64_t n = 0; n < count; ++n) out[n] = daedal::narrowed(in[n], kind);
}

void emulator_shorten(std::uint32_t kind, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  for (std::uint64_t n = 0; n < count; ++n) out[n] = daedal::rounded(in[n], kind);
}
}
