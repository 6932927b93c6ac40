// What the units of the emulated core share: its view of memory, queues, counters, the fault and the trace.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "address_map.h"
#include "clock.h"
#include "device_memory.h"
#include "stored_bytes.h"

namespace daedal {

constexpr std::uint64_t low_bits(std::uint64_t value, unsigned bits) { return value & ((1ull << bits) - 1); }

// Bytes of the granules that a row of so many bytes takes in a queue.
constexpr std::uint64_t whole(std::uint64_t size) { return (size + ROW_GRANULE - 1) / ROW_GRANULE * ROW_GRANULE; }

// The width of addresses and stream registers.
struct Width {
  unsigned bits;
  std::uint64_t low(std::uint64_t value) const { return low_bits(value, bits); }
  std::int64_t as_signed(std::uint64_t value) const {
    return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
  }
};

constexpr std::uint64_t NOWHERE = ~0ull;

// Device memory at a program's addresses, which are mapped granule by granule.
class Space {
 public:
  Space(const Config& config, DeviceMemory& memory)
      : width{static_cast<unsigned>(config.address_bits)}, map(config), line_(config.bus_bytes), memory_(memory) {}

  // Calls `piece(memory address, offset, bytes)` for the parts of [address, address + size) that lie together, in
  // order, until one returns false; whether none did.
  template <class Piece>
  bool pieces(std::uint64_t address, std::uint64_t size, Piece piece) const {
    for (std::uint64_t offset = 0; offset < size;) {
      const std::uint64_t at = width.low(address + offset), together = map.together(at);
      const std::uint64_t bytes = together < size - offset ? together : size - offset;
      if (!piece(map(at), offset, bytes)) return false;
      offset += bytes;
    }
    return true;
  }
  bool contains(std::uint64_t address, std::uint64_t size) const { return missing(address, size) == NOWHERE; }
  // The first line of [address, address + size) that is not all in memory: the machine asks for whole lines, and what a
  // fault names is where the burst begins that memory refuses. NOWHERE if it is all there.
  std::uint64_t missing(std::uint64_t address, std::uint64_t size) const {
    std::uint64_t found = NOWHERE;
    pieces(address, size, [&](auto at, auto offset, auto bytes) {
      if (memory_.contains(at, bytes)) return true;
      found = line(address + offset + memory_.here(at));
      return false;
    });
    return found;
  }
  // Where the line begins that this address is in.
  std::uint64_t line(std::uint64_t address) const { return width.low(address) & -line_; }
  // All of it must be there.
  void copy_from(std::uint64_t address, std::uint64_t size, void* data) const {
    pieces(address, size, [&](auto at, auto offset, auto bytes) {
      std::memcpy(static_cast<std::uint8_t*>(data) + offset, memory_.at(at), bytes);
      return true;
    });
  }
  void copy_to(std::uint64_t address, std::uint64_t size, const void* data) const {
    pieces(address, size, [&](auto at, auto offset, auto bytes) {
      std::memmove(memory_.at(at), static_cast<const std::uint8_t*>(data) + offset, bytes);
      return true;
    });
  }
  // A whole word, element or row at an address where it lies together.
  std::uint64_t read(std::uint64_t address, unsigned size) const { return memory_.read(map(address), size); }

  const Width width;
  const AddressMap map;

 private:
  const std::uint64_t line_;  // bytes
  DeviceMemory& memory_;
};

// More entries than any queue of any configuration can hold: what is left in a queue when all consumers have
// gone as far as they can would have stopped the machine long before this is full.
constexpr std::size_t QUEUE_ENTRIES = 8192;

template <class T>
class Fifo {
 public:
  Fifo() : entries_(QUEUE_ENTRIES) {}
  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ == QUEUE_ENTRIES; }
  T& front() { return entries_[head_ % QUEUE_ENTRIES]; }
  std::size_t size() const { return tail_ - head_; }
  // The entry so many behind the front.
  const T& behind(std::size_t count) const { return entries_[(head_ + count) % QUEUE_ENTRIES]; }
  void push(T value) { entries_[tail_++ % QUEUE_ENTRIES] = std::move(value); }
  void pop() { ++head_; }
  void clear() { head_ = tail_ = 0; }

 private:
  std::vector<T> entries_;
  std::size_t head_ = 0, tail_ = 0;
};

constexpr unsigned TOKEN_BITS = 6;

struct Row {
  std::uint64_t address, size;  // bytes
  std::uint64_t at;             // memory address, or SCATTERED
};

constexpr std::uint64_t SCATTERED = ~0ull;  // a row that does not lie together

struct Token {
  std::uint64_t callback, context;
};

struct StoreAddress {
  std::uint64_t address, size;  // bytes
  bool stream;
};

struct StoreRow {
  std::vector<std::uint8_t> bytes;
  std::uint64_t order;  // rows that had been popped
};

struct Fault {
  std::uint64_t cause = Cause::NONE, level = 0, queue = Queue::NONE, value = 0, address = 0;
  std::uint64_t registers[MAX_REGISTERS] = {};
};

// What the access unit did, in order; `kind` is the queue (isa Queue) that it pushed to.
struct TraceEntry {
  std::uint64_t kind, value, size, stream;
};

constexpr std::size_t TRACE_ENTRIES = 1 << 22;  // what comes later is not kept

constexpr std::uint64_t queue_of(std::uint64_t fetch_queue) {
  return fetch_queue == FetchQueue::VECTOR0   ? Queue::VECTOR0
         : fetch_queue == FetchQueue::VECTOR1 ? Queue::VECTOR1
                                              : Queue::STREAM;
}

struct Core {
  // Works on a memory that somebody else owns, and that outlives it.
  Core(const Config& configuration, DeviceMemory& device_memory)
      : config(configuration), memory(device_memory), space(config, memory), stored(memory.size()), loaded(memory.size()) {}

