// The three passes of a division by a count, with the fix-up of the third one, for every dividend of a range: the
// algorithm of hw/execute_unit/fpu/float_divide.py on the host's own binary32 arithmetic.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "binary32.h"

namespace {

// Wrong quotients among the dividends with the patterns from `first` up to, not including, `end`; no infinity, no NaN.
uint64_t wrong_quotients(uint32_t count, float y, uint32_t first, uint32_t end) {
    const float value = (float)count, smallest = number(1), half = 0.5f;
    const uint32_t tie_remainder = count % 2 ? ~0u : count / 2;
    uint32_t wrong = 0;
    for (uint32_t bits = first; bits < end; bits++) {
        const float a = number(bits), q = a * y, r = fmaf(-q, value, a);
        const uint32_t remainder = pattern(r), magnitude = remainder & 0x7fffffff;
        const bool done = ((pattern(q) & 0x7fffffff) | magnitude) == 0;
        const bool tie = (pattern(q) < 1u << 23) & (magnitude == tie_remainder);
        const uint32_t factor = tie ? (remainder & 1u << 31) | pattern(smallest) : remainder;
        const uint32_t rounded = pattern(fmaf(number(factor), number(tie ? pattern(half) : pattern(y)), q));
        wrong += (done ? pattern(q) : rounded) != pattern(a / value);
    }
    return wrong;
}

} // namespace

extern "C" {

struct Division {
    uint64_t checked, wrong;
    uint32_t first;
};

// One binade of dividends for each count from `first` up to, not including, `end`: so every normal quotient.
// `skew` is added to the reciprocal's pattern, to show that a wrong one is noticed.
void divide_binade(uint32_t first, uint32_t end, int32_t skew, struct Division *found) {
    for (uint32_t count = first; count < end; count++) {
        const float y = number(pattern(1.0f / (float)count) + skew);
        const uint64_t wrong = wrong_quotients(count, y, 0x3f800000, 0x40000000);
        found->checked += 1u << 23;
        if (wrong && !found->wrong) found->first = count;
        found->wrong += wrong;
    }
}

// Every dividend whose quotient is subnormal, and those of one binade more.
void divide_subnormal(uint32_t first, uint32_t end, int32_t skew, struct Division *found) {
    for (uint32_t count = first; count < end; count++) {
        const float y = number(pattern(1.0f / (float)count) + skew);
        const uint32_t most = pattern(std::ldexp((float)count, -125));
        const uint64_t wrong = wrong_quotients(count, y, 0, most);
        found->checked += most;
        if (wrong && !found->wrong) found->first = count;
        found->wrong += wrong;
    }
}

}
