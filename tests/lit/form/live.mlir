// Rows beyond the live ones are skipped where every row is computed from the same row, and only there.
// RUN: transept-opt %s --transept-pass=transept-form | FileCheck %s

!x = tensor<?x4xf32, #transept.dims<[rows, 4]>>

// The reduction mixes rows: what it reads is complete, and so is what that is made of.
// CHECK-LABEL: kernel.entry @step
// CHECK: %[[LIVE:.*]] = kernel.state "step.live"
// CHECK: kernel.contract rows <rows> {{.*}} ins(%{{[0-9]+}}, %{{[0-9]+}}) {
// CHECK-NOT: live(
// CHECK: kernel.export {{.*}} "cross.2"
// CHECK: kernel.map {{.*}} live(%[[LIVE]])
// CHECK: kernel.export {{.*}} "cross.3"
func.func @step() {
  %x = transept.state "cross.0" : !x
  %y = transept.state "cross.1" : !x
  %w = transept.constant dense<0.5> : tensor<4x4xf32>
  %0 = transept.linear %x, %w : (!x, tensor<4x4xf32>) -> !x
  %1 = transept.reduce max %0 {axes = array<i64: 0>, keepdims = false, noopWithEmptyAxes = false} : (!x) -> tensor<4xf32>
  transept.export "cross.2", %1 : tensor<4xf32>
  %2 = transept.tanh %y : (!x) -> !x
  transept.export "cross.3", %2 : !x
  return
}
