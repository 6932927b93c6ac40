// The memory that an emulated core works on; whoever opens a core owns it.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace daedal {

// Device memory: zeros at first, given by the system page by page as it is touched.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::uint64_t size)
      : bytes_(static_cast<std::uint8_t*>(std::calloc(size ? size : 1, 1))), size_(size) {}
  ~DeviceMemory() { std::free(bytes_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  std::uint64_t size() const { return size_; }
  bool allocated() const { return bytes_ != nullptr; }
  bool contains(std::uint64_t address, std::uint64_t size) const { return address <= size_ && size <= size_ - address; }
  // Bytes from an address to the end of memory; 0 behind it.
  std::uint64_t here(std::uint64_t address) const { return address < size_ ? size_ - address : 0; }
  std::uint8_t* at(std::uint64_t address) { return bytes_ + address; }
  std::uint64_t read(std::uint64_t address, unsigned size) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_ + address, size);
    return value;
  }

 private:
  std::uint8_t* bytes_;
  std::uint64_t size_;
};

}  // namespace daedal
