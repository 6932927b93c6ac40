#include "memory_time.h"

#include <algorithm>

namespace daedal::timing {

namespace {

constexpr Time TO_PORT = 4;   // from a request to its burst's address on the port
constexpr Time RETURN = 2;    // from a port to the return bus
constexpr Time PART = 256;    // parts of a cycle

}  // namespace

MemoryTime::MemoryTime(const Config& config, const Parameters& parameters)
    : config_(config), p_(parameters), banks_(static_cast<std::size_t>(parameters.banks)), next_refresh_(p_.refresh_interval) {
  while (1ll << page_bits_ < config.page_bytes) ++page_bits_;
  while (1ll << port_bits_ < config.ports) ++port_bits_;
  for (std::int64_t n = 0; n < config.ports; ++n)
    ports_.emplace_back(static_cast<std::size_t>(config.row_groups), static_cast<std::size_t>(2 * config.port_requests + 64));
  ready_.assign(ports_.size(), NEVER);
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
  const std::uint64_t order = reader < LOADS ? port.asked++ : ~0ull;
  // Loads, which are asked for out of turn, may come before rows that are known already.
  const Request request{at + TO_PORT, address, number, lines, reader, order};
  port.arriving.insert(request, [&](const Request& other) { return other.arrives > request.arrives; });
  ++pending_;
  lines_asked += lines;
  port.lines += lines;
  commit(to);
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
  Time at = port.freed;
  while (port.words < static_cast<std::uint64_t>(p_.port_words) &&
         port.flying.size() < static_cast<std::size_t>(config_.port_outstanding)) {
    Request request;
    if (!take(port, at, request)) {
      if (port.arriving.empty()) return;
      at = std::max(at, port.arriving.front().arrives);
      if (!take(port, at, request)) return;
    }
    request.arrives = std::max(at, request.arrives);
    if (request.order != ~0ull) {
      port.left[request.order] = request.arrives;
      ++port.gone;
    }
    port.words += request.lines;
    const bool first = port.flying.insert(
        request, [&](const Request& other) { return other.arrives > request.arrives && other.arrives > bus_; });
    if (first) head(number);
  }
}

// When the first burst that flies can have its first line on the bus.
void MemoryTime::head(unsigned number) {
  Port& port = ports_[number];
  Time& ready = ready_[number];
  if (port.flying.empty()) {
    ready = NEVER;
    return;
  }
  const Request& request = port.flying.front();
  if (!p_.dram) {
    ready = request.arrives + p_.latency;
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
    Port& best = ports_[chosen];
    if (p_.refresh_interval && start >= next_refresh_) {
      refresh();
      continue;
    }
    if (!holds_.empty() && start >= holds_.front().from) {
      hold();
      continue;
    }
    while (!writes_.empty() && writes_.front().first <= start) {  // lines that are written take their part of the bus
      part_ += static_cast<Time>(writes_.front().second) * p_.line_time;
      bus_ = std::max(bus_, writes_.front().first) + part_ / PART;
      part_ %= PART;
      start = std::max(start, bus_);
      writes_.pop();
    }
    Request& head_ = best.flying.front();
    served = head_;
    const bool is_row = head_.reader < LOADS;
    // Memory gives a line of each port in turn: while a row comes, so do as many lines of a load.
    const std::int64_t chunk = start <= row_end_ + p_.chunk * count ? std::max(p_.chunk, row_lines_) : p_.chunk;
    const bool whole = is_row || head_.lines <= chunk;
    if (!whole) {
      served.lines = static_cast<std::uint32_t>(chunk);
      head_.lines -= served.lines;
      head_.number += served.lines;
      head_.address += served.lines * static_cast<std::uint64_t>(config_.bus_bytes);
    }
    best.words -= served.lines;
    turn_ = chosen + 1 == count ? 0 : chosen + 1;
    part_ += static_cast<Time>(served.lines) * p_.line_time;
    bus_ = start + part_ / PART;
    part_ %= PART;
    if (head_.arrives - TO_PORT > returned_) {
      if (gaps_.size() == GAPS) gaps_.pop();
      gaps_.push({returned_, head_.arrives - TO_PORT});
    }
    first = start + RETURN + (p_.dram ? p_.latency : 0);
    returned_ = std::max(returned_, first + static_cast<Time>(served.lines));
    best.free = best.freed = bus_;
    if (is_row) {
      row_end_ = bus_;
      row_lines_ = served.lines;
    }
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

Time MemoryTime::write(Time at, std::uint64_t lines, Batch batch) {
  const Time takes = static_cast<Time>(lines) * p_.line_time / PART;
  if (batch == NO_HOLD) {
    writes_.push({at, lines});
    return std::max(at, std::min(bus_, at + 2 * static_cast<Time>(lines) * config_.ports)) + takes + p_.write_latency;
  }
  const Time from = holds_.empty() ? at : std::max(at, holds_.back().until);
  const Time until = from + (batch == SHORT ? p_.short_turn : p_.turn) + takes + takes / 50;
  holds_.push({from, until});
  return from + takes + takes / 50 + p_.write_latency;
}

}  // namespace daedal::timing
