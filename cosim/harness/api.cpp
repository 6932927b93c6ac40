// The C interface that Python loads. Functions return 0 on failure; daedal_error tells what happened.
#include <cstring>
#include <exception>

#include "float_mode.h"
#include "sampler.h"
#include "simulation.h"

using daedal::CreateDram;
using daedal::DefaultFloatMode;
using daedal::DramOptions;
using daedal::IdealOptions;
using daedal::LaunchCounts;
using daedal::Simulation;

extern "C" {

Simulation *daedal_create(std::uint64_t memory_bytes, std::uint64_t latency, double lines, double stall,
                          std::uint64_t pause_after, std::uint64_t pause, std::uint32_t seed, int random) {
  const DefaultFloatMode mode;
  try {
    return new Simulation(memory_bytes, IdealOptions{latency, lines, stall, pause_after, pause, seed, random != 0});
  } catch (const std::exception &) {
    return nullptr;
  }
}

// With a DRAM behind the core that `create` makes, whose rows are of `page_bytes`.
Simulation *daedal_create_with_dram(std::uint64_t memory_bytes, CreateDram *create, std::uint32_t page_bytes,
                                    double stall, std::uint32_t seed) {
  const DefaultFloatMode mode;
  try {
    return new Simulation(memory_bytes, DramOptions{create, page_bytes, stall, seed});
  } catch (const std::exception &) {
    return nullptr;
  }
}

void daedal_destroy(Simulation *simulation) { delete simulation; }

std::uint32_t daedal_read_register(Simulation *simulation, std::uint32_t address) {
  const DefaultFloatMode mode;  // of the memory model's rate
  return simulation->read_register(address);
}

void daedal_write_register(Simulation *simulation, std::uint32_t address, std::uint32_t value) {
  const DefaultFloatMode mode;
  simulation->write_register(address, value);
}

// The bytes of a tile's memory, which the host may read whenever the clock stands still.
std::uint8_t *daedal_memory(Simulation *simulation, std::uint32_t tile) {
  return simulation->side(tile).storage.bytes();
}

// Puts bytes into a tile's memory; they must lie within it.
void daedal_write(Simulation *simulation, std::uint32_t tile, std::uint64_t address, const std::uint8_t *data,
                  std::uint64_t size) {
  std::memcpy(simulation->side(tile).storage.bytes() + address, data, size);
  simulation->side(tile).memory().host_wrote(address, size);
}

int daedal_run(Simulation *simulation, std::uint64_t cycles, double seconds, std::uint64_t least) {
  const DefaultFloatMode mode;
  return simulation->run(cycles, seconds, least);
}

std::uint64_t daedal_cycle(Simulation *simulation) { return simulation->cycle(); }

// Fills cycles (0: cannot be told), lines read (likewise), lines written and bytes written of the launch that ended last
// with its record at this address; 0 if there is none.
int daedal_counts(Simulation *simulation, std::uint32_t tile, std::uint64_t record, std::uint64_t *values) {
  const LaunchCounts *launch = simulation->side(tile).counts.of(record);
  if (!launch) return 0;
  values[0] = launch->timed ? launch->last_write - launch->start : 0;
  values[1] = launch->alone ? launch->lines_read : 0;
  values[2] = launch->lines_written;
  values[3] = launch->bytes_written;
  return 1;
}

// Fills lines read, lines written, cycles in which no line moved although a launch was at work, and the most of these
// in a row, all since the last call.
void daedal_traffic(Simulation *simulation, std::uint32_t tile, std::uint64_t *values) {
  const auto traffic = simulation->side(tile).counts.traffic();
  values[0] = traffic.lines_read;
  values[1] = traffic.lines_written;
  values[2] = traffic.idle;
  values[3] = traffic.longest;
}

// Begins (or ends) to keep the bursts that the core asks for.
void daedal_record(Simulation *simulation, std::uint32_t tile, int on) {
  simulation->side(tile).recorder.set(on != 0);
}

// Their number, and where they are until the clock goes on.
std::uint64_t daedal_recorded(Simulation *simulation, std::uint32_t tile, const daedal::RecordedBurst **bursts) {
  const auto &recorded = simulation->side(tile).recorder.bursts();
  *bursts = recorded.data();
  return recorded.size();
}

// Fills words that the DRAM read and wrote, words compared with what was stored, and refreshes; 0 without a DRAM.
int daedal_dram_counts(Simulation *simulation, std::uint32_t tile, std::uint64_t *values) {
  return simulation->side(tile).memory().dram_counts(values);
}

int daedal_trace(Simulation *simulation, const char *path) { return simulation->trace(path); }

void daedal_stop_trace(Simulation *simulation) { simulation->stop_trace(); }

// Begins to note where the processor is; 0 if that cannot be.
int daedal_start_samples() { return daedal::Sampler::start(); }

// Ends it: the number of addresses, and where they are.
std::uint64_t daedal_stop_samples(const std::uint64_t **samples) {
  *samples = daedal::Sampler::samples();
  return daedal::Sampler::stop();
}

// The first bus error, or an empty text.
const char *daedal_error(Simulation *simulation) { return simulation->errors().text(); }
}