  Config config;
  DeviceMemory& memory;
  Space space;
  StoredBytes stored;                // by the launch in work
  StoredBytes loaded;                // by its nest, of what it may store, if activations take turns
  bool streams = false;              // whether it has a store stream
  std::vector<Row> popped;           // from vector queues, if it has, or while rows wait to be stored
  std::uint64_t popped_before = 0;  // rows that are not in `popped` any more
  Clock clock{config};
  Fault fault;
  std::array<std::uint64_t, Counter::limit> counters{};
  StoreWindow window{};  // of the launch, with as many bits as a memory address has
  bool has_warned = false;
  std::uint64_t warned = 0;  // the first value that a check replaced in mode WARN
  Fifo<Token> tokens;
  Fifo<std::uint64_t> scalars;
  std::array<Fifo<Row>, FetchQueue::limit> rows;  // indexed by FetchQueue
  Fifo<StoreAddress> store_addresses;
  Fifo<StoreRow> store_data;
  std::int64_t budget = 0;  // bundles, steps, instructions and program words to go in this slice
  bool traced = false;
  std::vector<TraceEntry> trace;

  bool faulted() const { return fault.cause != Cause::NONE; }

  // Raises a fault unless there is one. Always false, so that a caller can return it.
  bool raise(std::uint64_t cause, std::uint64_t queue, std::uint64_t value = 0, std::uint64_t address = 0) {
    if (!faulted()) {
      fault.cause = cause;
      fault.queue = queue;
      fault.value = value;
      fault.address = address;
    }
    return false;
  }

  // Raises a fault if the launch has stored some of these bytes. Always false then: what is read may be older on the RTL.
  bool unstored(std::uint64_t address, std::uint64_t size, std::uint64_t queue) {
    return space.pieces(address, size, [&](auto at, auto offset, auto bytes) {
      const std::uint64_t found = stored.find(at, bytes);
      return found == ~0ull || raise(EmulatedCause::READ_AFTER_STORE, queue, size, space.width.low(address + offset + found - at));
    });
  }

  // Raises a fault if some of these bytes, which are to be stored at an address, in memory at `at`, may not have been read
  // yet: they are of a row in a queue, or of one that was popped behind the last row of the execute unit that is stored, or
  // an activation that takes turns with others loads them.
  bool unread(std::uint64_t address, std::uint64_t at, std::uint64_t size) {
    if (rows[0].empty() && rows[1].empty() && rows[2].empty() && popped.empty() && loaded.empty()) return true;
    for (std::uint64_t queue = 0; queue < rows.size(); ++queue)
      for (std::size_t k = 0; k < rows[queue].size(); ++k)
        if (!apart(rows[queue].behind(k), at, size, queue_of(queue))) return false;
    for (const Row& row : popped)
      if (!apart(row, at, size, Queue::NONE)) return false;
    const std::uint64_t found = loaded.find(at, size);
    return found == ~0ull || raise(EmulatedCause::READ_AFTER_STORE, Queue::NONE, size, space.width.low(address + found - at));
  }

  // Whether the launch may store a byte at this memory address.
  bool may_store(std::uint64_t at) const {
    return at / STORE_GRANULE >= window.first && at / STORE_GRANULE <= window.last;
  }

  // A row was popped.
  void pop(const Row& row) {
    if (streams || !store_data.empty())
      popped.push_back(row);
    else
      ++popped_before;
  }

  // Rows popped so far.
  std::uint64_t pops() const { return popped_before + popped.size(); }

  // The execute unit stored a row when so many had been popped.
  void forget(std::uint64_t order) {
    if (!popped.empty()) popped.erase(popped.begin(), popped.begin() + (order - popped_before));
    popped_before = order;
  }

  // Raises a fault if a row has some of the bytes from memory address `at` on.
  bool apart(const Row& row, std::uint64_t at, std::uint64_t size, std::uint64_t queue) {
    return space.pieces(row.address, row.size, [&](auto here, auto offset, auto bytes) {
      if (here >= at + size || at >= here + bytes) return true;
      const std::uint64_t inside = at > here ? at - here : 0;
      return raise(EmulatedCause::READ_AFTER_STORE, queue, row.size, space.width.low(row.address + offset + inside));
    });
  }

  template <class T>
  bool push(Fifo<T>& queue, T value, std::uint64_t name) {
    if (queue.full()) return raise(Cause::HANG, name);
    queue.push(std::move(value));
    return true;
  }

  void record(std::uint64_t kind, std::uint64_t value, std::uint64_t size = 0, std::uint64_t stream = 0) {
    if (traced && trace.size() < TRACE_ENTRIES) trace.push_back({kind, value, size, stream});
  }

  // The bytes of a row, collected in `scratch` if they do not lie together.
  const void* bytes(const Row& row, std::vector<std::uint8_t>& scratch) {
    if (row.at != SCATTERED) return memory.at(row.at);
    if (scratch.size() < row.size) scratch.resize(row.size);
    space.copy_from(row.address, row.size, scratch.data());
    return scratch.data();
  }

  // Lines that [address, address + size) touches.
  std::uint64_t lines(std::uint64_t address, std::uint64_t size) const {
    const std::uint64_t line = config.bus_bytes;
    return (address + size - 1) / line - address / line + 1;
  }

  void clear() {
    fault = Fault{};
    counters.fill(0);
    has_warned = false;
    warned = 0;
    tokens.clear();
    scalars.clear();
    for (auto& queue : rows) queue.clear();
    store_addresses.clear();
    store_data.clear();
    trace.clear();
    stored.clear();
    loaded.clear();
    streams = false;
    popped.clear();
    popped_before = 0;
  }
};

}  // namespace daedal
