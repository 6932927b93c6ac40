// Issues bursts to the DRAM controller as fast as a policy allows and counts the cycles.
//
// Reads are taken from the trace in its order into a window of so many lines, whose places become free in that order.
// Inside of it each bank works for itself: first come, first served, or rows that are open first. Writes are gathered,
// and go out when there are enough of them, or at the end; reads wait meanwhile, so that the bus seldom turns around.
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "Vmodel.h"
#include "coverage.h"
#include "dram_ports.h"
#include "verilated.h"

namespace {

struct Request {
  std::uint32_t word;  // address of the first word
  std::uint16_t beats;
  std::uint16_t write;
};

struct Policy {
  std::uint64_t window;       // lines of reads issued and not yet back, in the order of the trace
  std::uint64_t write_batch;  // lines of writes that go out together; reads wait
  std::uint32_t open_first;   // whether a bank prefers requests to the row it used last
};

struct Pins {
  CData *cmd_valid, *cmd_ready, *cmd_we;
  IData *cmd_addr;
  CData *wdata_ready, *rdata_valid;
};

constexpr unsigned RESET_CYCLES = 8;
constexpr std::uint64_t PATIENCE = 100000;  // cycles without any progress after which something is broken
constexpr std::size_t LOOK = 64;            // requests of a bank among which an open row is looked for

struct Bank {
  std::deque<std::uint32_t> reads, writes;  // numbers of requests that wait
  std::deque<std::uint32_t> issued;         // reads of which lines are still to come, a number for each line
  std::uint32_t current = 0, left = 0;      // the request whose lines are being issued
  std::uint32_t row = ~0u;                  // the row used last
};

class Traffic {
 public:
  Traffic(const Request *requests, std::uint64_t count, const Policy &policy)
      : requests_(requests), count_(count), policy_(policy), model_(new Vmodel(&context_, "")), coverage_(context_),
        back_(count) {
#define DRAM_BIND(n)                                                                                              \
  pins_.push_back({&model_->p##n##_cmd_valid, &model_->p##n##_cmd_ready, &model_->p##n##_cmd_we,                  \
                   &model_->p##n##_cmd_addr, &model_->p##n##_wdata_ready, &model_->p##n##_rdata_valid});
    DRAM_PORTS(DRAM_BIND)
#undef DRAM_BIND
    banks_.resize(pins_.size());
    model_->sys_rst = 1;
    for (unsigned cycle = 0; cycle < RESET_CYCLES; ++cycle) edge();
    model_->sys_rst = 0;
    for (std::uint64_t number = 0; number < count; ++number)
      (requests[number].write ? writes_left_ : reads_left_) += requests[number].beats;
    unissued_reads_ = reads_left_;
  }
  ~Traffic() { model_->final(); }

  // Cycles until all is done; 0 if it does not end.
  std::uint64_t run() {
    std::uint64_t cycle = 0, last = 0;
    while (reads_left_ || writes_left_) {
      const std::uint64_t before = reads_left_ + writes_left_;
      dispatch();
      turn();
      drive();
      model_->sys_clk = 0;
      model_->eval();
      sample();
      edge_only();
      ++cycle;
      if (reads_left_ + writes_left_ != before) last = cycle;
      if (cycle - last > PATIENCE) return 0;
    }
    return cycle;
  }

 private:
  void edge() {
    model_->sys_clk = 0;
    model_->eval();
    edge_only();
  }
  void edge_only() {
    model_->sys_clk = 1;
    model_->eval();
  }

  // Takes requests from the trace as far as the window goes.
  void dispatch() {
    for (; next_ < count_; ++next_) {
      const Request &request = requests_[next_];
      Bank &bank = banks_[(request.word >> COLUMN_BITS) % banks_.size()];
      if (request.write) {
        bank.writes.push_back(std::uint32_t(next_));
        waiting_writes_ += request.beats;
        continue;
      }
      if (in_window_ && in_window_ + request.beats > policy_.window) return;
      in_window_ += request.beats;
      bank.reads.push_back(std::uint32_t(next_));
    }
  }

  // Whether it is the turn of writes.
  void turn() {
    if (writing_)
      writing_ = waiting_writes_ != 0;
    else
      writing_ = waiting_writes_ >= policy_.write_batch || (!unissued_reads_ && waiting_writes_);
  }

  void drive() {
    for (std::size_t n = 0; n < banks_.size(); ++n) {
      Bank &bank = banks_[n];
      if (!bank.left) choose(bank);
      *pins_[n].cmd_valid = bank.left != 0;
      if (!bank.left) continue;
      const Request &request = requests_[bank.current];
      *pins_[n].cmd_we = CData(request.write);
      *pins_[n].cmd_addr = request.word + (request.beats - bank.left);
    }
  }

  void choose(Bank &bank) {
    std::deque<std::uint32_t> &queue = writing_ ? bank.writes : bank.reads;
    if (queue.empty()) return;
    std::size_t at = 0;
    if (policy_.open_first)
      for (std::size_t n = 0; n < queue.size() && n < LOOK; ++n)
        if (row_of(queue[n]) == bank.row) {
          at = n;
          break;
        }
    bank.current = queue[at];
    bank.left = requests_[bank.current].beats;
    bank.row = row_of(bank.current);
    queue.erase(queue.begin() + std::ptrdiff_t(at));
  }

  std::uint32_t row_of(std::uint32_t number) const {
    return requests_[number].word >> (COLUMN_BITS + BANK_BITS);
  }

  void sample() {
    for (std::size_t n = 0; n < banks_.size(); ++n) {
      Bank &bank = banks_[n];
      if (*pins_[n].rdata_valid) {
        --reads_left_;
        ++back_[bank.issued.front()];
        bank.issued.pop_front();
      }
      if (*pins_[n].wdata_ready) --writes_left_;
      if (*pins_[n].cmd_valid && *pins_[n].cmd_ready) take(bank);
    }
    retire();
  }

  void take(Bank &bank) {
    --bank.left;
    if (requests_[bank.current].write) {
      --waiting_writes_;
      return;
    }
    --unissued_reads_;
    bank.issued.push_back(bank.current);
  }

  // Frees the window's places from its front.
  void retire() {
    for (; first_ < next_; ++first_, freed_ = 0) {
      const Request &request = requests_[first_];
      if (request.write) continue;
      in_window_ -= back_[first_] - freed_;
      freed_ = back_[first_];
      if (back_[first_] != request.beats) return;
    }
  }

  const Request *requests_;
  std::uint64_t count_;
  Policy policy_;
  VerilatedContext context_;
  std::unique_ptr<Vmodel> model_;
  Coverage coverage_;
  std::vector<Pins> pins_;
  std::vector<Bank> banks_;
  std::vector<std::uint16_t> back_;  // lines of each request that have come back
  std::uint64_t next_ = 0;           // the first request that is not in the window yet
  std::uint64_t first_ = 0;          // the first one that is not through
  std::uint16_t freed_ = 0;          // lines of that one whose places are free
  std::uint64_t in_window_ = 0;
  std::uint64_t waiting_writes_ = 0;
  std::uint64_t reads_left_ = 0, writes_left_ = 0, unissued_reads_ = 0;
  bool writing_ = false;
};

}  // namespace

extern "C" {

std::uint64_t daedal_traffic_run(const Request *requests, std::uint64_t count, std::uint64_t window,
                                 std::uint64_t write_batch, std::uint32_t open_first) {
  return Traffic(requests, count, Policy{window, write_batch, open_first}).run();
}
}
