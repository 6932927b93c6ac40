// RUN: daedal-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @f(%i: index) {
  check.bounds "row" %i, %i
  func.return
}

// CHECK: kind must be one of index, offset, not 'row'

// -----

func.func @f(%i: index) {
  check.bounds "index" %i, %i mode "none"
  func.return
}

// CHECK: mode must be one of fatal, warn, ignore, not 'none'
