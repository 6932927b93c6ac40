// What the clock's times are computed from; a structure of 64-bit integers that Python fills (cosim/clock/parameters.py).
#pragma once
#include <cstdint>

namespace daedal::timing {

// Cycles, unless something else is said.
struct Parameters {
  std::int64_t dram;          // 1: banks, rows, refresh; 0: a fixed latency
  std::int64_t latency;       // from an address to its first line
  std::int64_t line_time;     // 1/256 cycles that a line takes on the bus
  std::int64_t banks, page_bytes;
  std::int64_t precharge, activate, active, row_cycle, activate_gap;
  std::int64_t refresh_interval, refresh_time;
  std::int64_t port_words;    // lines that wait at a bank, while the burst behind them is on its way
  std::int64_t turn;          // lost around a batch of writes
  std::int64_t short_turn;    // the same, of a batch that is written while few reads are on their way
  std::int64_t write_latency; // from a batch's last line to its acknowledgement
};

}  // namespace daedal::timing
