// Between one bus that reads for several ports and a memory that answers each of them: a controller with a queue of
// addresses for each identifier, whose beats come in any order between these.
#pragma once

#include <cstring>
#include <deque>
#include <vector>

#include "bus_rules.h"
#include "errors.h"
#include "memory/random.h"
#include "pins.h"

namespace daedal {

class JoinedBus {
 public:
  // Beats of which port come next is random, or in turn without a seed. Writes are not its business.
  JoinedBus(const JoinedPins &bus, unsigned ports, Errors &errors, std::uint32_t seed)
      : bus_(bus), errors_(errors), random_(seed), is_random_(seed != 0), ports_(ports) {}

  // What memory sees of the ports.
  std::vector<ReadPins> pins() {
    std::vector<ReadPins> found;
    for (Port &port : ports_)
      found.push_back({&port.arvalid, &port.arready, &port.araddr, &port.arlen, &port.arsize, &port.arburst, &port.rvalid,
                       &port.rready, &port.rlast, &port.rresp, port.rdata});
    return found;
  }

  // After memory has driven the ports: the inputs of the bus for this cycle.
  void drive() {
    bool room = true;
    for (const Port &port : ports_) room = room && port.addresses.size() < ADDRESSES;
    *bus_.read.arready = room;
    if (!offered_) choose();
    *bus_.read.rvalid = offered_;
    if (!offered_) return;
    const Port &port = ports_[turn_];
    *bus_.rid = CData(turn_);
    *bus_.read.rlast = port.rlast;
    *bus_.read.rresp = port.rresp;
    std::memcpy(bus_.read.rdata, port.rdata, BUS_BYTES);
  }

  // Before memory takes the handshakes of this cycle: what the ports say.
  void before_sample() {
    for (unsigned number = 0; number < ports_.size(); ++number) {
      Port &port = ports_[number];
      port.arvalid = !port.addresses.empty();
      if (port.arvalid) {
        port.araddr = port.addresses.front().address;
        port.arlen = CData(port.addresses.front().length);
      }
      port.arsize = *bus_.read.arsize;
      port.arburst = *bus_.read.arburst;
      port.rready = offered_ && number == turn_ && *bus_.read.rready;
    }
  }

  // After that.
  void after_sample(std::uint64_t cycle) {
    for (Port &port : ports_)
      if (port.arvalid && port.arready) port.addresses.pop_front();
    if (offered_ && *bus_.read.rready) {
      offered_ = false;
      turn_ = turn_ + 1 == ports_.size() ? 0 : turn_ + 1;
    }
    const ReadPins &read = bus_.read;
    check_held(errors_, "AR", held_, *read.arvalid, *read.arready, *read.araddr, *read.arlen, cycle);
    if (!*read.arvalid || !*read.arready) return;
    if (*bus_.arid < ports_.size())
      ports_[*bus_.arid].addresses.push_back({*read.araddr, *read.arlen});
    else
      errors_.report(cycle, "AR has identifier %u of %zu", unsigned(*bus_.arid), ports_.size());
  }

 private:
  static constexpr unsigned ADDRESSES = 16;  // that a controller takes of one identifier before it is asked to wait
  struct Address {
    AddressPin address;
    unsigned length;
  };
  struct Port {
    CData arvalid = 0, arready = 0, arlen = 0, arsize = 0, arburst = 0, rvalid = 0, rready = 0, rlast = 0, rresp = 0;
    AddressPin araddr = 0;
    alignas(8) unsigned char rdata[BUS_BYTES] = {};
    std::deque<Address> addresses;
  };

  // The port whose beat is offered next.
  void choose() {
    if (is_random_) turn_ = random_.next() % ports_.size();
    for (unsigned asked = 0; asked < ports_.size(); ++asked) {
      unsigned number = unsigned((turn_ + asked) % ports_.size());
      if (!ports_[number].rvalid) continue;
      turn_ = number;
      offered_ = true;
      return;
    }
  }

  JoinedPins bus_;
  Errors &errors_;
  Random random_;
  bool is_random_;
  std::vector<Port> ports_;
  Held held_;
  unsigned turn_ = 0;     // the port whose beat is on the bus, or that is asked first
  bool offered_ = false;  // a beat is on R and not taken
};

}  // namespace daedal
