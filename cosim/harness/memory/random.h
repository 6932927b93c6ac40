#pragma once

#include <cstdint>

namespace daedal {

// xorshift64*: small and good enough to decide on stalls.
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(0x9E3779B97F4A7C15u ^ (std::uint64_t(seed) << 16)) {}

  std::uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return std::uint32_t((state_ * 0x2545F4914F6CDD1Du) >> 32);
  }

  // True with this probability, which is given in units of 2**-32.
  bool chance(std::uint64_t probability) { return probability && next() < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace daedal
