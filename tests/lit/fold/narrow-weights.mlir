// Weights that are integers times scales stay known as such: one block of the depth per scale, whatever spells them.
// RUN: transept-opt %s --transept-pass=transept-narrow-weights | FileCheck %s

// Three rows of scales for 48 rows of the matrix: blocks of 16. Repeated by a gather, as DequantizeLinear is imported.
// CHECK: transept.narrow_weights = {
// CHECK-SAME: "[[KEY:[0-9a-f]*]]" = {block = 16 : i64, scales = "{{[0-9a-f]*}}", transposed = false, weight = "{{[0-9a-f]*}}"}
// CHECK-NOT: block
// CHECK-LABEL: func.func @blocks
// CHECK: %[[W:.*]] = transept.weight "[[KEY]]" : tensor<48x32xf32>
// CHECK: transept.matmul %arg0, %[[W]]
func.func @blocks(%x: tensor<?x48xf32, #transept.dims<[n, 48]>>) -> tensor<?x32xf32, #transept.dims<[n, 32]>> {
  %w = transept.constant dense<3> : tensor<48x32xi8>
  %s = transept.constant dense<[[5.000000e-01], [2.000000e+00], [1.000000e+00]]> : tensor<3x1xf32>
  %at = transept.constant dense<[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]> : tensor<48xi64>
  %wf = transept.cast %w {to = f32} : (tensor<48x32xi8>) -> tensor<48x32xf32>
  %ws = transept.gather %s, %at {axis = 0 : i64} : (tensor<3x1xf32>, tensor<48xi64>) -> tensor<48x1xf32>
  %m = transept.mul %wf, %ws : (tensor<48x32xf32>, tensor<48x1xf32>) -> tensor<48x32xf32>
  %y = transept.matmul %x, %m : (tensor<?x48xf32, #transept.dims<[n, 48]>>, tensor<48x32xf32>) -> tensor<?x32xf32, #transept.dims<[n, 32]>>
  return %y : tensor<?x32xf32, #transept.dims<[n, 32]>>
}

// 200 is no signed byte, whatever its type: floats, but a constant.
// CHECK-LABEL: func.func @too_large
// CHECK: %[[W:.*]] = transept.weight "{{.*}}" : tensor<48x32xf32>
// CHECK: transept.matmul %arg0, %[[W]]
func.func @too_large(%x: tensor<?x48xf32, #transept.dims<[n, 48]>>) -> tensor<?x32xf32, #transept.dims<[n, 32]>> {
  %w = transept.constant dense<200> : tensor<48x32xui8>
  %s = transept.constant dense<5.000000e-01> : tensor<f32>
  %wf = transept.cast %w {to = f32} : (tensor<48x32xui8>) -> tensor<48x32xf32>
  %m = transept.mul %wf, %s : (tensor<48x32xf32>, tensor<f32>) -> tensor<48x32xf32>
  %y = transept.matmul %x, %m : (tensor<?x48xf32, #transept.dims<[n, 48]>>, tensor<48x32xf32>) -> tensor<?x32xf32, #transept.dims<[n, 32]>>
  return %y : tensor<?x32xf32, #transept.dims<[n, 32]>>
}

// What something else reads stays as it is.
// CHECK-LABEL: func.func @also_read
// CHECK: transept.mul
func.func @also_read(%x: tensor<?x48xf32, #transept.dims<[n, 48]>>) -> (tensor<?x32xf32, #transept.dims<[n, 32]>>, tensor<48x32xf32>) {
  %w = transept.constant dense<3> : tensor<48x32xi8>
  %s = transept.constant dense<5.000000e-01> : tensor<f32>
  %wf = transept.cast %w {to = f32} : (tensor<48x32xi8>) -> tensor<48x32xf32>
  %m = transept.mul %wf, %s : (tensor<48x32xf32>, tensor<f32>) -> tensor<48x32xf32>
  %y = transept.matmul %x, %m : (tensor<?x48xf32, #transept.dims<[n, 48]>>, tensor<48x32xf32>) -> tensor<?x32xf32, #transept.dims<[n, 32]>>
  return %y, %m : tensor<?x32xf32, #transept.dims<[n, 32]>>, tensor<48x32xf32>
}
