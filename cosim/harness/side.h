// What one tile has outside of the model: memory, and what is noted of its buses.
#pragma once

#include <memory>

#include "bind_pins.h"
#include "counts.h"
#include "errors.h"
#include "joined_bus.h"
#include "memory/dram_memory.h"
#include "memory/ideal_memory.h"
#include "memory/memory.h"
#include "memory/storage.h"
#include "pins.h"
#include "recorder.h"

namespace daedal {

class Side {
 public:
  Side(Vmodel &model, unsigned tile, std::uint64_t memory_bytes, Errors &errors, const IdealOptions &options)
      : Side(model, tile, memory_bytes, errors, options.random ? options.seed : 0) {
    memory_ = std::make_unique<IdealMemory>(pins_, storage, counts, errors, options);
  }
  Side(Vmodel &model, unsigned tile, std::uint64_t memory_bytes, Errors &errors, const DramOptions &options)
      : Side(model, tile, memory_bytes, errors, options.stall > 0 ? options.seed : 0) {
    memory_ = std::make_unique<DramMemory>(pins_, storage, counts, errors, options);
  }
  Side(const Side &) = delete;

  Memory &memory() { return *memory_; }

  // Sets the inputs of the tile for this cycle.
  void drive(std::uint64_t cycle) {
    memory_->drive(cycle);
    if (joined_) joined_->drive();
  }

  // Takes the handshakes of this cycle.
  void sample(std::uint64_t cycle) {
    if (joined_) joined_->before_sample();
    memory_->sample(cycle);
    if (joined_) joined_->after_sample(cycle);
    recorder.sample(cycle);
  }

  Storage storage;
  Counts counts;

 private:
  Side(Vmodel &model, unsigned tile, std::uint64_t memory_bytes, Errors &errors, std::uint32_t seed)
      : storage(memory_bytes), counts(storage), pins_(bind_pins(model, tile)), recorder(pins_) {
    if (!IS_JOINED) return;
    joined_ = std::make_unique<JoinedBus>(bind_joined(model, tile), READ_PORTS, errors, seed);
    pins_.read = joined_->pins();
  }

  Pins pins_;
  std::unique_ptr<JoinedBus> joined_;
  std::unique_ptr<Memory> memory_;

 public:
  Recorder recorder;
};

}  // namespace daedal
