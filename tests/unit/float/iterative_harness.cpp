// Gives operations to the verilated iterative unit and compares its answers with the C library.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "Vmodel.h"
#include "binary32.h"
#include "coverage.h"
#include "verilated.h"

#include "iterative_parameters.h"

// Verilator spells the double underscore of a stream's members so.
#define i__payload i___05Fpayload
#define i__valid i___05Fvalid
#define i__ready i___05Fready
#define o__payload o___05Fpayload
#define o__valid o___05Fvalid
#define o__ready o___05Fready

namespace {

struct Operation {
    uint32_t op, a, b;
};

struct Report {
    uint64_t checked, wrong, longest;
    Operation first;
    uint32_t got, want;
};

uint32_t canonical(float value) { return value != value ? CANONICAL_NAN : pattern(value); }

uint32_t to_integer(float value) {
    if (value != value) return 0;
    if (value >= 2147483648.0f) return INT32_MAX;
    if (value < -2147483648.0f) return (uint32_t)INT32_MIN;
    return (uint32_t)(int32_t)std::nearbyint((double)value);
}

uint32_t expected(const Operation &x) {
    float a = number(x.a), b = number(x.b);
    switch (x.op) {
    case OP_DIVIDE: return canonical(a / b);
    case OP_RECIPROCAL: return canonical(1.0f / a);
    case OP_SQUARE_ROOT: return canonical(std::sqrt(a));
    case OP_TO_FLOAT: return pattern((float)(int32_t)x.a);
    case OP_TO_INTEGER: return to_integer(a);
    default: return canonical((float)std::ldexp((double)a, std::max(-700, std::min(700, (int32_t)x.b))));
    }
}

// Any bits, or a normal or subnormal number whose fraction may have structure.
uint32_t any(Random &random) {
    uint32_t r = random.next(), ones = 0x7fffff, fraction = r & ones, sign = random.below(2) << 31;
    switch (random.below(8)) {
    case 0: return random.next();
    case 1: fraction = (ones << r % 24) & ones; break;
    case 2: fraction = ones >> r % 24; break;
    case 3: return sign | fraction >> random.below(23);
    }
    return sign | (random.below(3) ? random.between(90, 160) : random.below(255)) << 23 | fraction;
}

// Operands whose quotient is next to a halfway point, or exactly there if it is subnormal.
void near_halfway_quotient(Random &random, Operation &x) {
    uint32_t b = 1 << 23 | (random.next() & 0x7fffff), q = 1 << 24 | (random.next() & 0xffffff) | 1;
    int scale = 0;
    if (random.below(2)) {
        // A subnormal quotient with few bits: k + 1/2 units, the dividend exact.
        b = random.below(1 << 10) | 1, q = random.below(1 << 12) | 1, scale = -149 - 1;
        x.a = pattern((float)std::ldexp((double)q * b, scale + 20)), x.b = pattern(std::ldexp((float)b, 20));
        x.a += random.below(3) - 1;
    } else {
        x.a = pattern((float)((double)b * q)) + random.between(-1, 1), x.b = pattern((float)b);
    }
    x.a ^= random.below(2) << 31;
}

// A number next to the square of a halfway point.
void near_halfway_root(Random &random, Operation &x) {
    double root = (double)(1 << 24 | (random.next() & 0xffffff) | 1);
    x.a = pattern((float)std::ldexp(root * root, random.between(-190, 60))) + random.between(-2, 2);
}

void operands(Random &random, Operation &x) {
    x.a = any(random), x.b = any(random);
    switch (x.op) {
    case OP_DIVIDE:
        if (random.below(3) == 0) near_halfway_quotient(random, x);
        break;
    case OP_SQUARE_ROOT:
        if (random.below(2)) near_halfway_root(random, x);
        if (random.below(8)) x.a &= 0x7fffffff;
        break;
    case OP_TO_FLOAT:
        x.a = (uint32_t)((int32_t)random.next() >> random.below(32));
        if (random.below(3) == 0) { // 24 bits, then something near one half
            int low = 1 + random.below(7);
            x.a = (x.a & -(1u << low)) | (1u << (low - 1)) | (random.below(2) ? random.below(1u << low) : 0);
        }
        break;
    case OP_TO_INTEGER:
        x.a = (x.a & 0x807fffff) | random.between(120, 160) << 23;
        if (random.below(3) == 0) x.a = pattern((float)random.between(-70000, 70000) + 0.5f) + random.between(-1, 1);
        break;
    case OP_SCALE:
        x.b = random.below(16) ? random.between(-330, 330) : random.next();
        if (random.below(2)) { // into the subnormal numbers
            int exponent = (int)(x.a >> 23 & 255);
            x.b = -exponent - random.between(-2, 26);
        }
    }
}

} // namespace

extern "C" {

class Bench {
  public:
    Bench() : top(new Vmodel(&context)), coverage(context) {
        top->i__valid = 0, top->o__ready = 0;
        cycle(1);
    }

    void check(const Operation &x, uint32_t pause, Report &report) {
        uint64_t bits = (uint64_t)x.b << (32 + OP_BITS) | (uint64_t)x.a << OP_BITS | x.op;
        for (int n = 0; n < 3; n++) top->i__payload[n] = 0;
        top->i__payload[0] = (uint32_t)bits, top->i__payload[1] = (uint32_t)(bits >> 32);
        top->i__payload[2] = x.b >> (32 - OP_BITS);
        top->i__valid = 1, top->eval();
        for (int limit = 0; !top->i__ready && limit < 200; limit++) cycle(0);
        cycle(0);
        top->i__valid = 0, top->i__payload[0] = ~0u, top->i__payload[1] = ~0u, top->eval();
        uint64_t waited = 1;
        while (!top->o__valid && waited < 200) cycle(0), waited++;
        for (uint32_t held = 0; held < pause; held++) cycle(0);
        report.checked++;
        uint32_t want = expected(x);
        if (!top->o__valid || top->o__payload != want)
            if (report.wrong++ == 0) report.first = x, report.got = top->o__payload, report.want = want;
        if (waited > report.longest) report.longest = waited;
        top->o__ready = 1, top->eval(), cycle(0);
        top->o__ready = 0, top->eval();
    }

  private:
    void cycle(int rst) {
        top->rst = rst, top->clk = 0, top->eval();
        top->clk = 1, top->eval();
        top->clk = 0, top->eval();
    }

    VerilatedContext context;
    std::unique_ptr<Vmodel> top;
    Coverage coverage;
};

// Operation `op` on every pair of `values`.
void check_pairs(uint32_t op, const uint32_t *values, uint32_t size, Report *report) {
    Bench bench;
    for (uint32_t n = 0; n < size * size; n++) bench.check(Operation{op, values[n / size], values[n % size]}, n % 3, *report);
}

// `count` operations `op` on operands chosen to be hard.
void check_hard(uint32_t op, uint64_t seed, uint64_t count, Report *report) {
    Bench bench;
    Random random{seed};
    for (uint64_t n = 0; n < count; n++) {
        Operation x{op, 0, 0};
        operands(random, x);
        bench.check(x, 0, *report);
    }
}

}
