// A DRAM with its controller, as `Description` in text.py has it, moved on clock by clock. The same class for every
// user: a core's harness and traffic generators load the library that `build_dram` in model.py makes.
#pragma once

#include <cstdint>
#include <vector>

namespace daedal {

// One user port. Commands are inputs of the model, all else are its outputs.
struct DramPort {
  std::uint8_t *cmd_valid, *cmd_we;
  std::uint32_t *cmd_addr;  // of a word
  const std::uint8_t *cmd_ready;
  const std::uint8_t *wdata_ready, *rdata_valid;  // known from the clock edge on
};

struct DramCounts {
  std::uint64_t reads, writes, refreshes;  // words, words, commands
};

class Dram {
 public:
  virtual ~Dram() = default;

  std::vector<DramPort> ports;
  void *wdata, *wdata_we;  // what the port with wdata_ready writes in this cycle
  const void *rdata;       // what the port with rdata_valid gets in this cycle
  DramCounts counts{};

  // Lets the outputs follow the inputs of this cycle.
  virtual void settle() = 0;
  // The clock edge that ends the cycle.
  virtual void edge() = 0;
  // The first violation of timing that the model reported, or an empty text; nothing without its checks.
  virtual const char *violation() const = 0;
};

// `rows` are `size` bytes, a word at its address times its bytes: the caller's, who may touch them between cycles.
using CreateDram = Dram *(std::uint8_t *rows, std::uint64_t size);
constexpr const char *CREATE_DRAM = "daedal_create_dram";

}  // namespace daedal
