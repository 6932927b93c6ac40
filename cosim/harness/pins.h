// The model's ports as pointers, so that nothing but bind_pins() depends on the number of memory ports.
#pragma once

#include <cstdint>
#include <vector>

#include "Vmodel.h"
#include "ports.h"

namespace daedal {

// Channels AR and R of one memory port.
struct ReadPins {
  CData *arvalid, *arready;
  QData *araddr;
  CData *arlen, *arsize, *arburst, *rvalid, *rready, *rlast, *rresp;
  void *rdata;
};

// Channels AW, W and B of the write port.
struct WritePins {
  CData *awvalid, *awready;
  QData *awaddr;
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
// `interrupt` is a word of some C compilers, so it gets a prefix.
inline Pins bind_pins(Vmodel &model) {
  Pins pins;
#define DAEDAL_PIN(port, signal) model.port##___05F##signal
#define DAEDAL_BIND_READ(n)                                                                      \
  pins.read.push_back({                                                                          \
      &DAEDAL_PIN(read##n, arvalid), &DAEDAL_PIN(read##n, arready), &DAEDAL_PIN(read##n, araddr),\
      &DAEDAL_PIN(read##n, arlen), &DAEDAL_PIN(read##n, arsize), &DAEDAL_PIN(read##n, arburst),  \
      &DAEDAL_PIN(read##n, rvalid), &DAEDAL_PIN(read##n, rready), &DAEDAL_PIN(read##n, rlast),   \
      &DAEDAL_PIN(read##n, rresp), &DAEDAL_PIN(read##n, rdata)});
  DAEDAL_READ_PORTS(DAEDAL_BIND_READ)
  pins.write = {
      &DAEDAL_PIN(write, awvalid), &DAEDAL_PIN(write, awready), &DAEDAL_PIN(write, awaddr),
      &DAEDAL_PIN(write, awlen), &DAEDAL_PIN(write, awsize), &DAEDAL_PIN(write, awburst),
      &DAEDAL_PIN(write, wvalid), &DAEDAL_PIN(write, wready), &DAEDAL_PIN(write, wlast),
      &DAEDAL_PIN(write, wdata), &DAEDAL_PIN(write, wstrb), &DAEDAL_PIN(write, bvalid),
      &DAEDAL_PIN(write, bready), &DAEDAL_PIN(write, bresp)};
  pins.lite = {
      &DAEDAL_PIN(control, awvalid), &DAEDAL_PIN(control, awready), &DAEDAL_PIN(control, awaddr),
      &DAEDAL_PIN(control, wvalid), &DAEDAL_PIN(control, wready), &DAEDAL_PIN(control, wdata),
      &DAEDAL_PIN(control, wstrb), &DAEDAL_PIN(control, bvalid), &DAEDAL_PIN(control, bready),
      &DAEDAL_PIN(control, arvalid), &DAEDAL_PIN(control, arready), &DAEDAL_PIN(control, araddr),
      &DAEDAL_PIN(control, rvalid), &DAEDAL_PIN(control, rready), &DAEDAL_PIN(control, rdata)};
#undef DAEDAL_BIND_READ
#undef DAEDAL_PIN
  pins.interrupt = &model.__SYM__interrupt;
  return pins;
}

}  // namespace daedal

