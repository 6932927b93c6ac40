// The verilated DRAM behind the class of dram.h.
#include <cstring>
#include <memory>
#include <string>

#include "Vmodel.h"
#include "coverage.h"
#include "dram.h"
#include "dram_ports.h"
#include "verilated.h"

namespace daedal {

namespace {

constexpr unsigned RESET_CYCLES = 8;

// Where the model that is being moved on keeps its report: the checks know no model.
thread_local std::string *reports = nullptr;

class Model final : public Dram {
 public:
  Model(std::uint8_t *rows, std::uint64_t size) : model_(std::make_unique<Vmodel>(&context_, "")), rows_(rows), size_(size) {
    Vmodel &model = *model_;
#define DRAM_PORT(n)                                                                              \
  ports.push_back({&model.p##n##_cmd_valid, &model.p##n##_cmd_we, &model.p##n##_cmd_addr,         \
                   &model.p##n##_cmd_ready, &model.p##n##_wdata_ready, &model.p##n##_rdata_valid});
    DRAM_PORTS(DRAM_PORT)
#undef DRAM_PORT
    wdata = &model.wdata;
    wdata_we = &model.wdata_we;
    rdata = &model.rdata;
    model.sys_rst = 1;
    for (unsigned i = 0; i < RESET_CYCLES; ++i) {
      settle();
      edge();
    }
    model.sys_rst = 0;
    counts = {};
    text_.clear();
  }
  ~Model() override { model_->final(); }

  void settle() override {
    if (model_->row_read) read_row();
    model_->sys_clk = 0;
    evaluate();
  }

  void edge() override {
    if (model_->row_write) write_row();
    counts.refreshes += model_->refresh;
    model_->sys_clk = 1;
    evaluate();
  }

  const char *violation() const override { return text_.c_str(); }

 private:
  void evaluate() {
    reports = &text_;
    model_->eval();
    reports = nullptr;
  }

  static std::uint64_t address(std::uint64_t bank, std::uint64_t word) {
    std::uint64_t column = word & ((1u << COLUMN_BITS) - 1), row = word >> COLUMN_BITS;
    return ((row << BANK_BITS | bank) << COLUMN_BITS | column) * WORD_BYTES;
  }

  void read_row() {
    std::uint64_t at = address(model_->row_read_bank, model_->row_read_word);
    ++counts.reads;
    if (at < size_) std::memcpy(&model_->row_read_data, rows_ + at, WORD_BYTES);
  }

  void write_row() {
    std::uint64_t at = address(model_->row_write_bank, model_->row_write_word), mask = model_->row_write;
    const auto *data = reinterpret_cast<const std::uint8_t *>(&model_->row_write_data);
    ++counts.writes;
    if (at >= size_) return;
    if (mask == ~std::uint64_t(0) >> (64 - WORD_BYTES))
      std::memcpy(rows_ + at, data, WORD_BYTES);
    else
      for (unsigned byte = 0; byte < WORD_BYTES; ++byte)
        if (mask >> byte & 1) rows_[at + byte] = data[byte];
  }

  VerilatedContext context_;
  std::unique_ptr<Vmodel> model_;
  Coverage coverage_{context_};
  std::uint8_t *rows_;
  std::uint64_t size_;
  std::string text_;
};

}  // namespace

}  // namespace daedal

// What the checks of the model call: `text` may have a `%0d` for the value. Only the first report is kept.
extern "C" void daedal_dram_report(const char *text, long long picoseconds, int value) {
  if (!daedal::reports || !daedal::reports->empty()) return;
  std::string message = text;
  std::size_t at = message.find("%0d");
  if (at != std::string::npos) message.replace(at, 3, std::to_string(value));
  *daedal::reports = message + " at " + std::to_string(picoseconds) + " ps";
}

extern "C" daedal::Dram *daedal_create_dram(std::uint8_t *rows, std::uint64_t size) {
  return new daedal::Model(rows, size);
}
