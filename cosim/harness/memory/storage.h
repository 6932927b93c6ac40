// The bytes of the device's memory, which host and model share.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace daedal {

class Storage {
 public:
  explicit Storage(std::uint64_t size) : size_(size) {
    // Pages exist only once they are touched, so a large memory costs nothing.
    void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::runtime_error("no room for the device's memory");
    bytes_ = static_cast<std::uint8_t *>(mapped);
  }
  ~Storage() { munmap(bytes_, size_); }
  Storage(const Storage &) = delete;
  Storage &operator=(const Storage &) = delete;

  std::uint64_t size() const { return size_; }
  std::uint8_t *bytes() { return bytes_; }
  bool holds(std::uint64_t address, std::uint64_t size) const { return size <= size_ && address <= size_ - size; }

  // Puts the bytes of `data` whose strobes are on into `size` bytes, at most 64, from `address` on.
  void write(std::uint64_t address, const std::uint8_t *data, std::uint64_t strobes, unsigned size) {
    if (strobes == ~std::uint64_t(0) >> (64 - size))
      std::memcpy(bytes_ + address, data, size);
    else
      for (unsigned byte = 0; byte < size; ++byte)
        if (strobes >> byte & 1) bytes_[address + byte] = data[byte];
  }

  // A 64-bit word, or 0 beyond the end.
  std::uint64_t word(std::uint64_t address) const {
    std::uint64_t value = 0;
    if (holds(address, sizeof value)) std::memcpy(&value, bytes_ + address, sizeof value);
    return value;
  }

 private:
  std::uint8_t *bytes_;
  std::uint64_t size_;
};

}  // namespace daedal
