// Products of dequantised integers are products of integers where one scale belongs to the left side and one to the matrix or
// to each of its columns. Folding would make floats of the matrix.
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
