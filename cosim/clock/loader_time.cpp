// The loader: lines of launch blocks and programs, and when their words are there.
#include <algorithm>

#include "front_time.h"

namespace daedal::timing {

namespace {

constexpr Time DOORBELL = 4;         // from the doorbell to the loader's first request
constexpr Time IDLE = 3;             // from a launch block's last line to a program's first request
constexpr Time KNOWN = 6;            // from a program's length until no more than its lines are asked for
// hw/control/loader.py, hw/control/word_reader.py
// hw/access_unit/nest_queue.py: words that can wait for a unit, how many that come before the loader hears that there is
// no room, and cycles until it hears that there is.
constexpr std::uint64_t NEST_WORDS = 56, ON_THE_WAY = 3;
constexpr Time HEARS = 2;
constexpr std::uint32_t NESTS_AHEAD = 2;  // levels may be one nest ahead of the event unit
constexpr std::uint64_t LOADER_BURSTS = 4, SPECULATIVE_BURSTS = 2, BLOCK_REGION = 1024;
constexpr std::uint64_t LINES_OUT = 3;  // that have left a burst's buffer when a word of the first one is used

}  // namespace

void FrontTime::launch(Time rung, std::uint64_t block, std::uint64_t header, std::uint64_t block_lines, bool follows,
                       Time not_before) {
  header_ = header;
  words_ = std::max(rung + DOORBELL, words_);
  began_ = not_before;
  follows_ = follows;
  begin_words(block, BLOCK_REGION, block_lines, words_);
}

// The loader reads from here on: lines to the next multiple of so many bytes, until it knows how many there are.
void FrontTime::begin_words(std::uint64_t address, std::uint64_t bytes, std::uint64_t lines, Time at) {
  const auto bus = static_cast<std::uint64_t>(config_.bus_bytes);
  const std::uint64_t region = std::max(bytes / bus, burst_);
  word_line_used_ = words_first_ = word_lines_asked_;
  words_next_ = address;
  words_left_ = region - address / bus % region;
  words_total_ = lines;
  ask_words(at);
}

// Bursts go out as long as one of the loader's buffers is free.
void FrontTime::ask_words(Time at) {
  const auto bus = static_cast<std::uint64_t>(config_.bus_bytes);
  while (words_left_ && word_lines_asked_ - word_line_used_ <= (LOADER_BURSTS - 2) * burst_ + LINES_OUT) {
    const std::uint64_t room = burst_ - words_next_ / bus % burst_;
    const auto lines = static_cast<std::uint32_t>(std::min(room, words_left_));
    for (std::uint32_t k = 0; k < lines; ++k) word_lines_[word_lines_asked_ + k] = UNKNOWN;
    memory_.ask(at++, words_next_, lines, LOADER, word_lines_asked_);
    word_lines_asked_ += lines;
    words_next_ += lines * bus;
    words_left_ -= lines;
  }
}

// The program, or its launch block with it, has so many lines.
void FrontTime::know_length(std::uint64_t lines) {
  const std::uint64_t asked = word_lines_asked_ - words_first_;
  words_left_ = lines > asked ? lines - asked : 0;
  ask_words(words_ + KNOWN);
}

void FrontTime::put(NestQueue& queue, bool runs, Time at) {
  queue.came[queue.put] = at;
  queue.runs[queue.put++] = runs;
}

// All units get a mark: that a nest is complete, or that another one begins.
void FrontTime::mark(bool runs, Time at) {
  for (std::int64_t n = 0; n < config_.levels; ++n) put(levels_[n].words, runs, at);
  put(event_words_, runs, at);
}

// A unit takes words up to its next nest's end, which waits until the events of the nest before the last are over.
void FrontTime::hand_out(NestQueue& queue) {
  while (queue.gone < queue.put && queue.began == UNKNOWN) {
    Time at = std::max(queue.next, queue.came[queue.gone]);
    if (queue.runs[queue.gone]) {
      if (queue.nests >= NESTS_AHEAD) {
        const std::uint32_t before = queue.nests + 1 - NESTS_AHEAD;
        if (before > through_) return;
        at = std::max(at, over_[before]);
      }
      ++queue.nests;
      queue.began = at;
    }
    queue.left[queue.gone++] = at;
    queue.next = at + 1;
  }
}

// From when on all units have room for another word; UNKNOWN until they have taken more.
Time FrontTime::room_for_word() {
  Time room = 0;
  for (std::int64_t n = 0; n <= config_.levels; ++n) {
    NestQueue& queue = n < config_.levels ? levels_[n].words : event_words_;
    if (queue.put < NEST_WORDS) continue;
    hand_out(queue);
    std::uint64_t seen = queue.put;  // without those on their way
    while (seen + ON_THE_WAY > queue.put && queue.came[seen - 1] + static_cast<Time>(ON_THE_WAY) > words_) --seen;
    if (seen < NEST_WORDS) continue;
    const std::uint64_t last = seen - NEST_WORDS, next = queue.put - NEST_WORDS;
    if (queue.gone > last && queue.left[last] <= words_) continue;
    if (queue.gone <= next) return UNKNOWN;
    room = std::max(room, queue.left[next] + HEARS);
  }
  return room;
}

bool FrontTime::word(const Entry& entry) {
  const Time room = room_for_word();
  if (wait(room)) return false;
  const auto line_words = static_cast<std::uint64_t>(config_.bus_bytes) / WORD_BYTES;
  while (header_) {  // the launch block's words
    const Time there = word_lines_[word_line_used_];
    if (wait(there)) return false;
    const std::uint64_t words = std::min(header_, line_words);
    words_ = std::max(words_, there) + static_cast<Time>(words);
    header_ -= words;
    if (word_line_used_ == words_first_) {  // its first words say how long it is
      know_length(words_total_);
    }
    if (words == line_words || !header_) ++word_line_used_;
    ask_words(words_);
  }
  if (entry.size) {  // a new line
    if (!follows_) {  // a program that stands by itself: all lines of its block have come before
      const auto bus = static_cast<std::uint64_t>(config_.bus_bytes);
      const Time come = word_lines_[word_lines_asked_ - 1];
      if (wait(come)) return false;
      begin_words(entry.address, SPECULATIVE_BURSTS * burst_ * bus, 0, std::max(words_, come + IDLE));
      follows_ = true;
    }
    if (word_line_used_ == word_lines_asked_) {
      words_left_ = burst_;
      ask_words(words_);
    }
    const Time there = word_lines_[word_line_used_];
    if (wait(there)) return false;
    words_ = std::max(words_, there);
    ++word_line_used_;
    ask_words(words_);
  }
  words_ = std::max(words_, room) + 1;
  if (entry.flags) mark(false, words_);
  for (std::int64_t n = 0; n <= config_.levels; ++n)
    if (entry.level >> n & 1) put(n < config_.levels ? levels_[n].words : event_words_, false, words_);
  return true;
}

}  // namespace daedal::timing
