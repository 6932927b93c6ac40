#include "simulation.h"

namespace daedal {

namespace {

constexpr unsigned RESET_CYCLES = 4;
constexpr unsigned REGISTER_CYCLES = 10000;  // a register access must end within this many
constexpr unsigned CLOCK_CHECK = 256;        // cycles between looks at the wall clock

}  // namespace

Simulation::Simulation(std::uint64_t memory_bytes, const IdealOptions &options)
    : model_(std::make_unique<Vmodel>(&context_, "")), coverage_(context_) {
  begin(memory_bytes, options);
}

Simulation::Simulation(std::uint64_t memory_bytes, const DramOptions &options)
    : model_(std::make_unique<Vmodel>(&context_, "")), coverage_(context_) {
  begin(memory_bytes, options);
  for (auto &side : sides_) side->drive(cycle_);
}

template <class Options>
void Simulation::begin(std::uint64_t memory_bytes, const Options &options) {
  std::vector<Counts *> counts;
  for (unsigned tile = 0; tile < TILES; ++tile) {
    sides_.push_back(std::make_unique<Side>(*model_, tile, memory_bytes, errors_, options));
    counts.push_back(&sides_.back()->counts);
  }
  host_ = std::make_unique<LiteMaster>(bind_lite(*model_), counts);
  interrupt_ = bind_interrupt(*model_);
#if VM_TRACE
  context_.traceEverOn(true);
#endif
  // The reset pin goes through a register: the core needs some cycles to come out of reset as well.
  for (unsigned i = 0; i < 2 * RESET_CYCLES; ++i) {
    model_->rst = i < RESET_CYCLES;
    fall(true);
    rise(false);
  }
}

Simulation::~Simulation() {
  stop_trace();
  model_->final();
}

// Inputs are taken when their clock rises: before that it must be low, whoever had them taken last.
void Simulation::lower_pins_clock() {
  if (!model_->pins_clk) return;
  model_->pins_clk = 0;
  model_->eval();
}

// The falling edge of the clock, at which nothing happens in the core but what its inputs change, if they are taken.
void Simulation::fall(bool take_inputs) {
  model_->clk = 0;
  if (take_inputs) lower_pins_clock();  // high if memory drove early: now what the host changed since
  model_->pins_clk = take_inputs;
  model_->eval();
}

// The rising edge, with what the inputs are from then on, if they are taken.
void Simulation::rise(bool take_inputs) {
  if (take_inputs) lower_pins_clock();  // high if the host changed something in this cycle
  model_->clk = 1;
  model_->pins_clk = take_inputs;
  model_->eval();
}

void Simulation::clock() {
  bool early = sides_[0]->memory().drives_before_edge();  // then this cycle's inputs are set already
  if (!early)
    for (auto &side : sides_) side->drive(cycle_);
  fall(!taken_);
  dump(0);
  for (auto &side : sides_) side->sample(cycle_);
  host_->sample(cycle_);
  host_->release();
  if (early)
    for (auto &side : sides_) side->drive(cycle_ + 1);
  rise(early);
  taken_ = early;
  dump(1);
  for (auto &side : sides_) side->counts.cycle();
  ++cycle_;
}

bool Simulation::run(std::uint64_t cycles, double seconds, std::uint64_t least) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (std::uint64_t done = 0; done < cycles && (done < least || !*interrupt_); ++done) {
    if (errors_.any()) return false;
    if (done % CLOCK_CHECK == CLOCK_CHECK - 1 && std::chrono::steady_clock::now() >= end) return false;
    clock();
  }
  return *interrupt_;
}

void Simulation::finish_transaction() {
  for (unsigned i = 0; host_->busy(); ++i) {
    if (i == REGISTER_CYCLES) {
      errors_.report(cycle_, "a register access did not end within %u cycles", REGISTER_CYCLES);
      return;
    }
    clock();
  }
}

std::uint32_t Simulation::read_register(std::uint32_t address) {
  host_->start_read(address);
  taken_ = false;
  finish_transaction();
  return host_->value();
}

void Simulation::write_register(std::uint32_t address, std::uint32_t value) {
  host_->start_write(address, value);
  taken_ = false;
  finish_transaction();
}

#if VM_TRACE

void Simulation::dump(unsigned half) {
  if (trace_) trace_->dump(10 * cycle_ + 5 * half);
}

bool Simulation::trace(const char *path) {
  stop_trace();
  trace_ = std::make_unique<VerilatedVcdC>();
  model_->trace(trace_.get(), 99);
  trace_->open(path);
  return trace_->isOpen();
}

void Simulation::stop_trace() {
  if (trace_) trace_->close();
  trace_.reset();
}

#else

void Simulation::dump(unsigned) {}
bool Simulation::trace(const char *) { return false; }
void Simulation::stop_trace() {}

#endif

}  // namespace daedal
