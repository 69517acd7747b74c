// Two functions that compute the same, written down differently, print alike; and one that does not.
// RUN: transept-opt %s --normalize | FileCheck %s

// CHECK-LABEL: func.func @a(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT: %[[SUM:.*]] = transept.add
// CHECK-NEXT: %[[W:.*]] = transept.weight "00" : tensor<2xf32>
// CHECK-NEXT: %[[EXP:.*]] = transept.exp %[[X]]
// CHECK-NEXT: %[[PRODUCT:.*]] = transept.mul %[[W]], %[[EXP]]
// CHECK-NEXT: %[[RESULT:.*]] = transept.sub %[[SUM]], %[[PRODUCT]]
// CHECK-NEXT: return %[[RESULT]]

// CHECK-LABEL: func.func @b(
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT: %[[SUM:.*]] = transept.add
// CHECK-NEXT: %[[W:.*]] = transept.weight "00" : tensor<2xf32>
// CHECK-NEXT: %[[EXP:.*]] = transept.exp %[[X]]
// CHECK-NEXT: %[[PRODUCT:.*]] = transept.mul %[[W]], %[[EXP]]
// CHECK-NEXT: %[[RESULT:.*]] = transept.sub %[[SUM]], %[[PRODUCT]]
// CHECK-NEXT: return %[[RESULT]]

// The operands of a difference are no set.
// CHECK-LABEL: func.func @c(
// CHECK: transept.sub %{{.*}}, %[[LAST:.*]] :
// CHECK-NEXT: return

func.func @b(%x: tensor<2xf32> {transept.name = "one"}, %y: tensor<2xf32>) -> tensor<2xf32> {
  %e = transept.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %w = transept.weight "00" {name = "bias"} : tensor<2xf32>
  %p = transept.mul %e, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %s = transept.add %y, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = transept.sub %s, %p : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

func.func @a(%x: tensor<2xf32> {transept.name = "other"}, %y: tensor<2xf32>) -> tensor<2xf32> {
  %w = transept.weight "00" {name = "other.bias"} : tensor<2xf32>
  %s = transept.add %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %e = transept.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %p = transept.mul %w, %e : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = transept.sub %s, %p : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

func.func @c(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %s = transept.add %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %r = transept.sub %x, %s : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
