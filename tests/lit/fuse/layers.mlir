// Linear layers, norms and activations from their parts; movement of rows meets its inverse below them.
// RUN: transept-opt %s --transept-pass=transept-fuse | FileCheck %s

// CHECK-LABEL: func.func @linear_with_bias
// CHECK: transept.linear %arg0, {{.*}}, {{.*}} :
// CHECK-NOT: transept.add
func.func @linear_with_bias(%x: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>> {
  %w = transept.constant dense<1.000000e+00> : tensor<64x32xf32>
  %b = transept.constant dense<2.000000e+00> : tensor<32xf32>
  %m = transept.matmul %x, %w : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<64x32xf32>) -> tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>
  %o = transept.add %b, %m : (tensor<32xf32>, tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>) -> tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>
  return %o : tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>
}

// CHECK-LABEL: func.func @product_of_two_inputs
// CHECK-NOT: transept.linear
// CHECK: transept.matmul
func.func @product_of_two_inputs(%x: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, %w: tensor<64x32xf32>) -> tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>> {
  %m = transept.matmul %x, %w : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<64x32xf32>) -> tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>
  return %m : tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>
}

// CHECK-LABEL: func.func @sequence_first
// CHECK-NOT: transept.transpose
// CHECK: return
func.func @sequence_first(%x: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>> {
  %w = transept.constant dense<1.000000e+00> : tensor<64x32xf32>
  %t = transept.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[T, batch, 64]>>
  %m = transept.matmul %t, %w : (tensor<?x?x64xf32, #transept.dims<[T, batch, 64]>>, tensor<64x32xf32>) -> tensor<?x?x32xf32, #transept.dims<[T, batch, 32]>>
  %r = transept.relu %m : (tensor<?x?x32xf32, #transept.dims<[T, batch, 32]>>) -> tensor<?x?x32xf32, #transept.dims<[T, batch, 32]>>
  %o = transept.transpose %r {permutation = array<i64: 1, 0, 2>} : (tensor<?x?x32xf32, #transept.dims<[T, batch, 32]>>) -> tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>
  return %o : tensor<?x?x32xf32, #transept.dims<[batch, T, 32]>>
}

// CHECK-LABEL: func.func @norm_from_parts
// CHECK: transept.layer_norm %arg0 scale({{.*}}) bias({{.*}}) {axis = 2 : i64, epsilon = 9.99999974E-6 : f32}
// CHECK-NOT: transept.reduce
func.func @norm_from_parts(%x: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>> {
  %two = transept.constant dense<2.000000e+00> : tensor<f32>
  %eps = transept.constant dense<9.99999974E-6> : tensor<f32>
  %g = transept.constant dense<3.000000e+00> : tensor<64xf32>
  %b = transept.constant dense<4.000000e+00> : tensor<64xf32>
  %mean = transept.reduce mean %x {axes = array<i64: 2>, keepdims = true, noopWithEmptyAxes = false} : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>
  %d = transept.sub %x, %mean : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %sq = transept.pow %d, %two : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<f32>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %var = transept.reduce mean %sq {axes = array<i64: 2>, keepdims = true, noopWithEmptyAxes = false} : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>
  %ve = transept.add %var, %eps : (tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>, tensor<f32>) -> tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>
  %sd = transept.sqrt %ve : (tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>) -> tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>
  %n = transept.div %d, %sd : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<?x?x1xf32, #transept.dims<[batch, T, 1]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %s = transept.mul %n, %g : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<64xf32>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %o = transept.add %s, %b : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<64xf32>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  return %o : tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
}

// Statistics over another axis are another thing.
// CHECK-LABEL: func.func @norm_over_positions
// CHECK-NOT: transept.layer_norm
// CHECK: transept.reduce
func.func @norm_over_positions(%x: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>> {
  %two = transept.constant dense<2.000000e+00> : tensor<f32>
  %eps = transept.constant dense<9.99999974E-6> : tensor<f32>
  %g = transept.constant dense<3.000000e+00> : tensor<64xf32>
  %b = transept.constant dense<4.000000e+00> : tensor<64xf32>
  %mean = transept.reduce mean %x {axes = array<i64: 1>, keepdims = true, noopWithEmptyAxes = false} : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>
  %d = transept.sub %x, %mean : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %sq = transept.pow %d, %two : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<f32>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %var = transept.reduce mean %sq {axes = array<i64: 1>, keepdims = true, noopWithEmptyAxes = false} : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>
  %ve = transept.add %var, %eps : (tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>, tensor<f32>) -> tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>
  %sd = transept.sqrt %ve : (tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>) -> tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>
  %n = transept.div %d, %sd : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<?x1x64xf32, #transept.dims<[batch, 1, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %s = transept.mul %n, %g : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<64xf32>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %o = transept.add %s, %b : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<64xf32>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  return %o : tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
}

// CHECK-LABEL: func.func @silu
// CHECK: transept.silu %arg0
func.func @silu(%x: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>> {
  %g = transept.sigmoid %x : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %o = transept.mul %g, %x : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  return %o : tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
}

// CHECK-LABEL: func.func @gate_of_another
// CHECK-NOT: transept.silu
// CHECK: transept.mul
func.func @gate_of_another(%x: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, %y: tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>> {
  %g = transept.sigmoid %y : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  %o = transept.mul %g, %x : (tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>, tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>) -> tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
  return %o : tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>
}
