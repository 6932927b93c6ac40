// Drives a verilated lane at one operation per cycle and compares every result with the C library.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "Vmodel.h"
#include "binary32.h"
#include "division.h"
#include "coverage.h"
#include "verilated.h"

#include "lane_parameters.h"

namespace {

struct Operation {
    uint32_t op, negate_product, negate_addend, a, b, c;
};

struct Report {
    uint64_t checked, wrong, noted;
    Operation first;
    uint32_t got, want;
};

bool is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

uint32_t canonical(float value) { return value != value ? CANONICAL_NAN : pattern(value); }

uint32_t expected(const Operation &x) {
    float a = number(x.a), c = number(x.c);
    float factor = number(x.a ^ x.negate_product << 31), addend = number(x.c ^ x.negate_addend << 31);
    float b = number(x.b);
    switch (x.op) {
    case OP_MOVE: return x.a;
    case OP_ABS: return x.a & 0x7fffffff;
    case OP_MAX: return a > c ? x.a : x.c;
    case OP_MIN: return a < c ? x.a : x.c;
    case OP_ADD: return canonical(factor + addend);
    case OP_MUL: return canonical(factor * b);
    case OP_FMA: return canonical(fmaf(factor, b, addend));
    case OP_SELECT: return b != 0 ? x.a : x.c;
    case OP_GREATER: return a > c ? 0x3f800000 : 0;
    case OP_LESS: return a < c ? 0x3f800000 : 0;
    case OP_EQUAL: return a == c ? 0x3f800000 : 0;
    default: return canonical(factor * b + addend);
    }
}

// Where an operation gets its addend. One that CHAINS takes the result that comes out as its addend joins, which is that
// of the operation LOOP cycles before; one that FEEDS is there for that, and its result is not handed on.
enum Role { PLAIN, FEEDS, CHAINS };

const int LOOP = LATENCY - JOIN;

// The lane and what is on its way through it. Cycle n is the time between two rising edges.
class Bench {
  public:
    Bench() : top(new Vmodel(&context)), coverage(context) {
        top->rst = 0;
        top->clk = 0;
        top->low = top->cuts = top->carries = 0;
    }

    Vmodel *operator->() { return top.get(); }

    // Put one operation in (or none) and hand the result of the one that comes out to `take`.
    template <typename Take> void cycle(const Operation *put, const Take &take, Role role = PLAIN) {
        Entry &entry = pipe[now % DEPTH];
        entry.full = put != nullptr && role != FEEDS;
        entry.chains = role == CHAINS;
        if (put) {
            entry.operation = *put;
            top->op = put->op;
            top->negate_product = put->negate_product;
            top->negate_addend = put->negate_addend;
            top->a = put->a;
            top->b = put->b;
        }
        if (now >= JOIN) {
            const Entry &late = pipe[(now - JOIN) % DEPTH];
            const Operation &joined = late.operation;
            top->c = joined.op == OP_MUL ? 0 : late.chains ? ~joined.c : joined.c; // what a multiplication is to be given
            top->chain = late.chains && joined.op != OP_MUL;
        }
        top->clk = 0;
        top->eval();
        if (now >= LATENCY && pipe[(now - LATENCY) % DEPTH].full) {
            take(pipe[(now - LATENCY) % DEPTH].operation, top->o);
        }
        top->clk = 1;
        top->eval();
        now++;
    }

    template <typename Take> void drain(const Take &take) {
        for (int n = 0; n <= LATENCY; n++) cycle(nullptr, take);
    }

