// The C interface that the Python target loads.
#include <algorithm>
#include <new>

#include "float_mode.h"
#include "machine.h"

using daedal::DefaultFloatMode;
using daedal::DeviceMemory;
using daedal::Machine;

extern "C" {

// A memory of so many bytes; null if there is not enough. `sparse`: the host need not have so much.
void* emulator_memory_open(std::uint64_t bytes, int sparse) {
  auto* memory = new (std::nothrow) DeviceMemory(bytes, sparse);
  if (memory && memory->allocated()) return memory;
  delete memory;
  return nullptr;
}

void emulator_memory_close(void* memory) { delete static_cast<DeviceMemory*>(memory); }

// 1, or 0 if the range is not all in memory.
int emulator_memory_read(void* memory, std::uint64_t address, std::uint64_t size, void* data) {
  auto& bytes = *static_cast<DeviceMemory*>(memory);
  if (!bytes.contains(address, size)) return 0;
  std::memcpy(data, bytes.at(address), size);
  return 1;
}

int emulator_memory_write(void* memory, std::uint64_t address, std::uint64_t size, const void* data) {
  auto& bytes = *static_cast<DeviceMemory*>(memory);
  if (!bytes.contains(address, size)) return 0;
  std::memcpy(bytes.at(address), data, size);
  return 1;
}

// A machine with the configuration in these values (c_header.config_values) on a memory that is closed after it; null if
// there is not enough memory for it.
void* emulator_open(const std::int64_t* config, void* memory) {
  daedal::Config values;
  static_assert(sizeof values % sizeof *config == 0);
  std::memcpy(&values, config, sizeof values);
  try {
    return new Machine(values, *static_cast<DeviceMemory*>(memory));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::uint64_t emulator_config_values() { return sizeof(daedal::Config) / sizeof(std::int64_t); }

void emulator_close(void* machine) { delete static_cast<Machine*>(machine); }

std::uint32_t emulator_csr_read(void* machine, std::uint32_t address) {
  return static_cast<Machine*>(machine)->read(address);
}

void emulator_csr_write(void* machine, std::uint32_t address, std::uint32_t value) {
  static_cast<Machine*>(machine)->write(address, value);
}

// Where in memory a program's address is.
std::uint64_t emulator_memory_address(void* machine, std::uint64_t address) {
  return static_cast<Machine*>(machine)->core().space.map(address);
}

// 1 when a launch ended, 2 when there is none, 0 when `budget` words, bundles, steps and instructions are used up.
int emulator_run(void* machine, std::int64_t budget) {
  const DefaultFloatMode mode;
  switch (static_cast<Machine*>(machine)->run(budget)) {
    case Machine::Progress::ENDED:
      return 1;
    case Machine::Progress::IDLE:
      return 2;
    default:
      return 0;
  }
}

void emulator_trace(void* machine, int enable) { static_cast<Machine*>(machine)->core().traced = enable; }

std::uint64_t emulator_trace_size(void* machine) { return static_cast<Machine*>(machine)->core().trace.size(); }

// Entries of four words: queue, value or address, bytes, stream.
void emulator_trace_copy(void* machine, std::uint64_t* words) {
  for (const auto& entry : static_cast<Machine*>(machine)->core().trace) {
    const std::uint64_t listed[] = {entry.kind, entry.value, entry.size, entry.stream};
    words = std::copy(std::begin(listed), std::end(listed), words);
  }
}
}
