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

void rtl_integer(std::uint32_t, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  Bench bench;
  for (std::uint64_t n = 0; n < count; ++n) {
    bench.model.element = in[n];
    bench.model.eval();
    out[n] = bench.model.integer;
  }
}

// The first element of each byte.
void emulator_integers(std::uint32_t kind, const std::uint32_t *in, std::uint64_t count, std::uint32_t *out) {
  std::vector<float> row;
  for (std::uint64_t n = 0; n < count; ++n) {
    const auto byte = static_cast<std::uint8_t>(in[n]);
    daedal::widen_row(&byte, 8 / daedal::element_bits(kind), kind, row);
    std::memcpy(out + n, row.data(), sizeof *out);
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
