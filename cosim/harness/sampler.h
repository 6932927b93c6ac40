// Notes where the processor is, as long as it works: what the simulation's own time goes to.
#pragma once

#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace daedal {

// There is one in a library, for the timer is the process's. Samples beyond `most` are lost.
class Sampler {
 public:
  static constexpr std::size_t most = 1 << 20;
  static constexpr suseconds_t microseconds = 1000;

  // False if one is at work already, or on a processor of which it is not known where it keeps its place.
  static bool start() {
#if defined(__x86_64__) || defined(__aarch64__)
    if (running_.exchange(true)) return false;
    count_ = 0;
    struct sigaction action {};
    action.sa_sigaction = take;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, &before_);
    set_timer(microseconds);
    return true;
#else
    return false;
#endif
  }

  // Ends it; the number of samples.
  static std::size_t stop() {
    if (!running_) return 0;
    set_timer(0);
    sigaction(SIGPROF, &before_, nullptr);
    running_ = false;
    return count_ < most ? count_.load() : most;
  }

  static const std::uint64_t *samples() { return places_.data(); }

 private:
  static void set_timer(suseconds_t interval) {
    const itimerval every{{0, interval}, {0, interval}};
    setitimer(ITIMER_PROF, &every, nullptr);
  }

  static void take(int, siginfo_t *, void *context) {
    const std::size_t at = count_.fetch_add(1);
    if (at >= most) return;
    const auto &machine = static_cast<ucontext_t *>(context)->uc_mcontext;
#if defined(__x86_64__)
    places_[at] = static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
    places_[at] = machine.pc;
#else
    (void)machine;
#endif
  }

  static inline std::array<std::uint64_t, most> places_;
  static inline std::atomic<std::size_t> count_{0};
  static inline std::atomic<bool> running_{false};
  static inline struct sigaction before_ {};
};

}  // namespace daedal
