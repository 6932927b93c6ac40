// A verilated board: clock, reset, and a serial line whose other end is a file descriptor. Bits on the line take the time
// that they take at the baud rate. The C interface that Python loads.
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <string>

#include "Vmodel.h"
#include "coverage.h"
#include "board_pins.h"
#include "float_mode.h"
#include "verilated.h"

namespace {

constexpr unsigned RESET_CYCLES = 8, FRAME_BITS = 10;  // of a byte: start, eight bits, stop
constexpr unsigned POLL_BYTES = 64;                    // taken from the descriptor at a time

// One direction of the line: time is counted in fractions of a cycle, so that no baud rate is rounded.
struct Sender {
  unsigned bits = 0, left = 0;
  double until = 0;

  // The level of the line at this cycle.
  bool level(double cycle, double bit_cycles, std::deque<std::uint8_t> &bytes) {
    while (left && cycle >= until) {
      bits >>= 1;
      if (--left) until += bit_cycles;
    }
    if (!left) {
      if (bytes.empty()) return true;
      if (until < cycle - 1) until = cycle;  // the line was idle; else bytes follow each other without a gap
      bits = unsigned(bytes.front()) << 1 | 1u << (FRAME_BITS - 1);
      bytes.pop_front();
      left = FRAME_BITS;
      until += bit_cycles;
    }
    return bits & 1;
  }
};

struct Receiver {
  unsigned bits = 0, count = 0;
  double sample = 0;
  bool before = true;

  // True when a byte is complete.
  bool take(bool level, double cycle, double bit_cycles) {
    bool started = before && !level;
    before = level;
    if (!count) {
      if (!started) return false;
      count = FRAME_BITS;
      sample = cycle + bit_cycles / 2;
      bits = 0;
    }
    if (cycle < sample) return false;
    bits |= unsigned(level) << (FRAME_BITS - count);
    sample += bit_cycles;
    return --count == 0;
  }
  std::uint8_t byte() const { return std::uint8_t(bits >> 1); }
};

class Board {
 public:
  Board(int line, double bit_cycles) : line_(line), bit_cycles_(bit_cycles), model_(&context_), coverage_(context_) {
    model_.BOARD_RX = 1;
#ifdef BOARD_RESET
    model_.BOARD_RESET = 1;
#endif
    for (unsigned cycle = 0; cycle < RESET_CYCLES; ++cycle) clock();
#ifdef BOARD_RESET
    model_.BOARD_RESET = 0;
#endif
  }

  // Clock until `bytes` came out, or none did for `idle` cycles, or `most` cycles are over; how many bytes came. They go
  // to the descriptor together: of single bytes a socket holds only a few hundred.
  std::uint64_t run(std::uint64_t idle, std::uint64_t bytes, std::uint64_t most) {
    std::uint64_t last = cycle_, start = cycle_;
    std::string out;
    while (out.size() < bytes && cycle_ - last < idle && cycle_ - start < most) {
      if (incoming_.empty() && cycle_ >= next_poll_) poll_line();
      model_.BOARD_RX = sender_.level(double(cycle_), bit_cycles_, incoming_);
      clock();
      if (!receiver_.take(model_.BOARD_TX, double(cycle_), bit_cycles_)) continue;
      out.push_back(char(receiver_.byte()));
      last = cycle_;
    }
    return ::write(line_, out.data(), out.size()) == ssize_t(out.size()) ? out.size() : 0;
  }

  std::uint64_t cycle() const { return cycle_; }

 private:
  void clock() {
    model_.BOARD_CLOCK = 0;
    model_.eval();
    model_.BOARD_CLOCK = 1;
    model_.eval();
    ++cycle_;
  }

  // Bytes from the descriptor; not in every cycle, for a system call takes longer than one.
  void poll_line() {
    next_poll_ = cycle_ + std::uint64_t(bit_cycles_);
    pollfd file{line_, POLLIN, 0};
    if (::poll(&file, 1, 0) <= 0 || !(file.revents & POLLIN)) return;
    std::uint8_t buffer[POLL_BYTES];
    ssize_t size = ::read(line_, buffer, sizeof buffer);
    if (size > 0) incoming_.insert(incoming_.end(), buffer, buffer + size);
  }

  int line_;
  double bit_cycles_;
  VerilatedContext context_;
  Vmodel model_;
  Coverage coverage_;  // destroyed before the model, in which the counts are
  Sender sender_;
  Receiver receiver_;
  std::deque<std::uint8_t> incoming_;
  std::uint64_t cycle_ = 0, next_poll_ = 0;
};

}  // namespace

extern "C" {

Board *daedal_board_create(int line, double bit_cycles) {
  const daedal::DefaultFloatMode mode;
  return new Board(line, bit_cycles);
}

void daedal_board_destroy(Board *board) { delete board; }

std::uint64_t daedal_board_run(Board *board, std::uint64_t idle, std::uint64_t bytes, std::uint64_t most) {
  const daedal::DefaultFloatMode mode;
  return board->run(idle, bytes, most);
}

std::uint64_t daedal_board_cycle(Board *board) { return board->cycle(); }
}
