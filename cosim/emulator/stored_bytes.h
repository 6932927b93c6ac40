// Which bytes of memory a launch has stored: bits by page, of pages that were stored to.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "encodings.h"

namespace daedal {

class StoredBytes {
 public:
  explicit StoredBytes(std::uint64_t memory_bytes)
      : pages_(static_cast<Page*>(std::calloc(memory_bytes / PAGE_BYTES + 1, sizeof(Page))), std::free) {
    if (!pages_) throw std::bad_alloc();
  }

  // A launch begins: it has stored nothing.
  void clear() {
    ++launch_;
    used_ = 0;
    first_ = ~0ull;
    end_ = 0;
  }

  // Bytes from memory address `at` on, in whole steps of what can be stored.
  void put(std::uint64_t at, std::uint64_t size) {
    first_ = std::min(first_, at);
    end_ = std::max(end_, at + size);
    parts(at, size, [&](Page& page, std::uint64_t word, std::uint64_t bits) {
      if (page.launch != launch_) page = {launch_, fresh()};
      bits_[page.bits][word] |= bits;
      return true;
    });
  }

  bool empty() const { return end_ == 0; }

  // Whether it may have stored some of these: quick, and true too often.
  bool has(std::uint64_t at, std::uint64_t size) const { return at < end_ && at + size > first_; }

  // Where the first byte is of so many from `at` on that was stored; ~0 if none was.
  std::uint64_t find(std::uint64_t at, std::uint64_t size) const {
    if (!has(at, size)) return ~0ull;
    std::uint64_t found = ~0ull;
    parts(at, size, [&](const Page& page, std::uint64_t word, std::uint64_t bits) {
      const std::uint64_t stored = page.launch == launch_ ? bits_[page.bits][word] & bits : 0;
      if (stored)
        found = (&page - pages_.get()) * PAGE_BYTES + (word * WORD + __builtin_ctzll(stored)) * STORE_STEP;
      return !stored;
    });
    return found == ~0ull ? found : std::max(found, at);
  }

 private:
  static constexpr std::uint64_t PAGE_BYTES = 4096, WORD = 64, PAGE_WORDS = PAGE_BYTES / STORE_STEP / WORD;
  struct Page {
    std::uint32_t launch, bits;  // the last launch that stored here; where its bits are
  };

  // Calls `part(page, word, bits)` for each word of bits that stands for some of these bytes, until it returns false.
  template <class Part>
  void parts(std::uint64_t at, std::uint64_t size, Part part) const {
    const std::uint64_t end = (at + size + STORE_STEP - 1) / STORE_STEP;
    for (std::uint64_t step = at / STORE_STEP; step < end;) {
      const std::uint64_t shift = step % WORD, count = std::min(WORD - shift, end - step);
      const std::uint64_t bits = (count == WORD ? ~0ull : (1ull << count) - 1) << shift;
      if (!part(pages_[step / (WORD * PAGE_WORDS)], step / WORD % PAGE_WORDS, bits)) return;
      step += count;
    }
  }

  std::uint32_t fresh() {
    if (used_ == bits_.size()) bits_.emplace_back();
    bits_[used_].fill(0);
    return used_++;
  }

  const std::unique_ptr<Page[], decltype(&std::free)> pages_;
  std::vector<std::array<std::uint64_t, PAGE_WORDS>> bits_;
  std::uint32_t launch_ = 1, used_ = 0;  // a page that no launch stored to says 0
  std::uint64_t first_ = ~0ull, end_ = 0;
};

}  // namespace daedal
