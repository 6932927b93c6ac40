// The division by a count for every dividend of a range: the algorithm of hw/execute_unit/fpu/float_divide.py in integers,
// against the host's own division.
#include "division.h"

namespace {

// Wrong quotients among the dividends with the patterns from `first` up to, not including, `end`; no infinity, no NaN.
// `skew` is added to the reciprocal, to show that a wrong one is noticed.
uint64_t wrong_quotients(uint32_t count, int32_t skew, uint32_t first, uint32_t end) {
    Factor y = factor(count);
    y.low += skew;
    const float value = (float)count;
    uint64_t wrong = 0;
    for (uint32_t bits = first; bits < end; bits++) wrong += divided(bits, y) != pattern(number(bits) / value);
    return wrong;
}

} // namespace

extern "C" {

struct Division {
    uint64_t checked, wrong;
    uint32_t first;
};

static void add(struct Division *found, uint32_t count, int32_t skew, uint32_t first, uint32_t end) {
    const uint64_t wrong = wrong_quotients(count, skew, first, end);
    found->checked += end - first;
    if (wrong && !found->wrong) found->first = count;
    found->wrong += wrong;
}

// One binade of dividends for each count from `first` up to, not including, `end`: so every normal quotient.
void divide_binade(uint32_t first, uint32_t end, int32_t skew, struct Division *found) {
    for (uint32_t count = first; count < end; count++) add(found, count, skew, 0x3f800000, 0x40000000);
}

// Every dividend whose quotient is subnormal, and those of one binade more.
void divide_subnormal(uint32_t first, uint32_t end, int32_t skew, struct Division *found) {
    for (uint32_t count = first; count < end; count++)
        add(found, count, skew, 0, pattern(std::ldexp((float)count, -125)));
}

// Odd counts from `begin` (made odd) to `end`, all significands a with a / count within 4 / (2 count) of a halfway point.
void divide_near_halfway(uint32_t begin, uint32_t end, uint32_t step, struct Division *found) {
    for (uint32_t count = begin | 1; count < end; count += step) {
        const int bits = 32 - __builtin_clz(count);
        for (int shift = bits; shift <= bits + 1; shift++)
            for (int off = -4; off <= 4; off++) {
                uint64_t x = off ? (uint64_t)((int64_t)off + count) % count : 0;
                for (int halvings = 0; halvings < shift; halvings++) x = (x % 2 ? x + count : x) / 2;
                for (; x < 1u << 24; x += count) {
                    const uint32_t dividend = pattern((float)x);
                    if (x >= 1u << 23) add(found, count, 0, dividend, dividend + 1);
                }
            }
    }
}

}
