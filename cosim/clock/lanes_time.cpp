#include "lanes_time.h"

#include <algorithm>

namespace daedal::timing {

namespace {

constexpr Time LANE = 10, SELECT = 2;  // a lane's pipeline, and what is in front of it
constexpr Time TOKEN_TO_ISSUE = 7;
constexpr Time LEAST_QUOTIENT = 2;  // cycles of the lanes
constexpr Time LINE_TO_LANES = 3;   // from the return bus
constexpr Time TREE = 50, TREE_STEP = 18;
constexpr Time OCTET_TREE = 74;  // its beats wait for cycles in which no row has one
constexpr Time ANSWER = 6;  // more than the iterative unit takes until its answer goes through the lanes, as a row of one

}  // namespace

LanesTime::LanesTime(const Config& config, MemoryTime& memory, Queues& queues)
    : config_(config),
      memory_(memory),
      queues_(queues),
      loop_(config.preadder ? LANE : LANE / 2),
      result_(config.has_affine ? SELECT + 2 * LANE : SELECT + LANE),
      read_after_write_(result_ + 1),
      joined_(std::max<std::uint64_t>(1, config.lanes * LANE_BYTES / config.bus_bytes)),
      partials_(std::max<std::int64_t>(1, static_cast<std::int64_t>(PARTIAL_SUMS) / config.lanes)) {
  for (std::int64_t left = PARTIAL_SUMS / 2; left; left /= 2) tree_beats_ += (left + config.lanes - 1) / config.lanes;
  while (places_ < static_cast<std::uint64_t>(config_.write_batch) + 2 * MARGIN) places_ *= 2;
}

void LanesTime::launch(Time rung, Time not_before) {
  not_before_ = not_before;
  began_ = std::max({rung, lane_, began_});
  for (auto& one : registers_)
    for (auto& context : one) context = {};
  last_line_ = ~0ull;
}

bool LanesTime::advance() {
  bool did = false;
  while (!work.empty()) {
    const Executed& one = work.front();
    if (phase_ == FETCHED && !begin(one)) break;
    if (one.work == Work::STORE || one.work == Work::QUOTIENT) {
      if (one.work == Work::QUOTIENT && phase_ == POPPING) {
        const Time passes = static_cast<Time>(one.passes) * one.beats;
        lane_ = std::max(lane_, start_) + (passes ? std::max(passes, LEAST_QUOTIENT) : 0);
        phase_ = DONE;
      }
      if (!put(one)) break;
      if (!one.scalar_source) lane_ = std::max(lane_, start_ + 1);  // what follows is issued a cycle later
    } else {
      if (!pop(one)) break;
      finish(one);
    }
    phase_ = FETCHED;
    popped_[0] = popped_[1] = 0;
    work.pop();
    did = true;
    forced_ = false;
  }
  return did;
}

void LanesTime::idle(Time until) {
  queues_.stalls[TOKEN_EMPTY] += std::max<Time>(0, until - std::max(lane_, began_));
  began_ = std::max(began_, until);
}

// When an instruction can start; false if that is not known yet.
bool LanesTime::begin(const Executed& one) {
  Time at = lane_;
  if (one.starts) {
    if (queues_.tokens.taken == queues_.tokens.put) return false;
    tokens_ = queues_.tokens.in[queues_.tokens.taken];
  }
  if (one.pops_scalar && queues_.scalars.taken == queues_.scalars.put) return false;
  sends_ = std::max(sends_ + 1, tokens_ + TOKEN_TO_ISSUE);
  if (one.starts) queues_.tokens.take(sends_ - 4);
  if (sends_ > at) {
    queues_.stalls[TOKEN_EMPTY] += one.starts ? std::max<Time>(0, sends_ - std::max(at, began_)) : 0;
    at = sends_;
  }
  if (one.pops_scalar) {
    const Time there = queues_.scalars.in[queues_.scalars.taken] + 3;
    if (there > at) {
      queues_.stalls[SCALAR_EMPTY] += there - at;
      at = there;
    }
    queues_.scalars.take(at - 2);
  }
  const Time before = at;
  const Time beats = one.beats;
  const auto after = [&](const Register& source, Time cycles) {
    at = std::max({at, source.first + cycles, source.last + cycles - beats + 1});
  };
  const auto operand = [&](std::uint8_t number, bool is_scalar) {
    if (number == NO_REGISTER) return;
    if (is_scalar) at = std::max(at, scalars_[number]);
    else after(of(number, one.context), read_after_write_);
  };
  if (one.scalar_source || (one.work != Work::STORE && one.work != Work::QUOTIENT)) {
    operand(one.a, one.scalar_source);
    operand(one.b, one.scalar_factor);
  }
  if (one.work == Work::LANES) {
    if (one.c != NO_REGISTER) after(of(one.c, one.context), loop_);
    if (one.destination != NO_REGISTER) at = std::max(at, of(one.destination, one.context).stored - result_);
  }
  if (one.work == Work::SCALAR && one.c != NO_REGISTER) at = std::max(at, scalars_[one.c] - read_after_write_ + loop_);
  if (one.work == Work::ITERATIVE) at = std::max(at, iterative_);
  queues_.stalls[HAZARD] += at - before;
  start_ = at;
  phase_ = POPPING;
  return true;
}

// Takes the lines of its rows, as they come.
bool LanesTime::pop(const Executed& one) {
  Time at = std::max(start_, lane_);
  if (one.waits_for_head) {
    QueueTimes& rows = queues_.rows[0];
    if (rows.taken == rows.put || rows.in[rows.taken] == UNKNOWN) return false;
    const Time there = rows.in[rows.taken] + LINE_TO_LANES;
    if (there > at) {
      queues_.stalls[VECTOR_EMPTY] += there - at;
      start_ = at = there;
    }
  }
  if (!one.lines[0] && !one.lines[1]) {
    if (one.work != Work::NONE) lane_ = at + std::max(static_cast<Time>(one.passes) * one.beats, crowded(one));
    return true;
  }
  const std::uint64_t most = std::max(one.lines[0], one.lines[1]);
  for (std::uint64_t n = popped_[one.lines[0] ? 0 : 1]; n < most; ++n) {
    Time there = 0;
    for (unsigned queue = 0; queue < 2; ++queue) {
      if (n >= one.lines[queue]) continue;
      QueueTimes& rows = queues_.rows[queue];
      if (rows.taken == rows.put || rows.in[rows.taken] == UNKNOWN) {
        lane_ = std::max(lane_, at);
        start_ = lane_;
        return false;
      }
      there = std::max(there, rows.in[rows.taken] + LINE_TO_LANES);
    }
    if (joined_ > 1) {
      join(one, n, most, there, at);
      continue;
    }
    if (there > at) {
      queues_.stalls[VECTOR_EMPTY] += there - at;
      at = there;
    }
    if (n == 0) pass_first(one, at);
    for (unsigned queue = 0; queue < 2; ++queue)
      if (n < one.lines[queue]) {
        queues_.rows[queue].take(at);
        popped_[queue] = n + 1;
      }
    at += std::max<Time>(1, static_cast<Time>((n + 1) * one.beats / most - n * one.beats / most));
  }
  lane_ = std::max(at, start_ + crowded(one));
  return true;
}

// Its first beat is there: the bias is added, before a beat is popped.
void LanesTime::pass_first(const Executed& one, Time& at) {
  start_ = at;
  if (one.adds_bias) at += std::max(static_cast<Time>(one.beats), loop_);
}

// Cycles in which a reduction issues its beats, if these wait for each other's sums.
Time LanesTime::crowded(const Executed& one) const {
  return one.around ? loop_ * ((one.beats + one.around - 1) / one.around) : 0;
}

// A line of several that are a beat: up to two beats are joined before the lanes take them.
void LanesTime::join(const Executed& one, std::uint64_t n, std::uint64_t most, Time there, Time& at) {
  if (n % joined_ == 0) ready_ = std::max(ready_, taken_[beats_ % AHEAD]);
  ready_ = std::max(ready_ + 1, there);
  for (unsigned queue = 0; queue < 2; ++queue)
    if (n < one.lines[queue]) {
      queues_.rows[queue].take(ready_);
      popped_[queue] = n + 1;
    }
  if ((n + 1) % joined_ && n + 1 < most) return;
  if (ready_ > at) {
    queues_.stalls[VECTOR_EMPTY] += ready_ - at;
    at = ready_;
  }
  const std::uint64_t number = n / joined_, all = (most - 1) / joined_ + 1;
  if (number == 0) pass_first(one, at);
  at += std::max<Time>(1, static_cast<Time>((number + 1) * one.beats / all - number * one.beats / all));
  taken_[beats_++ % AHEAD] = at;
}

// Beats of a tree of eight partial results go between those of later rows, or cost nothing if the lanes are idle then.
void LanesTime::combine() {
  const auto done = [&](const TreeBeats& step) {
    if (step.at >= lane_) return false;
    if (step.at >= start_) lane_ += step.beats;
    return true;
  };
  tree_.erase(std::remove_if(tree_.begin(), tree_.end(), done), tree_.end());
}

void LanesTime::finish(const Executed& one) {
  if (one.work == Work::NONE) return;
  combine();
  if (one.clears && one.a != NO_REGISTER && !one.scalar_source) clear(of(one.a, one.context));
  // Beats whose sums are the same ones wait for each other; those of the tree go between them.
  const Time alone = one.work == Work::REDUCE && !one.around
                         ? std::max<Time>(0, loop_ * ((one.beats - 1) / partials_) + std::min<Time>(partials_, one.beats) - one.beats)
                         : 0;
  const Time last = lane_ - 1 + alone;
  const Time first = std::min(start_, last - one.beats + 1);
  if (one.work == Work::LANES) {
    if (one.destination != NO_REGISTER) {
      Register& written = of(one.destination, one.context);
      written.first = first;
      written.last = last;
    }
  } else {
    Time there = last + read_after_write_;
    if (one.work == Work::REDUCE) {
      there = last + (one.around ? OCTET_TREE : TREE);
      if (one.around) {
        for (Time step = 1; step <= 3; ++step)
          tree_.push_back({last + TREE_STEP * step + 4, step == 3 ? Time{1} : Time{one.around}});
      } else {
        lane_ += std::max(tree_beats_, alone + tree_beats_ / 4);  // a few meet beats of other rows
      }
    }
    if (one.work == Work::ITERATIVE) {
      const Time moved = last + one.iterations + ANSWER;
      there = moved + read_after_write_;
      iterative_ = moved + 1;
    }
    if (one.destination != NO_REGISTER) scalars_[one.destination] = there;
  }
}

// A row goes to the store unit's queue.
bool LanesTime::put(const Executed& one) {
  QueueTimes& data = queues_.data;
  const std::uint64_t beats = one.beats, stored = one.data;
  Time room = 0;
  if (data.put + stored > data.depth) {
    const std::uint64_t before = data.put + stored - data.depth - 1;
    room = data.taken > before ? data.out[before] : UNKNOWN;
  }
  if (unknown(room)) return false;
  // It goes as if it went through the lanes behind the rows before it.
  Time at = std::max(start_ + result_, port_);
  if (one.a != NO_REGISTER && one.scalar_source) {
    at = std::max(at, scalars_[one.a]);
  } else if (one.a != NO_REGISTER) {
    Register& source = of(one.a, one.context);
    if (one.work == Work::QUOTIENT && one.passes) {
      const Time passes = static_cast<Time>(beats) * one.passes;
      at = std::max({at, source.last + read_after_write_ + passes + result_ - static_cast<Time>(beats), lane_ + result_ - static_cast<Time>(beats)});
    }
    source.stored = at;
    if (one.clears) clear(source);
  }
  if (room > at) {
    queues_.stalls[STORE_FULL] += room - at;
    at = room;
  }
  for (std::uint64_t n = 0; n < stored; ++n) data.add(at + static_cast<Time>((n + 1) * beats / stored) + 1);
  port_ = at + static_cast<Time>(beats);
  return true;
}

}  // namespace daedal::timing
