// Does q = a y; r = a - q L; q + r y round a / L correctly where it has the least room? See float_divide.py.
#include <cmath>
#include <cstdint>

// Odd counts from `begin` (made odd) to `end`, all significands a with a / L within 4 / (2 L) of a halfway point.
extern "C" void three_passes(uint32_t begin, uint32_t end, uint32_t step, uint64_t *checked, uint64_t *wrong) {
    for (uint32_t count = begin | 1; count < end; count += step) {
        float value = (float)count, y = 1.0f / value;
        int bits = 32 - __builtin_clz(count);
        for (int shift = bits; shift <= bits + 1; shift++)
            for (int off = -4; off <= 4; off++) {
                uint64_t x = off ? (uint64_t)((int64_t)off + count) % count : 0;
                for (int halvings = 0; halvings < shift; halvings++) x = (x % 2 ? x + count : x) / 2;
                for (; x < 1u << 24; x += count) {
                    if (x < 1u << 23) continue;
                    float a = (float)x, q = a * y, r = fmaf(-q, value, a);
                    *wrong += fmaf(r, y, q) != a / value;
                    ++*checked;
                }
            }
    }
}
