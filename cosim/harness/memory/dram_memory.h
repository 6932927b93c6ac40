// A DRAM behind the core's AXI ports, with all that is between: what LiteDRAM's AXI front end and a splitter for the
// write port would be. Bursts become commands of single words; reads and writes of one bank take the same user port.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bus_rules.h"
#include "counts.h"
#include "dram.h"
#include "errors.h"
#include "memory/memory.h"
#include "pins.h"
#include "memory/random.h"
#include "memory/ring.h"
#include "memory/storage.h"

namespace daedal {

struct DramOptions {
  CreateDram *create;
  unsigned page_bytes;  // of a bank's row: banks change from page to page
  double stall = 0;
  std::uint32_t seed = 1;
};

class DramMemory final : public Memory {
 public:
  DramMemory(Pins &pins, Storage &storage, Counts &counts, Errors &errors, const DramOptions &options);

  void drive(std::uint64_t cycle) override;
  bool drives_before_edge() const override { return true; }
  void sample(std::uint64_t cycle) override;
  void host_wrote(std::uint64_t address, std::uint64_t size) override;

  bool dram_counts(std::uint64_t *values) const override;

 private:
  // Sizes and latencies of LiteDRAM's AXI front end as it comes: buffers of so many words, through which a word gets in
  // so many cycles; an address waits in a register.
  static constexpr unsigned BUFFER_WORDS = 16, BUFFER_CYCLES = 2, ADDRESSES = 2;
  static constexpr unsigned WRITE_BURSTS = 16;
  static constexpr std::uint64_t WAITING = ~std::uint64_t(0);

  struct ReadBurst {
    std::uint64_t address;
    unsigned beats, asked;  // beats that have been asked for
  };
  struct Beat {
    std::uint64_t address, ripe;  // the cycle from which on it can be offered; WAITING until it is here
    bool last, failed, known;     // known: what it must be is `expected`
    std::uint8_t data[BUS_BYTES], expected[BUS_BYTES];
  };
  struct WriteBurst {
    std::uint64_t address, ripe;  // the cycle from which on its response can be offered
    unsigned beats, taken, sent;  // beats taken from W, beats that the controller has
    bool failed;
  };
  struct Word {
    std::uint64_t address, strobes, ripe;
    WriteBurst *burst;
    bool last;
    std::uint8_t data[BUS_BYTES];
  };
  struct Port {
    Ring<ReadBurst, ADDRESSES> bursts;
    Ring<Beat, BUFFER_WORDS> beats;
    unsigned here = 0;       // beats before the oldest one that waits for its word
    bool offered = false;    // a beat is on R and not taken
    Ring<Word, BUFFER_WORDS> words;
    unsigned commanded = 0;  // words whose command was taken, counted from the front
    bool reads = false;      // whose turn it is to give a command
    Held held;
  };

  bool stalls() { return random_.chance(stall_); }
  unsigned port_of(std::uint64_t address) const { return unsigned(address / page_bytes_ % ports_.size()); }
  void offer(unsigned port, std::uint64_t cycle);
  bool wants_read(Port &port) { return !port.bursts.empty() && !port.beats.full(); }
  bool wants_write(Port &port, std::uint64_t cycle) {
    return port.words.size() > port.commanded && port.words[port.commanded].ripe <= cycle;
  }
  void drive_command(unsigned number, std::uint64_t cycle);
  void sample_command(unsigned number, std::uint64_t cycle);
  void read_taken(Port &port, std::uint64_t cycle);
  void write_taken(Port &port);
  void send_word(unsigned number, std::uint64_t cycle);
  void receive_word(unsigned number, std::uint64_t cycle);
  void drive_write(std::uint64_t cycle);
  void sample_read(unsigned number, std::uint64_t cycle);
  void sample_write(std::uint64_t cycle);
  void take_line(std::uint64_t cycle);
  WriteBurst *taking();

  Pins &pins_;
  Storage &storage_;
  Storage shadow_;  // what must be in the storage once all commands that were taken are done
  Counts &counts_;
  Errors &errors_;
  std::unique_ptr<Dram> dram_;
  unsigned page_bytes_;
  std::uint64_t stall_;
  Random random_;
  std::vector<Port> ports_;
  Ring<WriteBurst, WRITE_BURSTS> writes_;  // until they are acknowledged
  unsigned complete_ = 0;                  // of these, all beats taken from W
  bool response_offered_ = false;
  Held write_held_;
  std::uint64_t checked_ = 0;
};

}  // namespace daedal
