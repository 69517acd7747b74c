// Chains of ops that move elements have one form.
// RUN: transept-opt %s --transept-pass=transept-shapes | FileCheck %s

// CHECK-LABEL: func.func @transposes_compose
// CHECK: %[[T:.*]] = transept.transpose %arg0 {permutation = array<i64: 2, 0, 1>}
// CHECK: return %[[T]]
func.func @transposes_compose(%x: tensor<2x3x4xf32>) -> tensor<*xf32> {
  %a = transept.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x4xf32>) -> tensor<*xf32>
  %b = transept.transpose %a {permutation = array<i64: 2, 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
  return %b : tensor<*xf32>
}

// CHECK-LABEL: func.func @transposes_cancel
// CHECK-NEXT: return %arg0
func.func @transposes_cancel(%x: tensor<2x3x4xf32>) -> tensor<*xf32> {
  %a = transept.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<*xf32>
  %b = transept.transpose %a {permutation = array<i64: 1, 2, 0>} : (tensor<*xf32>) -> tensor<*xf32>
  return %b : tensor<*xf32>
}

// CHECK-LABEL: func.func @transpose_of_ones
// CHECK-NEXT: transept.reshape %arg0 {allowZero = false} : (tensor<?x1x4xf32, #transept.dims<[a, 1, 4]>>) -> tensor<1x?x4xf32, #transept.dims<[1, a, 4]>>
func.func @transpose_of_ones(%x: tensor<?x1x4xf32, #transept.dims<[a, 1, 4]>>) -> tensor<*xf32> {
  %a = transept.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<?x1x4xf32, #transept.dims<[a, 1, 4]>>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}

// Must not: `a` may be larger than 1.
// CHECK-LABEL: func.func @transpose_of_sizes
// CHECK-NEXT: transept.transpose
func.func @transpose_of_sizes(%x: tensor<?x?x4xf32, #transept.dims<[a, b, 4]>>) -> tensor<*xf32> {
  %a = transept.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<?x?x4xf32, #transept.dims<[a, b, 4]>>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}

// CHECK-LABEL: func.func @reshapes_cancel
// CHECK-NEXT: return %arg0
func.func @reshapes_cancel(%x: tensor<?x6xf32, #transept.dims<[a, 6]>>) -> tensor<*xf32> {
  %axes = transept.constant dense<[0, 3]> : tensor<2xi64>
  %a = transept.unsqueeze %x, %axes : (tensor<?x6xf32, #transept.dims<[a, 6]>>, tensor<2xi64>) -> tensor<*xf32>
  %b = transept.squeeze %a, %axes : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %b : tensor<*xf32>
}

// CHECK-LABEL: func.func @slices_compose
// CHECK-NEXT: transept.slice %arg0 {starts = [#transept.dim<12>], steps = array<i64: -2>} : (tensor<20xf32>) -> tensor<4xf32>
func.func @slices_compose(%x: tensor<20xf32>) -> tensor<*xf32> {
  %two = transept.constant dense<2> : tensor<1xi64>
  %five = transept.constant dense<5> : tensor<1xi64>
  %end = transept.constant dense<100> : tensor<1xi64>
  %one = transept.constant dense<1> : tensor<1xi64>
  %back = transept.constant dense<-1> : tensor<1xi64>
  %zero = transept.constant dense<0> : tensor<1xi64>
  // 2, 4, … 18, then elements 5, 4, 3, 2 of these: 12, 10, 8, 6.
  %a = transept.slice %x from(%two) to(%end) axes(%zero) by(%two) : (tensor<20xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  %b = transept.slice %a from(%five) to(%one) axes(%zero) by(%back) : (tensor<*xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %b : tensor<*xf32>
}

// CHECK-LABEL: func.func @slice_of_everything
// CHECK-NEXT: return %arg0
func.func @slice_of_everything(%x: tensor<?x8xf32, #transept.dims<[a, 8]>>) -> tensor<*xf32> {
  %zero = transept.constant dense<0> : tensor<1xi64>
  %end = transept.shape %x {end = 1} : (tensor<?x8xf32, #transept.dims<[a, 8]>>) -> tensor<*xi64>
  %a = transept.slice %x from(%zero) to(%end) : (tensor<?x8xf32, #transept.dims<[a, 8]>>, tensor<1xi64>, tensor<*xi64>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}

// An element-wise op repeats its operands anyway.
// CHECK-LABEL: func.func @broadcast_operand
// CHECK-NEXT: transept.add %arg0, %arg1
func.func @broadcast_operand(%x: tensor<?x8xf32, #transept.dims<[a, 8]>>, %y: tensor<1x8xf32>) -> tensor<*xf32> {
  %shape = transept.shape %x : (tensor<?x8xf32, #transept.dims<[a, 8]>>) -> tensor<*xi64>
  %b = transept.broadcast %y, %shape : (tensor<1x8xf32>, tensor<*xi64>) -> tensor<*xf32>
  %sum = transept.add %x, %b : (tensor<?x8xf32, #transept.dims<[a, 8]>>, tensor<*xf32>) -> tensor<*xf32>
  return %sum : tensor<*xf32>
}

// What is repeated is computed once.
// CHECK-LABEL: func.func @broadcast_sinks
// CHECK: %[[N:.*]] = transept.neg %arg1 : (tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT: transept.broadcast %[[N]]
func.func @broadcast_sinks(%x: tensor<?x8xf32, #transept.dims<[a, 8]>>, %y: tensor<1x8xf32>) -> tensor<*xf32> {
  %shape = transept.shape %x : (tensor<?x8xf32, #transept.dims<[a, 8]>>) -> tensor<*xi64>
  %b = transept.broadcast %y, %shape : (tensor<1x8xf32>, tensor<*xi64>) -> tensor<*xf32>
  %n = transept.neg %b : (tensor<*xf32>) -> tensor<*xf32>
  return %n : tensor<*xf32>
}

// Must not: without the broadcast the result would be smaller, and it is a result.
// CHECK-LABEL: func.func @broadcast_stays
// CHECK-NEXT: transept.broadcast %arg1
func.func @broadcast_stays(%x: tensor<?x8xf32, #transept.dims<[a, 8]>>, %y: tensor<1x8xf32>) -> tensor<*xf32> {
  %shape = transept.shape %x : (tensor<?x8xf32, #transept.dims<[a, 8]>>) -> tensor<*xi64>
  %b = transept.broadcast %y, %shape : (tensor<1x8xf32>, tensor<*xi64>) -> tensor<*xf32>
  return %b : tensor<*xf32>
}

// CHECK-LABEL: func.func @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<?x8xf32, #transept.dims<[a, 8]>>) -> tensor<*xf32> {
  %one = transept.constant dense<1.0> : tensor<f32>
  %a = transept.mul %x, %one : (tensor<?x8xf32, #transept.dims<[a, 8]>>, tensor<f32>) -> tensor<*xf32>
  %b = transept.div %a, %one : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %c = transept.cast %b {to = f32} : (tensor<*xf32>) -> tensor<*xf32>
  return %c : tensor<*xf32>
}

// Must not: -0.0 + 0.0 is 0.0, 1 / x is not x, and f32 to f16 and back loses bits.
// CHECK-LABEL: func.func @not_neutral
// CHECK: transept.add
// CHECK: transept.div
// CHECK: transept.cast
// CHECK: transept.cast
func.func @not_neutral(%x: tensor<?x8xf32, #transept.dims<[a, 8]>>) -> tensor<*xf32> {
  %zero = transept.constant dense<0.0> : tensor<f32>
  %one = transept.constant dense<1.0> : tensor<f32>
  %a = transept.add %x, %zero : (tensor<?x8xf32, #transept.dims<[a, 8]>>, tensor<f32>) -> tensor<*xf32>
  %b = transept.div %one, %a : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %c = transept.cast %b {to = f16} : (tensor<*xf32>) -> tensor<*xf16>
  %d = transept.cast %c {to = f32} : (tensor<*xf16>) -> tensor<*xf32>
  return %d : tensor<*xf32>
}

// Must not: the 1 enlarges the other operand.
// CHECK-LABEL: func.func @one_that_broadcasts
// CHECK: transept.mul
func.func @one_that_broadcasts(%x: tensor<8xf32>) -> tensor<*xf32> {
  %one = transept.constant dense<1.0> : tensor<1x1xf32>
  %a = transept.mul %x, %one : (tensor<8xf32>, tensor<1x1xf32>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}

// CHECK-LABEL: func.func @tile_of_ones
// CHECK: transept.broadcast
// CHECK-LABEL: func.func @tile
// CHECK: transept.tile
func.func @tile_of_ones(%x: tensor<1x8xf32>) -> tensor<*xf32> {
  %repeats = transept.constant dense<[3, 1]> : tensor<2xi64>
  %a = transept.tile %x, %repeats : (tensor<1x8xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}
func.func @tile(%x: tensor<2x8xf32>) -> tensor<*xf32> {
  %repeats = transept.constant dense<[3, 1]> : tensor<2xi64>
  %a = transept.tile %x, %repeats : (tensor<2x8xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}
