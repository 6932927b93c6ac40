// The execute unit: callbacks of temporal-vector instructions on rows of binary32 elements.
#pragma once
#include <deque>

#include "store_unit.h"

namespace daedal {

class ExecuteUnit {
 public:
  ExecuteUnit(Core& core, StoreUnit& store);

  // Before a launch: no callbacks, lengths or instructions; all vector registers empty.
  void clear();
  // A word of unit LENGTH, CALLBACK or INSTRUCTION, its argument added.
  void configure(const ProgramWord& word);
  // Goes on until a token, row or scalar is missing; false after a fault.
  bool run();
  // The queue that a callback waits for; NONE between callbacks.
  std::uint64_t starving() const { return active_ ? missing_ : Queue::NONE; }

 private:
  struct Code {
    Instruction bits;
    bool legal = false;
    bool scalar = false;  // pops the scalar queue
    bool adds_b = false;  // b instead of c
    bool keeps = false;   // the row that it pops
    bool kept = false;    // it uses one that was kept
    bool head = false;    // it takes a number off the row in front
    bool plain = false;   // it takes a row with its head, and no weight
  };
  struct Register {
    std::vector<float> elements;
    bool empty[MAX_CONTEXTS];
  };
  struct Scalar {
    std::uint32_t bits = 0;
    bool empty = true;
  };

  // The elements of a register that belong to the token's context.
  float* elements(Register& one) const { return one.elements.data() + context_ * share_; }
  // The instruction with the registers' own numbers instead of their names.
  Instruction renamed(Instruction code) const;
  std::uint64_t own_number(std::uint64_t name) const;
  std::uint64_t own_scalar(std::uint64_t name) const;
  bool start();
  bool step();
  bool execute(const Code& code, const Instruction& bits, std::uint64_t elements);
  bool available(const Code& code, std::uint64_t elements);
  // The row in front; `headed`: with its head, which is then in `head_`.
  bool pop_row(const Operand& operand, std::uint64_t elements, const float** data, bool headed = false);
  // The next number of the head of the row in front of a queue, for all elements.
  bool pop_head(std::uint64_t queue, std::uint64_t elements, const float** data);
  // The oldest row that is kept.
  bool drop_row(std::uint64_t elements, const float** data);
  // Whether there is room to keep a row of so many elements; else a fault.
  bool fits(std::uint64_t elements);
  bool operand(const Operand& operand, std::uint64_t elements, float scalar, std::vector<float>& room,
               const float** data);
  // Element of vector register a that the index names; false, with a fault, if there is none.
  bool element(const Instruction& code, const float** data);
  // Offers a row to the store unit, rounded to the length's type.
  void store(const float* row, std::uint64_t elements);
  void compute(const Code& whole, const Instruction& code, std::uint64_t elements, const float* a, const float* b,
               std::uint64_t scalar);
  // One of the operations that rows have, from MOVE to EQUAL, element by element; d may be one of the sources.
  void operate(std::uint64_t op, std::uint64_t n, float* d, const float* a, const float* b, const float* c,
               std::uint64_t scalar);
  std::uint64_t beats(std::uint64_t elements) const;
  float reduce(const Instruction& code, std::uint64_t n, const float* a, const float* b);
  void clear_source(const Instruction& code);
  void tell(const Code& code, const Instruction& bits, std::uint64_t elements);

  Core& core_;
  StoreUnit& store_;
  std::vector<std::uint64_t> lengths_, callbacks_;  // 0 and ~0: not there
  std::vector<std::uint64_t> kinds_;                 // of the elements of rows with these lengths
  std::uint64_t kind_ = LengthField::ELEMENTS;       // of those that the instruction pops or stores
  std::vector<float> widened_[FetchQueue::limit];    // by queue
  std::vector<std::uint16_t> narrowed_;
  std::uint64_t heads_[FetchQueue::limit] = {};      // numbers taken off the row in front, by queue
  std::uint64_t numbers_ = 0;                        // taken off the row that the last instruction popped
  float head_[HEAD_WORDS] = {};                      // of the row popped last that was taken with its head
  std::vector<Code> code_;
  std::vector<Register> registers_;
  std::vector<Scalar> scalars_;
  std::deque<std::vector<float>> kept_;
  std::vector<float> dropped_;
  std::uint64_t kept_beats_ = 0;
  std::uint64_t scalar_turns_ = 0;    // the same of the scalar registers
  std::vector<std::uint64_t> turns_;  // of each context: how often its registers have rotated
  std::vector<float> zeros_, broadcast_, other_broadcast_, quotient_;
  std::vector<std::uint8_t> scratch_[FetchQueue::limit];  // rows that do not lie together, by queue
  bool active_ = false;
  bool starts_ = false;       // the next instruction is the first of its callback
  std::uint64_t count_ = 0;   // the scalar popped last, as a count
  std::uint64_t context_ = 0, share_;  // of the token; elements of a register for each context
  std::uint64_t position_ = 0, missing_ = Queue::NONE;
};

}  // namespace daedal
