// The model's ports as pointers, so that nothing but bind_pins() depends on the number of memory ports.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "Vmodel.h"
#include "ports.h"

namespace daedal {

// The type of an address, which Verilator chooses by its width.
using AddressPin = std::remove_reference_t<decltype((std::declval<Vmodel &>().write___05Fawaddr))>;

// Channels AR and R of one memory port.
struct ReadPins {
  CData *arvalid, *arready;
  AddressPin *araddr;
  CData *arlen, *arsize, *arburst, *rvalid, *rready, *rlast, *rresp;
  void *rdata;
};

// Channels AW, W and B of the write port.
struct WritePins {
  CData *awvalid, *awready;
  AddressPin *awaddr;
  CData *awlen, *awsize, *awburst, *wvalid, *wready, *wlast;
  const void *wdata, *wstrb;
  CData *bvalid, *bready, *bresp;
};

// The AXI4-Lite slave.
struct LitePins {
  CData *awvalid, *awready;
  CData *awaddr;
  CData *wvalid, *wready;
  IData *wdata;
  CData *wstrb, *bvalid, *bready;
  CData *arvalid, *arready, *araddr, *rvalid, *rready;
  IData *rdata;
};

struct Pins {
  std::vector<ReadPins> read;
  WritePins write;
  LitePins lite;
  CData *interrupt;
};

// Names every port of the model once. Verilator writes the two underscores of `read0__arvalid` as `___05F`.
// `interrupt` is a word of some C compilers, so it gets a prefix. Inputs are those of registers, see latched_inputs.py.
inline Pins bind_pins(Vmodel &model) {
  Pins pins;
#define DAEDAL_OUT(port, signal) &model.port##___05F##signal
#define DAEDAL_IN(port, signal) &model.port##___05F##signal##_pin
#define DAEDAL_BIND_READ(n)                                                                       \
  pins.read.push_back({                                                                           \
      DAEDAL_OUT(read##n, arvalid), DAEDAL_IN(read##n, arready), DAEDAL_OUT(read##n, araddr),     \
      DAEDAL_OUT(read##n, arlen), DAEDAL_OUT(read##n, arsize), DAEDAL_OUT(read##n, arburst),      \
      DAEDAL_IN(read##n, rvalid), DAEDAL_OUT(read##n, rready), DAEDAL_IN(read##n, rlast),         \
      DAEDAL_IN(read##n, rresp), DAEDAL_IN(read##n, rdata)});
  DAEDAL_READ_PORTS(DAEDAL_BIND_READ)
  pins.write = {
      DAEDAL_OUT(write, awvalid), DAEDAL_IN(write, awready), DAEDAL_OUT(write, awaddr),
      DAEDAL_OUT(write, awlen), DAEDAL_OUT(write, awsize), DAEDAL_OUT(write, awburst),
      DAEDAL_OUT(write, wvalid), DAEDAL_IN(write, wready), DAEDAL_OUT(write, wlast),
      DAEDAL_OUT(write, wdata), DAEDAL_OUT(write, wstrb), DAEDAL_IN(write, bvalid),
      DAEDAL_OUT(write, bready), DAEDAL_IN(write, bresp)};
  pins.lite = {
      DAEDAL_IN(control, awvalid), DAEDAL_OUT(control, awready), DAEDAL_IN(control, awaddr),
      DAEDAL_IN(control, wvalid), DAEDAL_OUT(control, wready), DAEDAL_IN(control, wdata),
      DAEDAL_IN(control, wstrb), DAEDAL_OUT(control, bvalid), DAEDAL_IN(control, bready),
      DAEDAL_IN(control, arvalid), DAEDAL_OUT(control, arready), DAEDAL_IN(control, araddr),
      DAEDAL_OUT(control, rvalid), DAEDAL_IN(control, rready), DAEDAL_OUT(control, rdata)};
#undef DAEDAL_BIND_READ
#undef DAEDAL_IN
#undef DAEDAL_OUT
  pins.interrupt = &model.__SYM__interrupt;
  return pins;
}

}  // namespace daedal
