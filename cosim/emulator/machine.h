// The host side: registers, the launch queue, the loader, completion records.
#pragma once
#include <deque>

#include "access_unit.h"

namespace daedal {

// A core with its host side, on a memory that outlives it.
class Machine {
 public:
  Machine(const Config& config, DeviceMemory& memory);

  std::uint32_t read(std::uint32_t address) const;
  void write(std::uint32_t address, std::uint32_t value);
  enum class Progress { WORKING, ENDED, IDLE };
  // Goes on until a launch ends or about `budget` words, bundles, steps and instructions are done.
  Progress run(std::int64_t budget);
  Core& core() { return core_; }

 private:
  void doorbell();
  void reset();
  void begin(std::uint64_t block);
  bool read_block(std::uint64_t block, bool arguments);
  void run_nest();
  bool word();
  bool carry_out(const ProgramWord& word);
  bool misplaced(const ProgramWord& word) const;
  bool exists(const ProgramWord& word) const;
  bool field_exists(const ProgramWord& word) const;
  bool illegal();
  bool drained();
  void end();
  void write_record(std::uint64_t state, std::uint64_t nest);

  Core core_;
  StoreUnit store_;
  ExecuteUnit execute_;
  AccessUnit access_;
  std::deque<std::uint64_t> queue_;
  std::vector<std::uint64_t> arguments_;
  std::uint32_t launch_low_ = 0, launch_high_ = 0, completed_ = 0;
  bool interrupt_enable_ = false, mixed_ = false, interrupt_ = false, overflow_ = false;
  bool busy_ = false, faulted_ = false, ended_ = false;
  std::uint64_t cause_ = Cause::NONE;
  // The launch in work.
  std::uint64_t program_ = 0, record_ = 0, number_ = 0, nest_ = 0;
  std::uint64_t position_ = 0, length_ = 0;  // of the program, words
  std::uint64_t sum_ = 0;                    // of its words so far
  std::uint64_t present_arguments_ = 0;      // in the launch block
  bool has_record_ = false, started_ = false;
  bool follows_ = false;  // the program follows the launch block
};

}  // namespace daedal
