// Division by a count as hw/execute_unit/fpu/float_divide.py describes it, in integers.
#pragma once

#include <cmath>
#include <cstdint>

#include "binary32.h"

struct Factor {
    uint64_t low, high;
    uint32_t exponent, is_long;
};

inline Factor factor(uint32_t count) {
    const uint32_t size = 32 - __builtin_clz(count), is_power = (count & (count - 1)) == 0;
    const uint32_t exponent = 127 - size + is_power;
    const uint64_t top = 1ull << 35, below = ~(~0ull << 36);
    if (count < 512) return {is_power ? top : ((1ull << (35 + size)) + count - 1) / count, 0, exponent, 0};
    if (is_power) return {0, 1ull << 17, exponent, 1};
    typedef unsigned __int128 Wide;
    const Wide y = (((Wide)1 << 77) + (1 << 24) - 1) / (count << (24 - size));
    return {(uint64_t)y & below, (uint64_t)(y >> 36), exponent, 1};
}

// `bits * 2**place` as the nearest binary32, ties to even; `bits` is not 0 and has 48 of them at most.
inline uint32_t rounded(uint64_t bits, int place) {
    const int top = 63 - __builtin_clzll(bits);
    const int least = top + place < -126 ? -149 - place : top - 23; // the place of the last bit that is kept
    if (least <= 0) return pattern((float)std::ldexp((double)bits, place));
    if (least > 62) return 0;
    const uint64_t rest = bits & ~(~0ull << least), half = 1ull << (least - 1);
    uint64_t kept = bits >> least;
    kept += rest > half || (rest == half && (kept & 1));
    return pattern((float)std::ldexp((double)kept, place + least));
}

// The quotient of a positive, finite dividend.
inline uint32_t divided(uint32_t dividend, const Factor &y) {
    typedef unsigned __int128 Wide;
    const uint32_t field = dividend >> 23;
    const uint64_t a = (dividend & 0x7fffff) | (field ? 1u << 23 : 0);
    if (!a) return 0;
    uint64_t product = (uint64_t)((Wide)a * y.low >> 24) << 12;
    if (y.is_long) {
        const uint64_t first = (uint64_t)((Wide)a * y.low >> 12);
        product = (a * y.high << 6) + ((first >> 18) | ((first >> 14 & 15) != 0));
    }
    return product ? rounded(product, (int)(field ? field : 1) - 150 + (int)y.exponent - 127 - 23) : 0;
}
