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

// Name every port of the model once.
inline Pins bind_pins(Vmodel &m) {
  Pins pins;
#define DAEDAL_BIND_READ(n)                                                                      \
  pins.read.push_back({&m.read##n##__arvalid, &m.read##n##__arready, &m.read##n##__araddr,       \
                       &m.read##n##__arlen, &m.read##n##__arsize, &m.read##n##__arburst,         \
                       &m.read##n##__rvalid, &m.read##n##__rready, &m.read##n##__rlast,          \
                       &m.read##n##__rresp, &m.read##n##__rdata});
  DAEDAL_READ_PORTS(DAEDAL_BIND_READ)
#undef DAEDAL_BIND_READ
  pins.write = {&m.write__awvalid, &m.write__awready, &m.write__awaddr, &m.write__awlen,
                &m.write__awsize,  &m.write__awburst, &m.write__wvalid, &m.write__wready,
                &m.write__wlast,   &m.write__wdata,   &m.write__wstrb,  &m.write__bvalid,
                &m.write__bready,  &m.write__bresp};
  pins.lite = {&m.control__awvalid, &m.control__awready, &m.control__awaddr, &m.control__wvalid,
               &m.control__wready,  &m.control__wdata,   &m.control__wstrb,  &m.control__bvalid,
               &m.control__bready,  &m.control__arvalid, &m.control__arready, &m.control__araddr,
               &m.control__rvalid,  &m.control__rready,  &m.control__rdata};
  pins.interrupt = &m.interrupt;
  return pins;
}

}  // namespace daedal
