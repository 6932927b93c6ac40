// The memory that an emulated core works on; whoever opens a core owns it.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstring>

namespace daedal {

// Device memory: zeros at first, given by the system page by page as it is touched. Memory that is `sparse` may be
// larger than the system's: what is only read there takes none.
class DeviceMemory {
 public:
  DeviceMemory(std::uint64_t size, bool sparse)
      : mapped_(mmap(nullptr, size ? size : 1, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0), -1, 0)),
        bytes_(static_cast<std::uint8_t*>(mapped_)),
        size_(size) {}
  ~DeviceMemory() {
    if (allocated()) munmap(mapped_, size_ ? size_ : 1);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  std::uint64_t size() const { return size_; }
  bool allocated() const { return mapped_ != MAP_FAILED; }
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
  void* mapped_;
  std::uint8_t* bytes_;
  std::uint64_t size_;
};

}  // namespace daedal
