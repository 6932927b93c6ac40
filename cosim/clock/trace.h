// What the emulator tells the clock: what was done, in order, without any time.
#pragma once
#include <cstdint>
#include <vector>

namespace daedal::timing {

using Time = std::int64_t;

constexpr Time UNKNOWN = -1;

// Entries that are put at the back and taken from the front; their places are used again and again.
template <class T>
class Stream {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  T& front() { return entries_[head_ & mask_]; }
  T& back() { return entries_[(tail_ - 1) & mask_]; }
  T& ahead(std::size_t n) { return entries_[(head_ + n) & mask_]; }
  // A place at the back, which has what was there last.
  T& put() {
    if (size() == entries_.size()) grow();
    return entries_[tail_++ & mask_];
  }
  void push(const T& value) { put() = value; }
  // Puts an entry behind the last one that need not be after it; whether it is the first one now.
  template <class Later>
  bool insert(const T& value, Later later) {
    put();
    std::size_t place = tail_ - 1;
    for (; place != head_ && later(entries_[(place - 1) & mask_]); --place)
      entries_[place & mask_] = entries_[(place - 1) & mask_];
    entries_[place & mask_] = value;
    return place == head_;
  }
  void pop() { ++head_; }
  void clear() { head_ = tail_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(entries_.empty() ? 8 : 2 * entries_.size());
    for (std::size_t n = 0; n < size(); ++n) larger[n] = ahead(n);
    tail_ = size();
    head_ = 0;
    entries_.swap(larger);
    mask_ = entries_.size() - 1;
  }

  std::vector<T> entries_;  // as many as a power of two
  std::size_t head_ = 0, tail_ = 0, mask_ = 0;
};

// Values by a number that counts up for ever; those of the last so many numbers are kept.
template <class T>
class Window {
 public:
  explicit Window(std::size_t least) {
    std::size_t size = 64;
    while (size < least) size *= 2;
    values_.resize(size);
    mask_ = size - 1;
  }
  T& operator[](std::uint64_t number) { return values_[number & mask_]; }

 private:
  std::vector<T> values_;
  std::uint64_t mask_;
};

enum class Kind : std::uint8_t { WORD, LENGTH, NEST, LINE, RANDOM, BUNDLE, DELIVER, STEP, CHUNK };

// What the access side did. STEP has its first chunk with it, if it fetches a row. BUNDLE is one level's part of one.
struct Entry {
  Kind kind;
  std::uint8_t level, slot;  // of a load; level: of a word the units that hold it, a bit for each; of a bundle to where it
                             // goes; slot: the queue of a row; of a bundle from where it comes
  std::uint8_t flags;        // StepFlag; BundleFlag; of a line, first of an activation; of a word, the program's first
  std::uint32_t size;        // lines; of a load's line from where it comes; a bundle's number
  std::uint64_t address;     // in memory
};

enum BundleFlag : std::uint8_t {
  ACTIVATES = 1,     // an activation of this level begins
  FROM_PARENT = 2,   // with a bundle of another level
  HELD_TOO = 4,      // and with an activation of that one
  TO_EVENTS_UNIT = 8,
  DEALT_OUT = 16,    // the event unit has bundles dealt
  PASSES = 32        // no level has to do with it
};

enum StepFlag : std::uint8_t { TOKEN = 1, SCALAR = 2, STORE = 4, FETCH = 8 };

// A line that a load reads: where it is, and its number as the program has it.
struct LoadLine {
  std::uint64_t address, line;
  std::uint32_t nest;
};

// What a load reads ahead: from which line, ~0 if from nowhere, and up to which line.
struct Array {
  std::uint64_t limit = 0, first = ~0ull;
};

// How a level of the present nest is set.
struct LevelShape {
  bool enabled = false, serial = false, interleaves = false;
  std::uint8_t loads = 0, operations = 0, operands = 0;
  std::uint8_t held = 0;  // operands that are read once an activation of the parent
  Array arrays[4];  // of each load
};

enum class Work : std::uint8_t { NONE, LANES, STORE, QUOTIENT, REDUCE, SCALAR, ITERATIVE };

constexpr std::uint8_t NO_REGISTER = 0xff;

// An instruction that the execute unit has carried out.
struct Executed {
  Work work;
  std::uint8_t context;
  bool starts, pops_scalar;                 // starts: the first one of a callback
  bool scalar_source, scalar_factor;        // a, and b, is a scalar register
  std::uint8_t a, b, c, destination;        // registers
  bool clears;                              // a is empty from then on
  std::uint8_t passes;                      // over the lanes
  std::uint8_t iterations;                  // cycles of the iterative unit
  std::uint16_t beats;
  std::uint16_t data;      // beats that it stores
  std::uint16_t lines[2];  // popped of each vector queue
  std::uint8_t around;     // beats of partial results, if a beat waits for the one of the same ones; else 0
  bool adds_bias;          // lanes take the row twice, first to add the bias, and pop it the second time
  bool waits_for_head;     // the first line of the row in front of queue 0 must be there
};

// A row that was stored.
struct Stored {
  std::uint64_t address;  // in memory
  std::uint32_t size;     // bytes
  bool stream;
};

}  // namespace daedal::timing
