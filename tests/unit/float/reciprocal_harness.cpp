// Gives counts to the verilated reciprocal unit and compares its answers with the compiler's own division.
#include <cstdint>
#include <cstring>
#include <memory>

#include "Vmodel.h"
#include "division.h"
#include "coverage.h"
#include "verilated.h"

// Verilator spells the double underscore of a stream's members so.
#define i__payload i___05Fpayload
#define i__valid i___05Fvalid
#define i__ready i___05Fready
#define o__payload o___05Fpayload
#define o__valid o___05Fvalid
#define o__ready o___05Fready

extern "C" {

struct ReciprocalReport {
    uint64_t checked, wrong, cycles, longest, shortest;
    uint32_t first;
};

// Ask for each of `counts`, with `pause` cycles of back-pressure on every answer.
void check_reciprocals(const uint32_t *counts, uint32_t size, uint32_t pause, ReciprocalReport *report) {
    VerilatedContext context;
    std::unique_ptr<Vmodel> top(new Vmodel(&context));
    Coverage coverage(context);
    auto cycle = [&](int rst) {
        top->rst = rst, top->clk = 0, top->eval();
        top->clk = 1, top->eval();
        top->clk = 0, top->eval();
        report->cycles++;
    };
    top->i__valid = 0, top->o__ready = 0;
    cycle(1);
    report->shortest = ~0ull;
    for (uint32_t n = 0; n < size; n++) {
        top->i__payload = counts[n], top->i__valid = 1, top->eval();
        for (int limit = 0; !top->i__ready && limit < 100; limit++) cycle(0);
        cycle(0);
        top->i__valid = 0, top->i__payload = 0xabcdef, top->eval();
        uint64_t waited = 1;
        while (!top->o__valid && waited < 200) cycle(0), waited++;
        for (uint32_t held = 0; held < pause; held++) cycle(0);
        const Factor y = factor(counts[n]);
        uint64_t want = y.low | y.high << 36 | (uint64_t)y.exponent << 54 | (uint64_t)y.is_long << 62;
        report->checked++;
        if (!top->o__valid || top->o__payload != want)
            if (report->wrong++ == 0) report->first = counts[n];
        if (waited > report->longest) report->longest = waited;
        if (waited < report->shortest) report->shortest = waited;
        top->o__ready = 1, top->eval(), cycle(0);
        top->o__ready = 0, top->eval();
    }
}

}
