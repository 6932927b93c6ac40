// The model's ports as pointers: nothing but ports.h, which is made for each model, and the generated bind_pins.h depends
// on which ports there are.
#pragma once

#include <vector>

#include "Vmodel.h"
#include "ports.h"

namespace daedal {

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
  RegisterPin *awaddr;
  CData *wvalid, *wready;
  IData *wdata;
  CData *wstrb, *bvalid, *bready;
  CData *arvalid, *arready;
  RegisterPin *araddr;
  CData *rvalid, *rready;
  IData *rdata;
};

// A master that reads for several ports, with an identifier for each.
struct JoinedPins {
  ReadPins read;
  CData *arid, *rid;
};

// The memory of one tile.
struct Pins {
  std::vector<ReadPins> read;
  WritePins write;
};

}  // namespace daedal
