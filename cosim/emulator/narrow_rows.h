// Rows of elements of less than 32 bits: widened where they are popped, rounded where they are stored.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "encodings.h"

namespace daedal {

// What an instruction takes of the row in front of queue 0: a number of its head, or all that is left behind as many.
struct Popped {
  bool is_head;
  std::uint64_t numbers;
  std::uint64_t bits;  // of an element in memory
};

inline unsigned element_bits(std::uint64_t kind) {
  switch (kind) {
    case LengthField::ELEMENTS: return 32;
    case LengthField::UNSIGNED8:
    case LengthField::FLOAT8_E4:
    case LengthField::FLOAT8_E5: return 8;
    case LengthField::UNSIGNED4: return 4;
    case LengthField::UNSIGNED2: return 2;
    default: return 16;
  }
}

// Rows of them are popped and not stored.
inline bool is_unstored(std::uint64_t kind) { return element_bits(kind) < 16; }

inline bool is_unsigned(std::uint64_t kind) { return is_unstored(kind) && kind < LengthField::FLOAT8_E4; }

// Whether rows can have so many elements: those of fewer than 16 bits fill whole granules.
inline bool is_whole(std::uint64_t elements, std::uint64_t kind) {
  return !is_unstored(kind) || elements * element_bits(kind) % (8 * ROW_GRANULE) == 0;
}

inline std::uint64_t row_bytes(std::uint64_t elements, std::uint64_t kind) { return elements * element_bits(kind) / 8; }

// The bits of the binary32 that an element of this type is.
inline std::uint32_t widened(std::uint32_t bits, std::uint64_t kind) {
  const bool is_float8 = kind >= LengthField::FLOAT8_E4;
  if (kind != LengthField::BINARY16 && !is_float8) return bits << 16;
  std::uint32_t bias = 112;
  if (is_float8) {  // as binary16, whose smaller exponents are 8 less if there are 4 bits of them
    const bool few = kind == LengthField::FLOAT8_E4;
    bits = (bits & 0x80) << 8 | (bits & 0x7f) << (few ? 7 : 8);
    bias += few ? 8 : 0;
  }
  const std::uint32_t sign = (bits & 0x8000) << 16;
  std::uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31 && !is_float8) return sign | 0x7f800000 | fraction << 13;
  if (exponent == 0) {
    if (fraction == 0) return sign;
    for (exponent = 1; !(fraction & 0x400); fraction <<= 1) --exponent;  // wraps below 0, and comes back
    fraction &= 0x3ff;
  }
  return sign | (exponent + bias) << 23 | fraction << 13;
}

// bits >> places, to nearest: ties to even, or away from zero.
inline std::uint32_t shifted(std::uint32_t bits, unsigned places, bool away) {
  const std::uint32_t whole = bits >> places, rest = bits & ((1u << places) - 1), half = 1u << (places - 1);
  return whole + (rest > half || (rest == half && (away || whole & 1)));
}

// The element of this type that a binary32 is rounded to.
inline std::uint16_t narrowed(std::uint32_t bits, std::uint64_t kind) {
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  const bool nan = magnitude > 0x7f800000;
  if (kind != LengthField::BINARY16)
    return static_cast<std::uint16_t>(sign | (nan ? 0x7fc0 : shifted(magnitude, 16, kind == LengthField::BFLOAT16_AWAY)));
  std::uint32_t result;
  if (nan) {
    result = 0x7e00;
  } else if (magnitude >= 0x477ff000) {  // half an ulp above the largest number
    result = 0x7c00;
  } else if (magnitude >= 0x38800000) {
    result = shifted(magnitude - (112u << 23), 13, false);
  } else {  // subnormal: in units of 2**-24
    const unsigned places = 126 - (magnitude >> 23);
    result = places > 24 ? 0 : shifted((magnitude & 0x7fffff) | 0x800000, places, false);
  }
  return static_cast<std::uint16_t>(sign | result);
}

// The bits of what a binary32 is rounded to.
inline std::uint32_t rounded(std::uint32_t bits, std::uint64_t kind) {
  return kind == LengthField::ELEMENTS ? bits : widened(narrowed(bits, kind), kind);
}

inline void widen_row(const void* row, std::uint64_t elements, std::uint64_t kind, std::vector<float>& to) {
  const auto* from = static_cast<const std::uint8_t*>(row);
  to.resize(elements);
  const unsigned size = element_bits(kind);
  if (is_unsigned(kind)) {  // the lowest bits of a byte first
    for (std::uint64_t i = 0; i < elements; ++i)
      to[i] = static_cast<float>(from[i * size / 8] >> i * size % 8 & ((1u << size) - 1));
    return;
  }
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::uint16_t one = from[i];
    if (size == 16) std::memcpy(&one, from + 2 * i, sizeof one);
    const std::uint32_t bits = widened(one, kind);
    std::memcpy(&to[i], &bits, sizeof bits);
  }
}

inline void narrow_row(const float* row, std::uint64_t elements, std::uint64_t kind, std::vector<std::uint16_t>& to) {
  to.resize(elements);
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, row + i, sizeof bits);
    to[i] = narrowed(bits, kind);
  }
}

}  // namespace daedal
