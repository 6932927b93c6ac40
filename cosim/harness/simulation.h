// The model, its memory and its host port, moved on clock by clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "Vmodel.h"
#include "counts.h"
#include "coverage.h"
#include "memory/dram_memory.h"
#include "errors.h"
#include "memory/ideal_memory.h"
#include "lite.h"
#include "memory/memory.h"
#include "pins.h"
#include "recorder.h"
#include "memory/storage.h"
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

  // Clocks until the interrupt is raised (true), or `cycles` or `seconds` are over, or something went wrong.
  bool run(std::uint64_t cycles, double seconds);

  // Writes waveforms to a file from here on; false if this model cannot.
  bool trace(const char *path);
  void stop_trace();

  Storage &storage() { return storage_; }
  Memory &memory() { return *memory_; }
  Counts &counts() { return counts_; }
  Recorder &recorder() { return recorder_; }
  const Errors &errors() const { return errors_; }
  std::uint64_t cycle() const { return cycle_; }

 private:
  explicit Simulation(std::uint64_t memory_bytes);
  void clock();
  void lower_pins_clock();
  void fall(bool take_inputs);
  void rise(bool take_inputs);
  void dump(unsigned half);
  void finish_transaction();

  VerilatedContext context_;
  std::unique_ptr<Vmodel> model_;
  Coverage coverage_;
  Pins pins_;
  Storage storage_;
  Errors errors_;
  Counts counts_;
  std::unique_ptr<Memory> memory_;
  LiteMaster host_;
  Recorder recorder_;
  std::uint64_t cycle_ = 0;
  bool taken_ = false;  // the core has all inputs of this cycle
#if VM_TRACE
  std::unique_ptr<VerilatedVcdC> trace_;
#endif
};

}  // namespace daedal
