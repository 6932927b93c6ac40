// Deals bundles that come activation by activation to contexts (docs/machine/machine.md).
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace daedal {

template <class Bundle>
class BundleDealer {
 public:
  // Begins anew, for a machine with so many contexts and places for bundles, a power of two.
  void start(unsigned contexts, unsigned places) {
    following_.assign(contexts, NONE);
    free_.clear();
    for (unsigned context = 0; context < contexts; ++context) free_.push_back(context);
    held_.assign(places, Bundle{});
    state_.assign(places, GONE);
    firsts_.clear();
    came_ = window_ = gone_ = 0;
    turn_ = 0;
    inside_ = false;
  }
  // Whether another bundle may come.
  bool has_room() const { return came_ < window_ + held_.size() - block(); }
  bool empty() const { return came_ == gone_; }
  void put(const Bundle& bundle, bool begins, bool ends) {
    if (begins || !inside_) firsts_.push_back(came_);
    const bool last = ends || !(begins || inside_);
    inside_ = (begins || inside_) && !ends;
    held_[came_ & (held_.size() - 1)] = bundle;
    state_[came_ & (held_.size() - 1)] = last ? LAST : HELD;
    ++came_;
  }
  // The next bundle, if it is known: `over` says that no other one comes.
  bool take(bool over, Bundle& bundle) {
    while (!empty()) {
      for (; !firsts_.empty() && !free_.empty(); free_.pop_front(), firsts_.pop_front())
        following_[free_.front()] = firsts_.front();
      std::uint64_t& number = following_[turn_];
      if (number < came_) {
        hand_out(number, bundle);
        turn_ = (turn_ + 1) % following_.size();
        return true;
      }
      if (!over && has_room()) return false;
      turn_ = (turn_ + 1) % following_.size();
    }
    return false;
  }

 private:
  static constexpr unsigned BLOCKS = 8;
  static constexpr std::uint64_t NONE = ~0ull;
  enum State : unsigned char { GONE, HELD, LAST };

  std::size_t block() const { return held_.size() / BLOCKS; }

  void hand_out(std::uint64_t& number, Bundle& bundle) {
    const std::size_t place = number & (held_.size() - 1);
    bundle = held_[place];
    bundle.context = turn_;
    const bool last = state_[place] == LAST;
    state_[place] = GONE;
    ++gone_;
    ++number;
    if (last) {
      number = NONE;
      free_.push_back(turn_);
    }
    for (; came_ >= window_ + block(); window_ += block()) {
      const auto first = state_.begin() + static_cast<std::ptrdiff_t>(window_ & (held_.size() - 1));
      const auto end = first + static_cast<std::ptrdiff_t>(block());
      if (std::any_of(first, end, [](State state) { return state != GONE; })) break;
    }
  }

  std::vector<std::uint64_t> following_;  // by context, the number of its next bundle
  std::deque<unsigned> free_;             // contexts, in the order in which they became free
  std::vector<Bundle> held_;              // bundles, by the low bits of their numbers
  std::vector<State> state_;
  std::deque<std::uint64_t> firsts_;  // of activations without a context
  std::uint64_t came_ = 0, window_ = 0, gone_ = 0;
  unsigned turn_ = 0;
  bool inside_ = false;
};

}  // namespace daedal
