// Branches may differ in rank where all users repeat what they get.
// RUN: transept-opt %s --transept-pass=transept-shapes | FileCheck %s

// CHECK-LABEL: func.func @repeated
// CHECK: transept.if
// CHECK: transept.reshape {{.*}} -> tensor<1xf32>
// CHECK: : (tensor<i1>) -> tensor<1xf32>
// CHECK: transept.mul {{.*}} -> tensor<4xf32>
func.func @repeated(%flag: tensor<i1>, %scalar: tensor<f32>, %vector: tensor<1xf32>, %x: tensor<4xf32>) -> tensor<*xf32> {
  %either = transept.if %flag {
    transept.yield %scalar : tensor<f32>
  } else {
    transept.yield %vector : tensor<1xf32>
  } : (tensor<i1>) -> tensor<*xf32>
  %y = transept.mul %x, %either : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// A result shows its rank.
// CHECK-LABEL: func.func @shown
// CHECK: : (tensor<i1>) -> tensor<*xf32>
// CHECK-NEXT: return
func.func @shown(%flag: tensor<i1>, %scalar: tensor<f32>, %vector: tensor<1xf32>) -> tensor<*xf32> {
  %either = transept.if %flag {
    transept.yield %scalar : tensor<f32>
  } else {
    transept.yield %vector : tensor<1xf32>
  } : (tensor<i1>) -> tensor<*xf32>
  return %either : tensor<*xf32>
}
