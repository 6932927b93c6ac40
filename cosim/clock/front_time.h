// The access side: loader, levels, the event unit and row fetches. Each has entries of its own, and goes ahead of those
// behind it as far as the RTL lets it.
#pragma once
#include "address_map.h"
#include "queues_time.h"

namespace daedal::timing {

class FrontTime {
 public:
  FrontTime(const Config& config, MemoryTime& memory, Queues& queues);

  Stream<Entry> program;                         // for the loader
  Stream<Entry> walk;                            // for the levels
  Stream<Entry> events;                          // for the event unit
  std::vector<LevelShape> shapes;                // of nests to come, one after the other
  Stream<LoadLine> lines[4 * MAX_LEVELS];        // of each load: those that it has not read yet, in order
  bool over = false;                             // the trace is the whole launch's

  // A launch that was rung for at this time: its block of so many lines at this address is read, whose first words are
  // the header. No nest begins before the last time.
  void launch(Time rung, std::uint64_t block, std::uint64_t header, std::uint64_t block_lines, bool follows,
              Time not_before);
  std::size_t waiting() const { return program.size() + walk.size() + events.size(); }
  // When the last of its work was done.
  Time done() const { return std::max(event_, chunk_); }
  // Each unit does what it can; whether any did something.
  bool advance();
  // What is awaited is taken to be there.
  void force();
  void arrived(const Request& request, Time first);

 private:
  static constexpr Time EARLY = -2;
  static constexpr std::size_t NESTS = 2048;  // more than there are entries for
  static constexpr unsigned PLACES = 256;  // a power of two, beyond those that a context's lines have

  struct Load {
    std::uint64_t asked = 0, used = 0;   // lines
    std::uint64_t last_line = ~0ull;     // the program's number of the last one asked for
    std::uint64_t limit = 0;             // the line from which on none is read ahead
    std::uint64_t used_line = 0;         // the last one that was read by an iteration
    Time asks = 0;                       // when it asked last
    bool is_hinted = false;              // from where its array begins, which is not where lines are wanted first
    bool spread = false;                 // of a level that interleaves: lines of several activations
    Window<Time> there{1024};            // of those asked for; EARLY: before it was wanted, its time is in `early`
    Window<Time> early{512};             // by the program's number of a line
    std::vector<Time> used_at = std::vector<Time>(MAX_CONTEXTS * PLACES, 0);  // by context and place
    std::uint64_t used_places[MAX_CONTEXTS] = {};
  };
  struct Level {
    Time out = 0, ready = 0, prepared = 0, begins = 0;
  };

  void ask_words(Time at);
  void know_length(std::uint64_t lines);
  void begin_words(std::uint64_t address, std::uint64_t bytes, std::uint64_t lines, Time at);
  void done(Stream<Entry>& entries) {
    entries.pop();
    forced_ = false;
  }
  bool load_word();
  bool word(const Entry& entry);
  bool step_levels();
  bool step_events();
  bool nest();
  bool next_events(const Entry& entry);
  bool line(const Entry& entry);
  bool random(const Entry& entry);
  bool bundle(const Entry& entry);
  bool step(const Entry& entry);
  bool deliver(const Entry& entry);
  bool chunk(const Entry& entry);
  void overrun(unsigned unit, Time at);
  bool is_random(unsigned unit) const;
  bool ask_spread(unsigned unit, const LoadLine& line, Time at);
  void prefetch(unsigned unit, bool wanted, Time at);
  void hint(unsigned unit, Time at);
  bool comes(unsigned unit, const LoadLine& line, Time at);
  bool restart(unsigned level, Time& at);
  bool wait(Time known) { return known == UNKNOWN && !forced_; }

  const Config& config_;
  const AddressMap map_;
  MemoryTime& memory_;
  Queues& queues_;
  std::uint32_t nest_number_ = 0;  // that the levels are at
  // Nests whose words are there, whose events have begun; when the words were there and when the events were over.
  std::uint32_t loaded_ = 0, delivering_ = 0;
  Window<Time> complete_{NESTS}, over_{NESTS};
  std::size_t shape_ = 0;
  std::vector<LevelShape> nest_;
  Load loads_[4 * MAX_LEVELS];
  Level levels_[MAX_LEVELS];
  Window<Time> bundles_{2048};
  std::uint64_t bundle_ = 0, delivered_ = 0;
  Window<Time> delivered_at_{2048};
  bool deals_ = false, forced_ = false, is_serial_ = true;
  bool stepped_ = false;  // the present bundle has done a step
  std::uint64_t header_ = 0;   // words of the launch block that are not read yet
  Time words_ = 0, began_ = 0, started_ = 0, events_started_ = 0;
  // Lines that the loader has asked for and used; of those that follow each other the next one, how many it may ask for
  // before it knows the program's length, and how many there are.
  std::uint64_t word_lines_asked_ = 0, word_line_used_ = 0;
  std::uint64_t words_next_ = 0, words_left_ = 0, words_total_ = 0, words_first_ = 0;
  std::uint64_t burst_ = 1;  // lines of one
  bool follows_ = false;  // the program stands behind its launch block
  Window<Time> word_lines_{4096};
  Time event_ = 0, chunk_ = 0, chunk_port_ = 0, now_ = 0;
  static constexpr std::uint64_t STARTS = 32;
  Time chunk_starts_[STARTS] = {};
  std::uint64_t chunks_ = 0;
};

}  // namespace daedal::timing
