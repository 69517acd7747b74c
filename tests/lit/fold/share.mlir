// RUN: transept-opt %s --transept-pass=transept-fold | FileCheck %s
// The weights are made by folding: `table` [64, 32] is an upper triangle of ones, `head` [32, 64] its transpose.

// CHECK: shared_transposed = 1 : i64, shared_transposed_bytes = 8192 : i64
// CHECK-SAME: weight_bytes = 24576 : i64, weights = 3 : i64

// CHECK-LABEL: func.func @encoder
// CHECK: transept.weight "[[TABLE:[0-9a-f]+]]" : tensor<64x32xf32>
func.func @encoder(%ids: tensor<3xi64>) -> tensor<3x32xf32> {
  %0 = transept.fill dense<1.0> : tensor<f32> : () -> tensor<64x32xf32>
  %table = "transept.trilu"(%0) <{upper = true}> : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %1 = transept.gather %table, %ids {axis = 0 : i64} : (tensor<64x32xf32>, tensor<3xi64>) -> tensor<3x32xf32>
  return %1 : tensor<3x32xf32>
}

// A product takes the table transposed.
// CHECK-LABEL: func.func @product
// CHECK: %[[W:.*]] = transept.weight "[[TABLE]]" : tensor<64x32xf32>
// CHECK: %[[T:.*]] = transept.transpose %[[W]]
// CHECK: transept.matmul %{{.*}}, %[[T]]
func.func @product(%x: tensor<2x32xf32>) -> tensor<2x64xf32> {
  %0 = transept.fill dense<1.0> : tensor<f32> : () -> tensor<32x64xf32>
  %head = "transept.trilu"(%0) <{upper = false}> : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = transept.matmul %x, %head : (tensor<2x32xf32>, tensor<32x64xf32>) -> tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}

// So does a linear layer, by its flag.
// CHECK-LABEL: func.func @linear
// CHECK: %[[W:.*]] = transept.weight "[[TABLE]]" : tensor<64x32xf32>
// CHECK-NEXT: transept.linear %{{.*}}, %[[W]] {transposed}
func.func @linear(%x: tensor<2x32xf32>) -> tensor<2x64xf32> {
  %0 = transept.fill dense<1.0> : tensor<f32> : () -> tensor<32x64xf32>
  %head = "transept.trilu"(%0) <{upper = false}> : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = transept.linear %x, %head : (tensor<2x32xf32>, tensor<32x64xf32>) -> tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}

// Must not: the sum needs the matrix as it is, and so does the lookup of its transpose.
// CHECK-LABEL: func.func @not_a_product
// CHECK-NOT: transept.transpose
// CHECK: transept.add
// CHECK-NOT: transept.transpose
// CHECK: transept.gather
func.func @not_a_product(%x: tensor<32x64xf32>, %ids: tensor<3xi64>) -> (tensor<32x64xf32>, tensor<3x32xf32>) {
  %0 = transept.fill dense<2.0> : tensor<f32> : () -> tensor<32x64xf32>
  %a = "transept.trilu"(%0) <{upper = false}> : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = transept.add %x, %a : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %2 = transept.fill dense<2.0> : tensor<f32> : () -> tensor<64x32xf32>
  %b = "transept.trilu"(%2) <{upper = true}> : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %3 = transept.gather %b, %ids {axis = 0 : i64} : (tensor<64x32xf32>, tensor<3xi64>) -> tensor<3x32xf32>
  return %1, %3 : tensor<32x64xf32>, tensor<3x32xf32>
}
