// The first thing that went wrong on a bus; the simulation stops at it.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

namespace daedal {

class Errors {
 public:
  bool any() const { return !text_.empty(); }
  const char *text() const { return text_.c_str(); }

  // Keeps the first message only: later ones follow from it.
  __attribute__((format(printf, 3, 4))) void report(std::uint64_t cycle, const char *format, ...) {
    if (any()) return;
    char body[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    text_ = "cycle " + std::to_string(cycle) + ": " + body;
  }

 private:
  std::string text_;
};

}  // namespace daedal
