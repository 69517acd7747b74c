// Products and convolutions of dequantised integers are those of integers where one scale belongs to the left side and one to the matrix or
// to each of its columns (filters). Folding would make floats of the matrix.
// RUN: transept-opt %s --transept-pass=transept-integer-products | FileCheck %s

// CHECK-LABEL: func.func @per_column
// CHECK: %[[I:.*]] = transept.matmul_integer %arg0, %{{.*}} lhs_zero_point(%{{.*}}) rhs_zero_point(%{{.*}}) : (tensor<?x3xui8, {{.*}}>, tensor<3x2xi8>, tensor<ui8>, tensor<2xi8>) -> tensor<?x2xi32
// CHECK: %[[F:.*]] = transept.cast %[[I]] {to = f32}
// CHECK: transept.mul %[[F]]
// CHECK-NOT: transept.matmul %
func.func @per_column(%x: tensor<?x3xui8, #transept.dims<[n, 3]>>) -> tensor<?x2xf32, #transept.dims<[n, 2]>> {
  %zx = transept.constant dense<7> : tensor<ui8>
  %sx = transept.constant dense<2.500000e-01> : tensor<f32>
  %w = transept.constant dense<[[1, -2], [3, 4], [-5, 6]]> : tensor<3x2xi8>
  %zw = transept.constant dense<[0, 1]> : tensor<2xi8>
  %sw = transept.constant dense<[5.000000e-01, 2.000000e+00]> : tensor<2xf32>
  %xf = transept.cast %x {to = f32} : (tensor<?x3xui8, #transept.dims<[n, 3]>>) -> tensor<?x3xf32, #transept.dims<[n, 3]>>
  %zxf = transept.cast %zx {to = f32} : (tensor<ui8>) -> tensor<f32>
  %xd = transept.sub %xf, %zxf : (tensor<?x3xf32, #transept.dims<[n, 3]>>, tensor<f32>) -> tensor<?x3xf32, #transept.dims<[n, 3]>>
  %xs = transept.mul %xd, %sx : (tensor<?x3xf32, #transept.dims<[n, 3]>>, tensor<f32>) -> tensor<?x3xf32, #transept.dims<[n, 3]>>
  %wf = transept.cast %w {to = f32} : (tensor<3x2xi8>) -> tensor<3x2xf32>
  %zwf = transept.cast %zw {to = f32} : (tensor<2xi8>) -> tensor<2xf32>
  %wd = transept.sub %wf, %zwf : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %ws = transept.mul %wd, %sw : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %y = transept.matmul %xs, %ws : (tensor<?x3xf32, #transept.dims<[n, 3]>>, tensor<3x2xf32>) -> tensor<?x2xf32, #transept.dims<[n, 2]>>
  return %y : tensor<?x2xf32, #transept.dims<[n, 2]>>
}

// A scale per row of the matrix weighs the terms of each sum.
// CHECK-LABEL: func.func @per_row
// CHECK-NOT: transept.matmul_integer
// CHECK: transept.matmul %
func.func @per_row(%x: tensor<?x3xi8, #transept.dims<[n, 3]>>) -> tensor<?x2xf32, #transept.dims<[n, 2]>> {
  %sx = transept.constant dense<2.500000e-01> : tensor<f32>
  %w = transept.constant dense<[[1, -2], [3, 4], [-5, 6]]> : tensor<3x2xi8>
  %sw = transept.constant dense<[[5.000000e-01], [2.000000e+00], [1.000000e+00]]> : tensor<3x1xf32>
  %xf = transept.cast %x {to = f32} : (tensor<?x3xi8, #transept.dims<[n, 3]>>) -> tensor<?x3xf32, #transept.dims<[n, 3]>>
  %xs = transept.mul %xf, %sx : (tensor<?x3xf32, #transept.dims<[n, 3]>>, tensor<f32>) -> tensor<?x3xf32, #transept.dims<[n, 3]>>
  %wf = transept.cast %w {to = f32} : (tensor<3x2xi8>) -> tensor<3x2xf32>
  %ws = transept.mul %wf, %sw : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %y = transept.matmul %xs, %ws : (tensor<?x3xf32, #transept.dims<[n, 3]>>, tensor<3x2xf32>) -> tensor<?x2xf32, #transept.dims<[n, 2]>>
  return %y : tensor<?x2xf32, #transept.dims<[n, 2]>>
}

// Zeros around the numbers are zero points around the bytes.
// CHECK-LABEL: func.func @convolution
// CHECK: %[[P:.*]] = transept.pad constant %arg0 fill(%{{.*}}) {{.*}} : (tensor<?x2x5xui8, {{.*}}>, tensor<ui8>) -> tensor<?x2x8xui8
// CHECK: transept.cast %[[P]] {to = i32}
// CHECK: %[[I:.*]] = transept.conv %{{.*}}, %{{.*}} {{.*}} -> tensor<?x3x7xi32
// CHECK: %[[F:.*]] = transept.cast %[[I]] {to = f32}
// CHECK: %[[M:.*]] = transept.mul %[[F]], %{{.*}} : (tensor<?x3x7xf32, {{.*}}>, tensor<3x1xf32>)
// CHECK: transept.add %[[M]], %{{.*}} : (tensor<?x3x7xf32, {{.*}}>, tensor<3x1xf32>)
func.func @convolution(%x: tensor<?x2x5xui8, #transept.dims<[n, 2, 5]>>) -> tensor<?x3x7xf32, #transept.dims<[n, 3, 7]>> {
  %zx = transept.constant dense<7> : tensor<ui8>
  %sx = transept.constant dense<2.500000e-01> : tensor<f32>
  %w = transept.constant dense<[[[1, -2], [3, 4]], [[-5, 6], [7, 8]], [[9, 10], [11, -12]]]> : tensor<3x2x2xi8>
  %sw = transept.constant dense<[[[5.000000e-01]], [[2.000000e+00]], [[1.000000e+00]]]> : tensor<3x1x1xf32>
  %b = transept.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
  %xf = transept.cast %x {to = f32} : (tensor<?x2x5xui8, #transept.dims<[n, 2, 5]>>) -> tensor<?x2x5xf32, #transept.dims<[n, 2, 5]>>
  %zxf = transept.cast %zx {to = f32} : (tensor<ui8>) -> tensor<f32>
  %xd = transept.sub %xf, %zxf : (tensor<?x2x5xf32, #transept.dims<[n, 2, 5]>>, tensor<f32>) -> tensor<?x2x5xf32, #transept.dims<[n, 2, 5]>>
  %xs = transept.mul %xd, %sx : (tensor<?x2x5xf32, #transept.dims<[n, 2, 5]>>, tensor<f32>) -> tensor<?x2x5xf32, #transept.dims<[n, 2, 5]>>
  %xp = transept.pad constant %xs {low = [#transept.dim<0>, #transept.dim<0>, #transept.dim<1>]} : (tensor<?x2x5xf32, #transept.dims<[n, 2, 5]>>) -> tensor<?x2x8xf32, #transept.dims<[n, 2, 8]>>
  %wf = transept.cast %w {to = f32} : (tensor<3x2x2xi8>) -> tensor<3x2x2xf32>
  %ws = transept.mul %wf, %sw : (tensor<3x2x2xf32>, tensor<3x1x1xf32>) -> tensor<3x2x2xf32>
  %y = transept.conv %xp, %ws, %b {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 1 : i64} : (tensor<?x2x8xf32, #transept.dims<[n, 2, 8]>>, tensor<3x2x2xf32>, tensor<3xf32>) -> tensor<?x3x7xf32, #transept.dims<[n, 3, 7]>>
  return %y : tensor<?x3x7xf32, #transept.dims<[n, 3, 7]>>
}

// Every group has a matrix of its own, too narrow for a kernel.
// CHECK-LABEL: func.func @groups
// CHECK-NOT: xi32
// CHECK: transept.conv %{{.*}} -> tensor<?x4x5xf32
func.func @groups(%x: tensor<?x4x5xi8, #transept.dims<[n, 4, 5]>>) -> tensor<?x4x5xf32, #transept.dims<[n, 4, 5]>> {
  %sx = transept.constant dense<2.500000e-01> : tensor<f32>
  %w = transept.constant dense<[[[1]], [[2]], [[3]], [[4]]]> : tensor<4x1x1xi8>
  %sw = transept.constant dense<5.000000e-01> : tensor<f32>
  %xf = transept.cast %x {to = f32} : (tensor<?x4x5xi8, #transept.dims<[n, 4, 5]>>) -> tensor<?x4x5xf32, #transept.dims<[n, 4, 5]>>
  %xs = transept.mul %xf, %sx : (tensor<?x4x5xf32, #transept.dims<[n, 4, 5]>>, tensor<f32>) -> tensor<?x4x5xf32, #transept.dims<[n, 4, 5]>>
  %wf = transept.cast %w {to = f32} : (tensor<4x1x1xi8>) -> tensor<4x1x1xf32>
  %ws = transept.mul %wf, %sw : (tensor<4x1x1xf32>, tensor<f32>) -> tensor<4x1x1xf32>
  %y = transept.conv %xs, %ws {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 4 : i64} : (tensor<?x4x5xf32, #transept.dims<[n, 4, 5]>>, tensor<4x1x1xf32>) -> tensor<?x4x5xf32, #transept.dims<[n, 4, 5]>>
  return %y : tensor<?x4x5xf32, #transept.dims<[n, 4, 5]>>
}
