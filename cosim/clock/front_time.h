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
  Stream<Entry> walk[MAX_LEVELS];                // for each level
  Stream<Entry> events;                          // for the event unit
  Stream<LevelShape> shapes[MAX_LEVELS];         // of nests to come
  Stream<LoadLine> lines[4 * MAX_LEVELS];        // of each load: those that it has not read yet, in order
  bool over = false;                             // the trace is the whole launch's
  std::uint32_t nests = 0;                       // that it has, the last one in part

  // A launch that was rung for at this time: its block of so many lines at this address is read, whose first words are
  // the header. No nest begins before the last time.
  void launch(Time rung, std::uint64_t block, std::uint64_t header, std::uint64_t block_lines, bool follows,
              Time not_before);
  std::size_t waiting() const {
    std::size_t entries = program.size() + events.size();
    for (std::int64_t n = 0; n < config_.levels; ++n) entries += walk[n].size();
    return entries;
  }
  // When the last of its work was done.
  Time done() const { return std::max(event_, chunk_); }
  // Each unit does what it can; whether any did something.
  bool advance();
  // What is awaited is taken to be there.
  void force();
  void arrived(const Request& request, Time first);
  // Another activation of a level whose activations run in turn, which reads these lines; its number.
  std::uint64_t begin_turns(unsigned unit);
  void end_turns(unsigned unit, std::uint64_t number) {
    Turns& one = loads_[unit].turns.ahead(number - loads_[unit].turn);
    one.is_over = true;
    if (one.used == one.lines.size()) ++loads_[unit].ended;
  }
  void turn_line(unsigned unit, std::uint64_t number, std::uint64_t address) {
    loads_[unit].turns.ahead(number - loads_[unit].turn).lines.push_back({address, 0});
  }

 private:
  static constexpr Time EARLY = -2;
  static constexpr std::size_t NESTS = 2048;  // more than there are entries for

  // The lines of an activation that runs in turn with others.
  struct Turns {
    struct Line {
      std::uint64_t address, number;  // number: of the load's lines, in the order in which they are asked for
    };
    std::vector<Line> lines;
    std::uint32_t asked = 0, used = 0;
    Time asks = 0;         // when it asked last
    bool is_over = false;  // it reads no more
  };

  struct Load {
    std::uint64_t asked = 0, used = 0;   // lines
    std::uint64_t last_line = ~0ull;     // the program's number of the last one asked for
    std::uint64_t limit = 0;             // the line from which on none is read ahead
    std::uint64_t used_line = 0;         // the last one that was read by an iteration
    Time asks = 0;                       // when it asked last
    bool is_hinted = false;              // from where its array begins, which is not where lines are wanted first
    bool spread = false;                 // of a level whose activations run in turn
    Window<Time> there{1024};            // of those asked for; EARLY: before it was wanted, its time is in `early`
    Window<Time> early{512};             // by the program's number of a line
    // Activations that run in turn, from number `turn` on; how many have had lines asked for, all that they have places for,
    // have had their first line, and are over.
    Stream<Turns> turns;
    std::uint64_t turn = 0, entered = 0, placed = 0, started = 0, ended = 0;
    bool from_parent = false;
  };
  // Words of the nests to come that wait for one unit (hw/access_unit/nest_queue.py), with marks between them.
  struct NestQueue {
    Window<Time> came{256}, left{256};
    Window<std::uint8_t> runs{256};  // whether it is the mark that a nest is complete
    std::uint64_t put = 0, gone = 0;
    std::uint32_t nests = 0;         // handed out whole
    Time next = 0;                   // from when on the unit takes the next one
    Time began = UNKNOWN;            // when the unit's nest was handed out whole; UNKNOWN while it waits for one
  };
  struct Level {
    NestQueue words;
    LevelShape shape;
    std::uint32_t nest = 0, through = 0;  // that it is at, and with which it is through
    Time out = 0, ready = 0, prepared = 0, begins = 0, ended = 0;
    bool activated = false;               // the bundle that comes next begins an activation, which is prepared
    Stream<Time> outs;                    // bundles for the next level
    std::uint64_t put = 0, took = 0;      // such bundles, and those that it took
    Window<Time> taken{64};               // when

  };

  void ask_words(Time at);
  void know_length(std::uint64_t lines);
  void begin_words(std::uint64_t address, std::uint64_t bytes, std::uint64_t lines, Time at);
  void done(Stream<Entry>& entries) {
    entries.pop();
    forced_ = false;
  }
  bool load_word();
  void mark(bool runs, Time at);
  void put(NestQueue& queue, bool runs, Time at);
  void hand_out(NestQueue& queue);
  Time room_for_word();
  bool word(const Entry& entry);
  bool step_level(unsigned number);
  bool step_events();
  bool nest(unsigned number);
  bool activate(unsigned number, unsigned flags, unsigned parent);
  bool is_through(unsigned number);
  std::uint64_t room_for(unsigned number) const;
  bool next_events();
  bool line(const Entry& entry);
  bool random(const Entry& entry);
  bool bundle(unsigned number, const Entry& entry);
  bool step(const Entry& entry);
  bool deliver(const Entry& entry);
  bool chunk(const Entry& entry);
  void overrun(unsigned unit, Time at);
  bool is_random(unsigned unit) const;
  void ask_load(Time at, std::uint64_t address, std::uint32_t lines, std::uint32_t reader, std::uint64_t number);
  bool turn_line(unsigned unit, const Entry& entry);
  std::uint64_t turn_places() const;
  void enter(unsigned unit, unsigned parent, bool from_parent, Time at);
  void ask_turns(unsigned unit, Turns& turns, std::uint64_t most, Time at);
  void prefetch(unsigned unit, bool wanted, Time at);
  void hint(unsigned unit, Time at);
  bool comes(unsigned unit, const LoadLine& line, Time at);
  bool restart(unsigned level, Time& at);
  bool wait(Time known) { return known == UNKNOWN && !forced_; }

  const Config& config_;
  const AddressMap map_;
  MemoryTime& memory_;
  Queues& queues_;
  // Nests whose events have begun, and are over; when they were.
  std::uint32_t delivering_ = 0, through_ = 0;
  Window<Time> over_{NESTS};
  NestQueue event_words_;
  Load loads_[4 * MAX_LEVELS];
  Level levels_[MAX_LEVELS];
  Window<Time> bundles_{2048};
  std::uint64_t bundle_ = 0, delivered_ = 0;
  Window<Time> delivered_at_{2048};
  bool forced_ = false, is_serial_ = true;
  bool stepped_ = false;  // the present bundle has done a step
  std::uint64_t header_ = 0;   // words of the launch block that are not read yet
  Time words_ = 0, began_ = 0, events_started_ = 0;
  // Lines that the loader has asked for and used; of those that follow each other the next one, how many it may ask for
  // before it knows the program's length, and how many there are.
  std::uint64_t word_lines_asked_ = 0, word_line_used_ = 0;
  std::uint64_t words_next_ = 0, words_left_ = 0, words_total_ = 0, words_first_ = 0;
  std::uint64_t burst_ = 1;  // lines of one
  bool follows_ = false;  // the program stands behind its launch block
  Window<Time> word_lines_{4096};
  Stream<Time> load_asks_;  // of requests that rows have not given way to yet
  Time event_ = 0, way_ = 0, chunk_ = 0, chunk_port_ = 0, now_ = 0;
  static constexpr std::uint64_t STARTS = 32;
  Time chunk_starts_[STARTS] = {};
  std::uint64_t chunks_ = 0;
};

}  // namespace daedal::timing
