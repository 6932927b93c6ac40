// The floating-point mode of what we compute, which the caller's thread has for itself: rounding, flushing, traps.
#pragma once
#include <cfenv>

namespace daedal {

// Computes to nearest, with subnormal numbers and without traps, as long as it lives; then all is as the caller had it.
class DefaultFloatMode {
 public:
  DefaultFloatMode() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);  // also flushing to zero, on every processor that can
  }
  ~DefaultFloatMode() { std::fesetenv(&callers_); }
  DefaultFloatMode(const DefaultFloatMode &) = delete;
  DefaultFloatMode &operator=(const DefaultFloatMode &) = delete;

 private:
  std::fenv_t callers_;
};

}  // namespace daedal
