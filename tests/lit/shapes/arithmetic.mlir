// Sizes that symbols can say are said by them; the arithmetic goes.
// RUN: transept-opt %s --transept-pass=transept-shapes | FileCheck %s

// The six nodes that stand for Expand with -1.
// CHECK-LABEL: func.func @expand_idiom
// CHECK-NOT: transept.shape
// CHECK-NOT: transept.where
// CHECK: %[[B:.*]] = transept.broadcast %arg0 : (tensor<1x1x?x?xf32, #transept.dims<[1, 1, T, S]>>) -> tensor<?x1x?x?xf32, #transept.dims<[batch, 1, T, S]>>
// CHECK: return %[[B]]
func.func @expand_idiom(%mask: tensor<1x1x?x?xf32, #transept.dims<[1, 1, T, S]>>, %ids: tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<*xf32> {
  %zero = transept.constant dense<0> : tensor<1xi64>
  %one = transept.constant dense<1> : tensor<1xi64>
  %minus = transept.constant dense<-1> : tensor<1xi64>
  %shape = transept.shape %ids : (tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<*xi64>
  %batch = transept.gather %shape, %zero {axis = 0} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %to = transept.concat %batch, %one, %minus, %minus {axis = 0} : (tensor<*xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
  %flat = transept.reshape %to, %minus {allowZero = false} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %rank = transept.shape %flat : (tensor<*xi64>) -> tensor<*xi64>
  %ones = transept.fill dense<1> : tensor<1xi64>, %rank : (tensor<*xi64>) -> tensor<*xi64>
  %marks = transept.mul %ones, %minus : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %open = transept.equal %flat, %marks : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi1>
  %sizes = transept.where %open, %ones, %flat : (tensor<*xi1>, tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
  %result = transept.broadcast %mask, %sizes : (tensor<1x1x?x?xf32, #transept.dims<[1, 1, T, S]>>, tensor<*xi64>) -> tensor<*xf32>
  return %result : tensor<*xf32>
}

// A size that is used as data stays, as a symbolic value.
// CHECK-LABEL: func.func @size_as_data
// CHECK: %[[V:.*]] = transept.dim_value [#transept.dim<T>] : tensor<f32>
// CHECK: transept.div %arg0, %[[V]]
func.func @size_as_data(%x: tensor<?xf32, #transept.dims<[T]>>) -> tensor<*xf32> {
  %size = transept.size %x : (tensor<?xf32, #transept.dims<[T]>>) -> tensor<*xi64>
  %float = transept.cast %size {to = f32} : (tensor<*xi64>) -> tensor<*xf32>
  %mean = transept.div %x, %float : (tensor<?xf32, #transept.dims<[T]>>, tensor<*xf32>) -> tensor<*xf32>
  return %mean : tensor<*xf32>
}

// Positions: arange(past, past + T).
// CHECK-LABEL: func.func @positions
// CHECK: transept.range {startDim = #transept.dim<past>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[T]>>
func.func @positions(%past: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, past, 16]>>, %ids: tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<*xi64> {
  %one = transept.constant dense<1> : tensor<i64>
  %two = transept.constant dense<2> : tensor<i64>
  %a = transept.shape %past : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, past, 16]>>) -> tensor<*xi64>
  %start = transept.gather %a, %two {axis = 0} : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  %b = transept.shape %ids : (tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<*xi64>
  %length = transept.gather %b, %one {axis = 0} : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  %end = transept.add %start, %length : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
  %range = transept.range from(%start) to(%end) by(%one) : (tensor<*xi64>, tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  return %range : tensor<*xi64>
}

// Must not: a shape that is an input stays an operand.
// CHECK-LABEL: func.func @shape_from_data
// CHECK: transept.reshape %arg0, %arg1
// CHECK-SAME: transept.symbols = ["reshaped.0", "reshaped.1"]
func.func @shape_from_data(%x: tensor<?xf32, #transept.dims<[n]>>, %shape: tensor<2xi64>) -> tensor<*xf32> {
  %result = transept.reshape %x, %shape {allowZero = false} : (tensor<?xf32, #transept.dims<[n]>>, tensor<2xi64>) -> tensor<*xf32>
  return %result : tensor<*xf32>
}

// Must not: what may be clamped is written as it is, and no slice disappears.
// CHECK-LABEL: func.func @clamped_slice
// CHECK: transept.slice %arg0 {starts = [#transept.dim<0>], steps = array<i64: 1>} : (tensor<?xf32, #transept.dims<[n]>>) -> tensor<?xf32, #transept.dims<[min(8, n)]>>
func.func @clamped_slice(%x: tensor<?xf32, #transept.dims<[n]>>) -> tensor<*xf32> {
  %zero = transept.constant dense<0> : tensor<1xi64>
  %eight = transept.constant dense<8> : tensor<1xi64>
  %result = transept.slice %x from(%zero) to(%eight) : (tensor<?xf32, #transept.dims<[n]>>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %result : tensor<*xf32>
}
