#include "memory_time.h"

#include <algorithm>

namespace daedal::timing {

namespace {

constexpr Time TO_PORT = 4;   // from a request to its burst's address on the port
constexpr Time RETURN = 2;    // from a port to the return bus
constexpr Time PART = 256;    // parts of a cycle
constexpr Time ROWS_A_CYCLE = 2;  // of the DRAM, that writes go to: what opening them takes more than their lines; fitted
// Lines that a port gives in turn, which in the RTL are one; so loads of few lines have the first turn.
constexpr std::uint32_t CHUNK = 4, SHORT_LOAD = 1;

}  // namespace

MemoryTime::MemoryTime(const Config& config, const Parameters& parameters)
    : config_(config), p_(parameters), banks_(static_cast<std::size_t>(parameters.banks)), next_refresh_(p_.refresh_interval) {
  while (1ll << page_bits_ < config.page_bytes) ++page_bits_;
  while (1ll << port_bits_ < config.ports) ++port_bits_;
  for (std::int64_t n = 0; n <= config.ports; ++n)  // the last one writes
    ports_.emplace_back(static_cast<std::size_t>(config.row_groups), static_cast<std::size_t>(2 * config.port_requests + 64));
  ready_.assign(ports_.size(), NEVER);
  for (std::int64_t n = 0; n < config.levels; ++n) one_queue_ |= config.row_groups == 1 && !config.serial[n];
}

Time MemoryTime::room(unsigned number) {
  Port& port = ports_[number];
  const auto places = static_cast<std::uint64_t>(config_.port_requests) + 2;
  if (port.asked < places) return 0;
  if (port.gone <= port.asked - places) return UNKNOWN;
  return port.left[port.asked - places];
}

void MemoryTime::ask(Time at, std::uint64_t address, std::uint32_t lines, std::uint32_t reader, std::uint64_t number) {
  const unsigned to = port_of(address);
  Port& port = ports_[to];
  const std::uint64_t order = reader < LOADS || one_queue_ ? port.asked++ : ~0ull;
  // Loads, which are asked for out of turn, may come before rows that are known already.
  Request request{at + TO_PORT, address, number, lines, reader, order};
  ++pending_;
  lines_asked += lines;
  port.lines += lines;
  if (!port.full && has_room(port)) {  // then nothing waits at it
    fly(to, request);
    return;
  }
  port.full = true;
  port.arriving.insert(request, [&](const Request& other) { return other.arrives > request.arrives; });
  if (has_room(port)) commit(to);
}

bool MemoryTime::has_room(const Port& port) const {
  return static_cast<std::int64_t>(port.words - port.newest) <= p_.port_words &&
         port.flying.size() < static_cast<std::size_t>(config_.port_outstanding);
}

// A burst leaves its port's queue.
void MemoryTime::fly(unsigned number, const Request& request) {
  Port& port = ports_[number];
  if (request.order != ~0ull) {
    port.left[request.order] = request.arrives;
    ++port.gone;
  }
  port.words += request.lines;
  port.newest = request.lines;
  const bool first = port.flying.insert(
      request, [&](const Request& other) { return other.arrives > request.arrives && other.arrives > bus_; });
  if (first) head(number);
}

// What has arrived by now goes into its group, or to the loads, which go first.
void MemoryTime::sort(Port& port, Time at) {
  while (!port.arriving.empty() && port.arriving.front().arrives <= at) {
    const Request request = port.arriving.front();
    port.arriving.pop();
    if (config_.row_groups == 1) {
      port.current.push(request);
    } else if (request.reader >= LOADS) {
      port.loads.push(request);
    } else {
      const auto key = static_cast<std::uint32_t>((row_of(request.address) >> port_bits_) & (config_.row_groups - 1));
      Group& group = port.groups[key];
      if (!group.open) {
        group.open = true;
        port.order.push(key);
      }
      group.members.push(request);
    }
  }
}

bool MemoryTime::take(Port& port, Time at, Request& taken) {
  sort(port, at);
  if (!port.loads.empty()) {
    taken = port.loads.front();
    port.loads.pop();
    return true;
  }
  if (port.current.empty() && !port.order.empty()) {
    Group& group = port.groups[port.order.front()];
    port.order.pop();
    std::swap(port.current, group.members);
    group.open = false;
  }
  if (port.current.empty()) return false;
  taken = port.current.front();
  port.current.pop();
  return true;
}

// Sends bursts on their way, as many as a port has room for: when that came, or when they arrive.
void MemoryTime::commit(unsigned number) {
  Port& port = ports_[number];
  Time at = port.full ? port.freed : 0;
  port.full = true;
  while (has_room(port)) {
    Request request;
    if (!take(port, at, request)) {
      port.full = false;
      if (port.arriving.empty()) return;
      at = std::max(at, port.arriving.front().arrives);
      if (!take(port, at, request)) return;
      port.full = true;
    }
    request.arrives = std::max(at, request.arrives);
    fly(number, request);
  }
}

// When the first burst that flies can have its first line on the bus.
void MemoryTime::head(unsigned number) {
  Port& port = ports_[number];
  Time& ready = ready_[number];
  short_loads_ &= ~(1u << number);
  if (port.flying.empty()) {
    ready = NEVER;
    return;
  }
  const Request& request = port.flying.front();
  if (request.reader >= LOADS && request.reader != WRITER && request.lines <= SHORT_LOAD) short_loads_ |= 1u << number;
  if (!p_.dram) {
    ready = request.arrives + (request.reader == WRITER ? 0 : p_.latency);
    return;
  }
  const std::uint64_t page = row_of(request.address);
  Bank& bank = banks_[page & (banks_.size() - 1)];
  const std::uint64_t row = page / banks_.size();
  const Time at = std::max(request.arrives, port.free);
  if (bank.row == row) {
    ready = std::max(at, bank.through);
    return;
  }
  Time opens = std::max(request.arrives, bank.activated + p_.row_cycle);
  if (bank.row != ~0ull) opens = std::max(opens, std::max(bank.through, bank.activated + p_.active) + p_.precharge);
  opens = std::max(opens, bank.through);
  // Ports are not looked at in the order of time: a row is opened where no other one is in the way, before or behind.
  const auto near = [&](Time at) {
    for (Time n = at - p_.activate_gap + 1; n < at + p_.activate_gap; ++n)
      if (activations_[static_cast<std::uint64_t>(n)] == n) return true;
    return false;
  };
  while (near(opens)) ++opens;
  activations_[static_cast<std::uint64_t>(opens)] = opens;
  ++activations;
  bank.activated = opens;
  bank.row = row;
  ready = opens + p_.activate;
}

// All banks are closed for a while.
void MemoryTime::refresh() {
  bus_ = std::max(bus_, next_refresh_) + p_.refresh_time;
  next_refresh_ += p_.refresh_interval;
  for (Bank& bank : banks_) {
    bank.row = ~0ull;
    bank.through = bus_;
  }
  for (unsigned n = 0; n < ports_.size(); ++n) {
    ports_[n].free = std::max(ports_[n].free, bus_);
    head(n);
  }
}

void MemoryTime::hold() {
  bus_ = std::max(bus_, holds_.front().until);
  holds_.pop();
  for (Port& port : ports_) {
    port.free = std::max(port.free, bus_);
    if (!port.flying.empty() && !p_.dram) port.flying.front().arrives = std::max(port.flying.front().arrives, bus_);
  }
  if (!p_.dram) return;
  for (Bank& bank : banks_) {
    bank.row = ~0ull;
    bank.through = bus_;
  }
  for (unsigned n = 0; n < ports_.size(); ++n) head(n);
}

bool MemoryTime::serve(Request& served, Time& first) {
  for (;;) {
    const unsigned count = static_cast<unsigned>(ports_.size());
    unsigned chosen = 0;
    Time start = NEVER;
    for (unsigned n = 0, at = turn_; n < count && start > bus_; ++n, at = at + 1 == count ? 0 : at + 1) {
      if (ready_[at] >= start) continue;
      chosen = at;
      start = std::max(ready_[at], bus_);
    }
    if (start == NEVER) return false;
    // One line does not wait for all ports' lines.
    for (unsigned loads = p_.dram ? 0 : short_loads_; loads; loads &= loads - 1) {
      const auto n = static_cast<unsigned>(__builtin_ctz(loads));
      if (ready_[n] <= start) {
        chosen = n;
        break;
      }
    }
    Port& best = ports_[chosen];
    if (p_.refresh_interval && start >= next_refresh_) {
      refresh();
      continue;
    }
    if (!holds_.empty() && start >= holds_.front().from) {
      hold();
      continue;
    }
    Request& head_ = best.flying.front();
    served = head_;
    // Memory gives a line of each port in turn.
    const bool whole = head_.lines <= CHUNK;
    if (!whole) {
      served.lines = CHUNK;
      head_.lines -= served.lines;
      head_.number += served.lines;
      head_.address += served.lines * static_cast<std::uint64_t>(config_.bus_bytes);
    }
    best.words -= served.lines;
    turn_ = chosen + 1 == count ? 0 : chosen + 1;
    part_ += static_cast<Time>(served.lines) * p_.line_time;
    bus_ = start + part_ / PART;
    part_ %= PART;
    if (head_.reader != WRITER) {
      if (head_.arrives - TO_PORT > returned_) {
        if (gaps_.size() == GAPS) gaps_.pop();
        gaps_.push({returned_, head_.arrives - TO_PORT});
      }
      first = start + RETURN + (p_.dram ? p_.latency : 0);
      returned_ = std::max(returned_, first + static_cast<Time>(served.lines));
    } else {
      unwritten -= served.lines;
      written = bus_;
    }
    best.free = best.freed = bus_;
    Bank& bank = banks_[row_of(served.address) & (banks_.size() - 1)];
    bank.through = std::max(bank.through, bus_);
    if (!whole) {
      ready_[chosen] = bus_;
      commit(chosen);
      return true;
    }
    best.flying.pop();
    --pending_;
    head(chosen);
    commit(chosen);
    return true;
  }
}

Time MemoryTime::idle_from(Time from, Time until) {
  while (!gaps_.empty() && gaps_.front().until <= from) gaps_.pop();
  Time idle = NEVER;
  if (!gaps_.empty())
    idle = gaps_.front().from;
  else if (!pending_)
    idle = returned_;
  return idle < until ? std::max(idle, from) : NEVER;
}

Time MemoryTime::write(Time at, std::uint64_t lines, Batch batch, std::uint64_t rows) {
  if (batch == NO_HOLD) {
    Port& port = ports_.back();
    const Request request{at, 0, 0, static_cast<std::uint32_t>(lines), WRITER, 0};
    ++pending_;
    unwritten += lines;
    if (port.flying.insert(request, [&](const Request& other) { return other.arrives > at; }))
      head(static_cast<unsigned>(ports_.size()) - 1);
    return at;  // no earlier than this; when it was done is known later
  }
  const Time takes = static_cast<Time>(lines) * p_.line_time / PART + static_cast<Time>(rows) / ROWS_A_CYCLE;
  const Time from = holds_.empty() ? at : std::max(at, holds_.back().until);
  const Time until = from + (batch == SHORT ? p_.short_turn : p_.turn) + takes + takes / 50;
  holds_.push({from, until});
  return from + takes + takes / 50 + p_.write_latency;
}

}  // namespace daedal::timing
