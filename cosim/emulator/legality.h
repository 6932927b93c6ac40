// Whether the machine has an instruction: what the table of operations says of it, and the configuration.
#pragma once
#include "encodings.h"

namespace daedal {

// Whether rows can have elements of this type.
inline bool has_kind(const Config& config, std::uint64_t kind) {
  if (kind == LengthField::ELEMENTS) return true;
  if (kind == LengthField::BINARY16) return config.binary16;
  if (kind >= LengthField::FLOAT8_E4) return kind < LengthField::limit && config.quantised && config.binary16;
  return kind <= LengthField::BFLOAT16_AWAY ? config.bfloat16 : config.quantised;
}

// Whether rows of a vector queue are of the type of the length that they are popped with.
inline bool is_converted(std::uint64_t queue) {
  for (const std::uint64_t one : CONVERTED)
    if (one == queue) return true;
  return false;
}

inline bool converts(const Config& config) { return config.binary16 || config.bfloat16; }

// Whether the operation has this mode, with these registers and operands.
inline bool has_mode(const Config& config, const Instruction& code) {
  const Operation& operation = OPERATIONS[code.op];
  if (code.mode >= Mode::limit || !operation.may_have[code.mode]) return false;
  const std::uint64_t registers = config.vector_registers, scalars = config.scalars;
  const bool a_register = code.a_kind == OperandKind::REGISTER;
  const auto is_c = [&](std::uint64_t kind, std::uint64_t number) {
    return kind == OperandKind::REGISTER && number == code.c;
  };
  switch (code.mode) {
    case Mode::VECTOR:
      return code.destination < registers && code.c < registers && (a_register || !operation.register_a) &&
             !code.indexed;
    case Mode::SCALAR:
      return code.destination < scalars && code.c < scalars &&
             (!operation.register_a || code.a_kind == OperandKind::SCALAR_REGISTER) && (!code.indexed || a_register);
    default:
      return code.destination < scalars && code.c < registers && !code.indexed && !is_c(code.a_kind, code.a_number) &&
             !(operation.uses_b && is_c(code.b_kind, code.b_number));
  }
}

// Whether an instruction with these members is one of this configuration.
inline bool is_legal(const Config& config, const Instruction& code) {
  const std::uint64_t registers = config.vector_registers, scalars = config.scalars;
  const auto operand = [&](std::uint64_t kind, std::uint64_t number) {
    if (kind == OperandKind::REGISTER) return number < registers;
    if (kind == OperandKind::QUEUE) return number < FetchQueue::STORE;
    return kind == OperandKind::SCALAR || number < scalars;
  };
  const bool kept = code.a_kind == OperandKind::QUEUE && config.kept_beats && code.a_number >= KEPT;
  const bool keeps = code.a_kind == OperandKind::QUEUE && config.kept_beats && code.a_number >= KEEP &&
                     code.a_number < KEEP + FetchQueue::STORE;
  const bool head = code.a_kind == OperandKind::QUEUE && config.quantised && code.mode != Mode::REDUCE &&
                    code.a_number >= HEAD && is_converted(code.a_number - HEAD);
  const bool one_number = code.b_kind == OperandKind::SCALAR || code.b_kind == OperandKind::SCALAR_REGISTER;
  const bool b_absent = code.b_kind == OperandKind::REGISTER && code.b_number == 0;
  const bool same_pop = code.a_kind == code.b_kind && (code.a_kind == OperandKind::SCALAR ||
                                                       (code.a_kind == OperandKind::QUEUE && !kept &&
                                                        code.a_number % KEEP == code.b_number % KEEP));
  const Operation& operation = OPERATIONS[code.op];
  // An operation on a row with its head.
  if (operation.takes_head && !(config.has_affine && code.a_kind == OperandKind::QUEUE && is_converted(code.a_number) &&
                                (one_number || b_absent)))
    return false;
  const bool takes_b = operation.uses_b || (operation.b_replaces_c && code.mode != Mode::REDUCE);
  return operation.known && (!operation.rounds || converts(config)) && (!code.octets || (code.mode == Mode::REDUCE && config.octets)) &&
         (kept || keeps || head || operand(code.a_kind, code.a_number)) &&
         operand(code.b_kind, code.b_number) && !same_pop && (takes_b || b_absent) &&
         code.length < static_cast<std::uint64_t>(config.lengths) &&
         (code.indexed ? code.element < scalars : code.element == 0) && has_mode(config, code);
}

}  // namespace daedal
