// What all harnesses of floating point share: bit patterns of binary32 numbers, and random numbers.
#pragma once
#include <cstdint>
#include <cstring>

static inline float number(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t pattern(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

// SplitMix64.
struct Random {
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    uint32_t below(uint32_t bound) { return (next() >> 32) * bound >> 32; }
    int between(int low, int high) { return low + (int)below(high - low + 1); }
};