  private:
    static constexpr uint64_t DEPTH = 16;
    struct Entry {
        bool full, chains;
        Operation operation;
    };
    VerilatedContext context;
    std::unique_ptr<Vmodel> top;
    Coverage coverage;
    Entry pipe[DEPTH] = {};
    uint64_t now = 0;
};

void judge(Report &report, const Operation &operation, uint32_t got, uint32_t want) {
    report.checked++;
    if (got == want) return;
    if (report.wrong++ == 0) {
        report.first = operation;
        report.got = got;
        report.want = want;
    }
}

// A fraction with structure: random, a few bits, runs of ones at either end.
uint32_t fraction(Random &random) {
    uint32_t ones = 0x7fffff, r = random.next();
    switch (random.below(6)) {
    case 0: return (1u << r % 24) & ones;
    case 1: return (ones << r % 24) & ones;
    case 2: return ones >> r % 24;
    case 3: return ((1u << r % 24) | (1u << (r >> 8) % 24)) & ones;
    default: return r & ones;
    }
}

uint32_t pack(Random &random, int exponent) {
    exponent = exponent < 0 ? 0 : exponent > 254 ? 254 : exponent;
    return random.below(2) << 31 | (uint32_t)exponent << 23 | fraction(random);
}

// A product that is exactly halfway between two numbers (or nearly so), and an addend that may be far smaller.
void halfway(Random &random, Operation &x) {
    float a = (float)(random.below(1 << 13) | 1 << 12 | 1), b = (float)(random.below(1 << 12) | 1 << 11 | 1);
    int scale = random.between(-120, 100), addend = random.between(-149, scale + 30);
    x.a = pattern(std::ldexp(a, scale)) ^ random.below(2) << 31;
    x.b = pattern(std::ldexp(b, random.below(2) ? 0 : random.between(-24, 0))) ^ random.below(2) << 31;
    x.c = pattern(std::ldexp(1.0f, addend < 127 ? addend : 127)) ^ random.below(2) << 31;
    if (random.below(2)) x.c |= fraction(random);
}

// A sum whose low bits, down to the product's last, are all but zero: next to a tie, or with one bit to tell.
void nearly_even(Random &random, Operation &x) {
    uint32_t mask = (1 << 24) - 1, a = (1 << 23) | fraction(random) | 1, c = (1 << 23) | fraction(random);
    uint32_t inverse = a; // of a modulo 2**24, by Newton's iteration
    for (int n = 0; n < 4; n++) inverse *= 2 - a * inverse;
    int place = random.between(-4, 26), exponent = random.between(30, 220);
    uint32_t bit = random.below(3) ? 1u << random.below(25) : 0, addend = place < 0 ? c >> -place : (uint64_t)c << place;
    uint32_t b = ((random.below(2) ? bit - addend : bit + addend) + random.between(-1, 1)) * inverse & mask;
    if (b < 1 << 23) return nearly_even(random, x);
    int sum = exponent + 150 - place, ea = random.between(sum > 254 ? sum - 254 : 1, sum > 254 ? 254 : sum - 1);
    uint32_t signs = random.next(), ones = 0x7fffff;
    x.a = (signs & 1) << 31 | (uint32_t)ea << 23 | (a & ones);
    x.b = (signs >> 1 & 1) << 31 | (uint32_t)(sum - ea) << 23 | (b & ones);
    x.c = (signs >> 2 & 1) << 31 | (uint32_t)exponent << 23 | (c & ones);
}

// Whether the operation uses the product; the others take `a` and `c`, or `a` alone.
bool multiplies(uint32_t op) { return op > OP_ADD && op < OP_SELECT; }

// Two numbers `distance` binades apart, of which the smaller one ends half a unit of the larger one, or next to it.
void tie_of_sum(Random &random, Operation &x) {
    int distance = random.between(1, 25), exponent = random.between(distance + 1, 254);
    uint32_t low = distance < 24 ? (uint32_t)((random.next() & 0xffffff) | 0x800000) >> distance << distance : 1u << 23;
    if (distance < 24) low |= 1u << (distance - 1);
    low += random.between(-1, 1);
    if (low < 1u << 23) low = 1u << 23;
    x.a = random.below(2) << 31 | (uint32_t)(exponent - distance) << 23 | (low & 0x7fffff);
    x.c = random.below(2) << 31 | (uint32_t)exponent << 23 | fraction(random);
    if (random.below(2)) std::swap(x.a, x.c);
    x.b = random.below(2) ? pattern(1.0f) : pack(random, random.between(1, 254));
}

// Factors whose product has about the (biased) exponent `product`.
void factors(Random &random, int product, Operation &x) {
    int ea = random.between(product > 127 ? product - 127 : 0, product > 127 ? 254 : product + 127);
    x.a = pack(random, ea);
    x.b = pack(random, product + 127 - ea);
}

// The operations that do not multiply compare or add `a` and `c`: bring these together instead.
void bring_together(Random &random, Operation &x) {
    if (multiplies(x.op)) return;
    int near_exponent = (int)(x.c >> 23 & 255);
    if (random.below(2)) x.a = pack(random, near_exponent + random.between(-27, 27));
    else x.a = (x.c ^ random.below(2) << 31) + random.between(-2, 2);
}

const uint32_t SPECIALS[] = {0, 1, 2, 0x400000, 0x7fffff, 0x800000, 0x800001, 0x3f800000, 0x3f7fffff, 0x7f000000,
                             0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fc12345};

// Operands of one kind: see `Kind` in models.py.
void operands(Random &random, uint32_t kind, Operation &x) {
    int product;
    switch (kind) {
    case KIND_ANY_BITS: x.a = random.next(), x.b = random.next(), x.c = random.next(); return;
    case KIND_TIE:
        if (!multiplies(x.op)) return tie_of_sum(random, x);
        switch (random.below(3)) {
        case 0: return tie_of_sum(random, x);
        case 1: return nearly_even(random, x);
        default: return halfway(random, x);
        }
    case KIND_SUBNORMAL:
        product = random.between(-27, 3);
        factors(random, product, x);
        x.c = pack(random, random.below(2) ? 0 : random.between(0, 30));
        if (random.below(4) == 0) x.a &= 0x807fffff;
        if (!multiplies(x.op)) x.a = pack(random, random.between(0, 3));
        return;
    case KIND_OVERFLOW:
        product = random.between(245, 258);
        factors(random, product, x);
        x.c = pack(random, random.between(220, 254));
        if (!multiplies(x.op)) x.a = pack(random, random.between(225, 254));
        return;
    case KIND_SPECIAL: {
        factors(random, random.between(-10, 265), x);
        x.c = pack(random, random.between(0, 254));
        uint32_t which = 1 + random.below(7);
        uint32_t *all[] = {&x.a, &x.b, &x.c};
        for (int n = 0; n < 3; n++)
            if (which >> n & 1) *all[n] = SPECIALS[random.below(16)] | random.below(2) << 31;
        return;
    }
    case KIND_CANCEL: {
        factors(random, random.between(-10, 253), x);
        float near = number(x.a) * number(x.b);
        x.c = (pattern(near) ^ 1u << 31) + random.between(-3, 3);
        return bring_together(random, x);
    }
    default: // KIND_ALIGN: every distance between product and addend at which both matter, and more
        product = random.between(-10, 265);
        factors(random, product, x);
        x.c = pack(random, product + random.between(-54, 30));
        return bring_together(random, x);
    }
}

// A dividend for `count`: any bits, subnormal, small, a number halfway between two subnormal quotients.
uint32_t dividend(Random &random, uint32_t count) {
    uint32_t sign = random.below(2) << 31, odd = count;
    int twos = 0;
    while (odd % 2 == 0) odd /= 2, twos++;
    switch (random.below(8)) {
    case 0: return random.next();
    case 1: return sign | random.below(1 << 24);
    case 2: return sign | (uint32_t)random.below(40) << 23 | fraction(random);
    case 3: {
        if (twos == 0) break;
        uint32_t most = (1u << 24) / odd, k = random.next() >> (40 + random.below(24));
        k = most > 1 ? (k % most) | 1 : 1;
        if ((uint64_t)k * odd >= 1u << 24) break;
        return sign | pattern(std::ldexp((float)(k * odd), twos - 1 - 149));
    }
    case 4: { // near halfway between subnormals
        float quotient = (float)random.below(1 << 23) + 0.5f;
        return sign | (pattern(std::ldexp((float)((double)quotient * count), -149)) + random.between(-1, 1));
    }
    case 5: { // a quotient around the smallest normal number
        float edge = std::ldexp((float)count, -126);
        return sign | (pattern(edge) + random.between(-4, 4));
    }
    case 6: {
        static const uint32_t special[] = {0, 0x7f800000, 0x7fc00000, 1, 0x7f7fffff, 0x00800000, 0x7f800001, 2};
        return sign | special[random.below(8)];
    }
    }
    return pack(random, random.between(1, 254));
}

bool is_tie(uint32_t dividend, uint32_t count) {
    double units = std::ldexp((double)std::fabs(number(dividend)), 149);
    return units < std::ldexp((double)count, 23) && std::fmod(units, count) * 2 == count;
}

// Divides each of `dividends` by one count, in one beat or two.
void divide(Bench &bench, Report &report, uint32_t count, const std::vector<uint32_t> &dividends) {
    const Factor y = factor(count);
    const uint32_t top = (uint32_t)(y.low >> 12), exponent = top >> 23 ? y.exponent : 0;
    const uint32_t first = exponent << 23 | (top & 0x7fffff), second = y.exponent << 23 | (uint32_t)(y.high & 0x1ffff) << 6;
    auto take = [&](const Operation &x, uint32_t o) {
        uint32_t want = canonical(number(x.a) / (float)count);
        report.noted += is_tie(x.a, count);
        judge(report, Operation{OP_MUL, 0, 0, x.a, count, 0}, o, want);
    };
    for (uint32_t dividend : dividends) {
        const Operation low{OP_MUL, 0, 0, dividend, first, 0}, high{OP_MUL, 0, 0, dividend, second, 0};
        bench->low = y.low & 0xfff, bench->cuts = !y.is_long, bench->carries = 0;
        bench.cycle(&low, take, y.is_long ? FEEDS : PLAIN);
        bench->low = bench->cuts = 0, bench->carries = 1;
        if (y.is_long) bench.cycle(&high, take);
    }
    bench->low = bench->cuts = bench->carries = 0;
    bench.drain(take);
}

} // namespace

