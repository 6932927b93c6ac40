// The model, the memory of each of its tiles and its host port, moved on clock by clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "Vmodel.h"
#include "coverage.h"
#include "errors.h"
#include "lite.h"
#include "side.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace daedal {

class Simulation {
 public:
  Simulation(std::uint64_t memory_bytes, const IdealOptions &options);
  Simulation(std::uint64_t memory_bytes, const DramOptions &options);
  ~Simulation();

  std::uint32_t read_register(std::uint32_t address);
  void write_register(std::uint32_t address, std::uint32_t value);

  // Clocks until the interrupt is raised (true), or `cycles` or `seconds` are over, or something went wrong; the
  // interrupt is not looked at before `least` cycles are over.
  bool run(std::uint64_t cycles, double seconds, std::uint64_t least);

  // Writes waveforms to a file from here on; false if this model cannot.
  bool trace(const char *path);
  void stop_trace();

  Side &side(unsigned tile) { return *sides_[tile]; }
  const Errors &errors() const { return errors_; }
  std::uint64_t cycle() const { return cycle_; }

 private:
  template <class Options>
  void begin(std::uint64_t memory_bytes, const Options &options);
  void clock();
  void lower_pins_clock();
  void fall(bool take_inputs);
  void rise(bool take_inputs);
  void dump(unsigned half);
  void finish_transaction();

  VerilatedContext context_;
  std::unique_ptr<Vmodel> model_;
  Coverage coverage_;
  Errors errors_;
  std::vector<std::unique_ptr<Side>> sides_;  // by the tile's number
  std::unique_ptr<LiteMaster> host_;
  CData *interrupt_ = nullptr;
  std::uint64_t cycle_ = 0;
  bool taken_ = false;  // the core has all inputs of this cycle
#if VM_TRACE
  std::unique_ptr<VerilatedVcdC> trace_;
#endif
};

}  // namespace daedal
