#pragma once

#include <array>

namespace daedal {

// A queue of at most SIZE (a power of two) entries that stay where they are.
template <typename T, unsigned SIZE>
class Ring {
  static_assert((SIZE & (SIZE - 1)) == 0);

 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == SIZE; }
  unsigned size() const { return count_; }
  T &operator[](unsigned place) { return entries_[(first_ + place) % SIZE]; }
  T &front() { return entries_[first_]; }
  // The entry behind the last one, as it was left by an earlier one.
  T &push() { return entries_[(first_ + count_++) % SIZE]; }
  void pop() {
    first_ = (first_ + 1) % SIZE;
    --count_;
  }

 private:
  std::array<T, SIZE> entries_{};
  unsigned first_ = 0, count_ = 0;
};

}  // namespace daedal
