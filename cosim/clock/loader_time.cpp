// The loader: lines of launch blocks and programs, and when their words are there.
#include <algorithm>

#include "front_time.h"

namespace daedal::timing {

namespace {

constexpr Time DOORBELL = 4;         // from the doorbell to the loader's first request
// hw/control/loader.py, hw/control/word_reader.py
constexpr std::uint64_t LOADER_BURSTS = 4, SPECULATIVE_BURSTS = 2, BLOCK_REGION = 1024;

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
  while (words_left_ && word_lines_asked_ - word_line_used_ <= (LOADER_BURSTS - 2) * burst_) {
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
  ask_words(words_);
}

bool FrontTime::word(const Entry& entry) {
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
    if (!follows_) {  // a program that stands by itself
      const auto bus = static_cast<std::uint64_t>(config_.bus_bytes);
      begin_words(entry.address, SPECULATIVE_BURSTS * burst_ * bus, 0, words_);
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
  ++words_;
  return true;
}

}  // namespace daedal::timing
