// When memory answers: ports with their queues, banks, rows, refresh, and the times in which writes hold reads back.
#pragma once
#include <limits>

#include "encodings.h"
#include "parameters.h"
#include "trace.h"

namespace daedal::timing {

// Who reads: the vector queues and the store stream first, then each load of each level, the loader,
// and loads once more: lines that they ask for without knowing that they are wanted.
constexpr unsigned LOADS = 3, LOADER = LOADS + 4 * MAX_LEVELS, EARLY_LOADS = LOADER + 1;
constexpr unsigned WRITER = EARLY_LOADS + 4 * MAX_LEVELS;  // lines that are written beside those that are read

struct Request {
  Time arrives;
  std::uint64_t address, number;  // number of the reader's first line
  std::uint32_t lines, reader;
  std::uint64_t order;            // at its port
};

class MemoryTime {
 public:
  MemoryTime(const Config& config, const Parameters& parameters);

  std::uint64_t row_of(std::uint64_t address) const { return address >> page_bits_; }
  unsigned port_of(std::uint64_t address) const { return (address >> page_bits_) & (ports_.size() - 2); }
  // When a port has room for another request for a row; UNKNOWN until more has been served.
  Time room(unsigned port);
  void ask(Time at, std::uint64_t address, std::uint32_t lines, std::uint32_t reader, std::uint64_t number);
  // Serves the next burst: the time of its first line on the return bus; false if there is none.
  bool serve(Request& served, Time& first);
  // Lines that are written from this time on; when they are acknowledged.
  enum Batch { NO_HOLD, WHOLE, SHORT };
  Time write(Time at, std::uint64_t lines, Batch batch, std::uint64_t rows = 0);
  Time now() const { return bus_; }
  // The first time from one to before the other at which nothing is read, as far as is known; NEVER if there is none.
  // Asked for in the order of time.
  Time idle_from(Time from, Time until);
  static constexpr Time NEVER = std::numeric_limits<Time>::max();
  std::uint64_t lines_asked = 0;
  std::uint64_t unwritten = 0;  // lines that wait to be written beside those that are read
  Time written = 0;             // when one was last
  std::uint64_t activations = 0;  // rows of banks that were opened
  std::uint64_t lines_of(unsigned port) const { return ports_[port].lines; }  // that it was asked for
  std::uint64_t pending() const { return pending_; }

 private:
  struct Group {
    Stream<Request> members;
    bool open = false;
  };
  struct Port {
    explicit Port(std::size_t groups, std::size_t requests) : left(requests), groups(groups) {}
    Stream<Request> arriving, loads, current, flying;
    std::uint64_t asked = 0, gone = 0;  // requests for rows
    Window<Time> left;                  // when each left the queue
    std::vector<Group> groups;          // by key
    Stream<std::uint32_t> order;        // keys of those that wait
    std::uint64_t words = 0;            // lines of flying
    std::uint64_t newest = 0;           // lines of the burst that flew last
    std::uint64_t lines = 0;            // asked for in all
    Time free = 0;                      // when the burst before was through
    Time freed = 0;                     // when lines left last, which makes room
    bool full = false;                  // no burst can fly before lines have left
  };
  struct Bank {
    std::uint64_t row = ~0ull;
    Time through = 0, activated = -100;
  };
  struct Interval {
    Time from, until;
  };

  bool has_room(const Port& port) const;
  void fly(unsigned number, const Request& request);
  void commit(unsigned number);
  bool take(Port& port, Time at, Request& taken);
  void sort(Port& port, Time at);
  void head(unsigned number);
  void refresh();
  void hold();

  const Config& config_;
  const Parameters p_;
  unsigned page_bits_ = 0, port_bits_ = 0;
  static constexpr std::size_t GAPS = 256;
  std::vector<Port> ports_;
  bool one_queue_ = false;  // loads have no places of their own; serial levels ask for too few lines to fill those of rows
  unsigned short_loads_ = 0;  // ports at which a load of few lines is the next one, a bit for each
  std::vector<Time> ready_;  // when the first burst that flies at each port can be on the bus
  std::vector<Bank> banks_;
  Stream<Interval> holds_;
  Stream<Interval> gaps_;  // in which nothing was read
  Time bus_ = 0, part_ = 0, next_refresh_, returned_ = 0;
  Window<Time> activations_{4096};
  std::uint64_t pending_ = 0;
  unsigned turn_ = 0;
};

}  // namespace daedal::timing
