// The store unit: joins store addresses with rows from the execute unit or from the store stream.
#pragma once
#include <algorithm>

#include "core.h"

namespace daedal {

class StoreUnit {
 public:
  explicit StoreUnit(Core& core) : core_(core) {}

  void clear() { last_line_ = ~0ull; }

  // A row of `size` bytes from the execute unit.
  bool offer(const void* data, std::uint64_t size) {
    auto& addresses = core_.store_addresses;
    if (core_.store_data.empty() && !addresses.empty() && !addresses.front().stream) {
      const StoreAddress to = addresses.front();
      addresses.pop();
      core_.forget(core_.pops());
      return write(to, data, size, to.size, Queue::STORE_DATA) && run();
    }
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    return core_.push(core_.store_data, {{bytes, bytes + size}, core_.pops()}, Queue::STORE_DATA);
  }

  // Writes whatever has both address and data; false after a fault.
  bool run() {
    auto& addresses = core_.store_addresses;
    auto& streamed = core_.rows[FetchQueue::STORE];
    while (!addresses.empty()) {
      const StoreAddress to = addresses.front();
      if (to.stream ? streamed.empty() : core_.store_data.empty()) break;
      addresses.pop();
      bool written;
      if (to.stream) {
        const Row row = streamed.front();
        streamed.pop();
        written = write(to, core_.bytes(row, scratch_), row.size, whole(to.size), Queue::STREAM);
      } else {
        const auto& row = core_.store_data.front();
        core_.forget(row.order);
        written = write(to, row.bytes.data(), row.bytes.size(), to.size, Queue::STORE_DATA);
        core_.store_data.pop();
      }
      if (!written) return false;
    }
    return true;
  }

 private:
  // Stores a row that has `given` bytes, where `wanted` must be there.
  bool write(const StoreAddress& to, const void* data, std::uint64_t given, std::uint64_t wanted, std::uint64_t queue) {
    const std::uint64_t size = to.size;
    if (given != wanted) {  // seen in a row's last beat, or in what would be that
      const std::uint64_t bus = core_.config.bus_bytes, beat = (std::min(given, size) - 1) / bus;
      return core_.raise(Cause::FRAMING, queue, size, core_.space.width.low(to.address + beat * bus));
    }
    const std::uint64_t inside = before_outside(to.address, size);
    const std::uint64_t missing = core_.space.missing(to.address, inside);
    if (missing != NOWHERE) return core_.raise(Cause::MEMORY_ERROR, Queue::NONE, 0, missing);
    if (inside) {
      if (!copy(to, inside, static_cast<const std::uint8_t*>(data))) return false;
      const std::uint64_t first = to.address / core_.config.bus_bytes;
      core_.counters[Counter::LINES_WRITTEN] += core_.lines(to.address, inside) - (first == last_line_);
      core_.counters[Counter::BYTES_WRITTEN] += inside;
      core_.clock.stored(core_.space.map(to.address), inside, to.stream);
      last_line_ = (to.address + inside - 1) / core_.config.bus_bytes;
    }
    if (inside == size) return true;
    const std::uint64_t outside = core_.space.width.low(to.address + inside);
    return core_.raise(Cause::STORE_WINDOW, Queue::NONE, 0, outside - outside % core_.config.bus_bytes);
  }

  // Puts bytes of a row into memory; false, with a fault, if they may not have been read yet.
  bool copy(const StoreAddress& to, std::uint64_t size, const std::uint8_t* data) {
    return core_.space.pieces(to.address, size, [&](auto at, auto offset, auto bytes) {
      if (!core_.unread(to.address + offset, at, bytes)) return false;
      std::memmove(core_.memory.at(at), data + offset, bytes);
      core_.stored.put(at, bytes);
      return true;
    });
  }

  // Bytes of a row up to its first line outside of the launch's window.
  std::uint64_t before_outside(std::uint64_t address, std::uint64_t size) const {
    const StoreWindow& window = core_.window;
    std::uint64_t inside = size;
    core_.space.pieces(address, size, [&](auto at, auto offset, auto bytes) {
      const std::uint64_t first = at / STORE_GRANULE, last = (at + bytes - 1) / STORE_GRANULE;
      if (first >= window.first && last <= window.last) return true;
      const bool begins_inside = first >= window.first && first <= window.last;
      inside = begins_inside ? offset + (window.last + 1) * STORE_GRANULE - at : offset;
      return false;
    });
    return inside;
  }

  Core& core_;
  std::uint64_t last_line_ = ~0ull;
  std::vector<std::uint8_t> scratch_;
};

}  // namespace daedal