extern "C" {

// Every operation, with every sign flag, on every choice of one value for each operand.
void check_grid(const uint32_t *a, uint32_t as, const uint32_t *b, uint32_t bs, const uint32_t *c, uint32_t cs,
                Report *report) {
    Bench bench;
    auto take = [&](const Operation &x, uint32_t o) { judge(*report, x, o, expected(x)); };
    for (uint32_t op = 0; op < OPERATIONS; op++)
        for (uint32_t flags = 0; flags < 4; flags++)
            for (uint32_t n = 0; n < as * bs * cs; n++) {
                Operation x{op, flags & 1, flags >> 1, a[n % as], b[n / as % bs], c[n / as / bs]};
                bench.cycle(&x, take);
            }
    bench.drain(take);
}

// `count` times operation `op`, on operands of one kind; half of them get their addend from a result.
void check_random(uint64_t seed, uint32_t op, uint32_t kind, uint64_t count, Report *report) {
    Bench bench;
    Random random{seed};
    auto take = [&](const Operation &x, uint32_t o) { judge(*report, x, o, expected(x)); };
    for (uint64_t n = 0; n < count; n += LOOP) {
        Role role = n / LOOP % 2 ? CHAINS : PLAIN;
        std::vector<Operation> group(count - n < LOOP ? count - n : LOOP);
        for (auto &x : group) {
            uint32_t flags = random.below(4);
            x = {op, flags & 1, flags >> 1, 0, 0, 0};
            operands(random, kind, x);
        }
        for (int k = 0; role == CHAINS && k < LOOP; k++) {
            Operation feed{OP_MOVE, 0, 0, group[k % group.size()].c, 0, 0};
            bench.cycle(&feed, take, FEEDS);
        }
        for (const auto &x : group) bench.cycle(&x, take, role);
    }
    bench.drain(take);
}

// Divisions of `each` dividends by every count in `counts`; notes how many subnormal ties there were.
void check_divisions(uint64_t seed, const uint32_t *counts, uint32_t size, uint32_t each, Report *report) {
    Bench bench;
    Random random{seed};
    std::vector<uint32_t> dividends(each);
    for (uint32_t n = 0; n < size; n++) {
        for (auto &x : dividends) x = dividend(random, counts[n]);
        divide(bench, *report, counts[n], dividends);
    }
}

// Divisions by odd counts of dividends whose quotient lies within 4 / (2 count) of a halfway point.
void check_near_halfway(const uint32_t *counts, uint32_t size, Report *report) {
    Bench bench;
    for (uint32_t n = 0; n < size; n++) {
        uint32_t count = counts[n];
        int bits = 32 - __builtin_clz(count);
        std::vector<uint32_t> dividends;
        for (int shift = bits; shift <= bits + 1; shift++)
            for (int off = -4; off <= 4; off++) {
                uint64_t x = ((int64_t)off % count + count) % count;
                for (int halvings = 0; halvings < shift; halvings++) x = (x % 2 ? x + count : x) / 2;
                for (; x < 1u << 24; x += count)
                    if (x >= 1u << 23) dividends.push_back(pattern((float)x));
            }
        divide(bench, *report, count, dividends);
    }
}

}
