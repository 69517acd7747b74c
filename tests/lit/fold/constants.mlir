// RUN: transept-opt %s --transept-pass=transept-fold | FileCheck %s
// RUN: transept-opt %s --transept-pass=transept-fold{max-growth-bytes=4000000} | FileCheck %s --check-prefix=ROOM

// CHECK: transept.folding = {folded_ops = 4 : i64

// Results of up to 64 elements are written out.
// CHECK-LABEL: func.func @written
// CHECK-NEXT: %[[C:.*]] = transept.constant dense<[3.000000e+00, 6.000000e+00]>
// CHECK-NEXT: return %[[C]]
func.func @written() -> tensor<2xf32> {
  %0 = transept.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = transept.constant dense<3.0> : tensor<f32>
  %2 = transept.mul %0, %1 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// Larger ones go to the weight store.
// CHECK-LABEL: func.func @stored
// CHECK-NEXT: transept.weight "{{[0-9a-f]+}}" : tensor<100xf32>
// CHECK-NEXT: return
func.func @stored() -> tensor<100xf32> {
  %0 = transept.fill dense<2.0> : tensor<f32> : () -> tensor<100xf32>
  %1 = transept.sqrt %0 : (tensor<100xf32>) -> tensor<100xf32>
  return %1 : tensor<100xf32>
}

// 2 MiB from 2 KiB: more than the budget.
// CHECK-LABEL: func.func @too_large
// CHECK: transept.broadcast
// ROOM-LABEL: func.func @too_large
// ROOM-NOT: transept.broadcast
// ROOM: return
func.func @too_large() -> tensor<1024x512xf32> {
  %0 = transept.constant dense<1.0> : tensor<512xf32>
  %1 = transept.broadcast %0 : (tensor<512xf32>) -> tensor<1024x512xf32>
  return %1 : tensor<1024x512xf32>
}

// What fails stays: it is an error only where it runs.
// CHECK-LABEL: func.func @fails
// CHECK: transept.div
func.func @fails() -> tensor<i64> {
  %0 = transept.constant dense<1> : tensor<i64>
  %1 = transept.constant dense<0> : tensor<i64>
  %2 = transept.div %0, %1 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %2 : tensor<i64>
}

// A symbol has no value yet.
// CHECK-LABEL: func.func @symbolic
// CHECK: transept.dim_value
// CHECK: transept.add
func.func @symbolic() -> tensor<i64> {
  %0 = transept.dim_value [#transept.dim<batch>] : tensor<i64>
  %1 = transept.constant dense<1> : tensor<i64>
  %2 = transept.add %0, %1 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %2 : tensor<i64>
}

// Branches are part of the function; nothing unused is left.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT: transept.if
// CHECK-NEXT: transept.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[C:.*]] = transept.constant dense<-1>
// CHECK-NEXT: transept.yield %[[C]]
func.func @branches(%c: tensor<i1>, %x: tensor<i64>) -> tensor<i64> {
  %0 = transept.constant dense<1> : tensor<i64>
  %1 = transept.if %c {
    transept.yield %x : tensor<i64>
  } else {
    %2 = transept.neg %0 : (tensor<i64>) -> tensor<i64>
    transept.yield %2 : tensor<i64>
  } : (tensor<i1>) -> tensor<i64>
  return %1 : tensor<i64>
}
