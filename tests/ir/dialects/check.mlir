// RUN: daedal-opt %s | daedal-opt | filecheck %s

func.func @f(%i: index, %n: index) {
  check.bounds "index" %i, %n
  check.bounds "offset" %i, %n
  check.bounds "index" %i, %n mode "warn"
  func.return
}

// CHECK:      func.func @f(%i: index, %n: index) {
// CHECK-NEXT:   check.bounds "index" %i, %n
// CHECK-NEXT:   check.bounds "offset" %i, %n
// CHECK-NEXT:   check.bounds "index" %i, %n mode "warn"
