// Which products become narrow, and what stays as it is.
// RUN: transept-opt %s --transept-pass='transept-quantise{precision=int8}' | FileCheck %s
// RUN: transept-opt %s --transept-pass='transept-quantise{precision=bf16}' | FileCheck %s --check-prefix=BF16
// RUN: transept-opt %s --transept-pass='transept-quantise{precision=int8-weights keep-fp32=/decoder/*}' | FileCheck %s --check-prefix=KEPT
// RUN: transept-opt %s --transept-pass='transept-quantise{precision=fp32}' | FileCheck %s --check-prefix=FP32
// RUN: not transept-opt %s --transept-pass='transept-quantise{precision=int8 keep-fp32=*lm_head*}' 2>&1 | FileCheck %s --check-prefix=NONE

// FP32-NOT: transept.narrow
// FP32-NOT: transept.quantisation
// NONE: error: no product with a constant matrix is named '*lm_head*'

// CHECK: transept.quantisation = {also_read = 0 : i64, also_read_bytes = 0 : i64, bytes = 40 : i64, kept = [{node = "m.onnx:/bad/MatMul", reason = "it holds infinities or NaN"}],
// CHECK-SAME: narrow = 2 : i64, narrow_bytes = 42 : i64, precision = "int8", weights = 3 : i64}
// KEPT: kept = [{node = "m.onnx:/decoder/MatMul", reason = "named by '/decoder/*'"}

// One matrix in two ways: its columns are others, so there are two narrow ones; the decision is one.
// CHECK-LABEL: func.func @both_ways
// CHECK: transept.matmul {{.*}}transept.narrow = {activations = "int8", scales = "[[S:[0-9a-f]+]]", weight = "[[W:[0-9a-f]+]]"}
// CHECK-NOT: [[S]]
// CHECK: transept.linear {{.*}}transept.narrow = {activations = "int8", scales = "{{[0-9a-f]+}}"
// BF16-LABEL: func.func @both_ways
// BF16: transept.matmul {{.*}}transept.narrow = {weight = "[[W:[0-9a-f]+]]"}
// BF16: transept.linear {{.*}}transept.narrow = {weight = "[[W]]"}
// KEPT-LABEL: func.func @both_ways
// KEPT-NOT: transept.narrow
func.func @both_ways(%x: tensor<5x2xf32>, %y: tensor<5x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %w = transept.constant dense<[[1.0, -2.0], [0.5, 4.0]]> : tensor<2x2xf32>
  %0 = transept.matmul %x, %w : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32> loc("m.onnx:/decoder/MatMul")
  %1 = transept.linear %y, %w {transposed} : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32> loc("m.onnx:/decoder/Linear")
  return %0, %1 : tensor<5x2xf32>, tensor<5x2xf32>
}

// The weight of a convolution is a matrix, too.
// CHECK-LABEL: func.func @convolution
// CHECK: transept.conv {{.*}}transept.narrow = {activations = "int8"
// KEPT-LABEL: func.func @convolution
// KEPT: transept.conv {{.*}}transept.narrow = {scales =
func.func @convolution(%x: tensor<1x2x9xf32>) -> tensor<1x3x9xf32> {
  %w = transept.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]> : tensor<3x2x1xf32>
  %0 = transept.conv %x, %w {dilations = array<i64: 1>, group = 1 : i64, pads = array<i64: 0, 0>, strides = array<i64: 1>} : (tensor<1x2x9xf32>, tensor<3x2x1xf32>) -> tensor<1x3x9xf32> loc("m.onnx:/encoder/Conv")
  return %0 : tensor<1x3x9xf32>
}

// Not: a matrix that is no constant, one in f64, one with an infinity.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: transept.narrow
func.func @stay(%x: tensor<5x2xf32>, %v: tensor<2x2xf32>, %z: tensor<5x2xf64>) -> (tensor<5x2xf32>, tensor<5x2xf64>, tensor<5x2xf32>) {
  %d = transept.constant dense<[[1.0, -2.0], [0.5, 4.0]]> : tensor<2x2xf64>
  %i = transept.constant dense<[[1.0, 0x7F800000], [0.5, 4.0]]> : tensor<2x2xf32>
  %0 = transept.matmul %x, %v : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %1 = transept.matmul %z, %d : (tensor<5x2xf64>, tensor<2x2xf64>) -> tensor<5x2xf64>
  %2 = transept.matmul %x, %i : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32> loc("m.onnx:/bad/MatMul")
  return %0, %1, %2 : tensor<5x2xf32>, tensor<5x2xf64>, tensor<5x2xf32>
}
