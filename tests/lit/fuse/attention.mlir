// One attention op from scale, mask, softmax and products, however they are spelled; and what must not become one.
// RUN: transept-opt %s --transept-pass=transept-fuse | FileCheck %s

// CHECK-LABEL: func.func @scale_on_query
// CHECK: transept.attention {{.*}} empty_row uniform {{.*}}scale = 2.500000e-01
// CHECK-NOT: transept.softmax
func.func @scale_on_query(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %c = transept.constant dense<2.500000e-01> : tensor<f32>
  %qs = transept.mul %q, %c : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<f32>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  %s = transept.matmul %qs, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %s {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// CHECK-LABEL: func.func @scale_on_scores
// CHECK: transept.attention {{.*}}scale = 2.500000e-01
func.func @scale_on_scores(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %c = transept.constant dense<2.500000e-01> : tensor<f32>
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %t = transept.mul %s, %c : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<f32>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// CHECK-LABEL: func.func @root_of_scale_on_both
// CHECK: transept.attention {{.*}}scale = 2.500000e-01
func.func @root_of_scale_on_both(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %r = transept.constant dense<5.000000e-01> : tensor<f32>
  %qs = transept.mul %q, %r : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<f32>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  %ks = transept.mul %k, %r : (tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, tensor<f32>) -> tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>
  %s = transept.matmul %qs, %ks : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %s {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// CHECK-LABEL: func.func @causal_from_positions
// CHECK: transept.attention {{.*}} empty_row uniform {{.*}}causal, causalOffset = #transept.dim<0>
func.func @causal_from_positions(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %low = transept.constant dense<-3.40282347E+38> : tensor<f32>
  %zero = transept.constant dense<0.000000e+00> : tensor<f32>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[T]>>
  %j = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[S]>>
  %ic = transept.reshape %i {allowZero = false} : (tensor<?xi64, #transept.dims<[T]>>) -> tensor<?x1xi64, #transept.dims<[T, 1]>>
  %later = transept.greater %j, %ic : (tensor<?xi64, #transept.dims<[S]>>, tensor<?x1xi64, #transept.dims<[T, 1]>>) -> tensor<?x?xi1, #transept.dims<[T, S]>>
  %m = transept.where %later, %low, %zero : (tensor<?x?xi1, #transept.dims<[T, S]>>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[T, S]>>
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %t = transept.add %s, %m : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x?xf32, #transept.dims<[T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// CHECK-LABEL: func.func @padding_from_ones
// CHECK: transept.attention {{.*}} key_mask(%arg3) empty_row uniform
func.func @padding_from_ones(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>, %mask: tensor<?x?xi64, #transept.dims<[batch, S]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %low = transept.constant dense<-1.000000e+09> : tensor<f32>
  %one = transept.constant dense<1.000000e+00> : tensor<f32>
  %f = transept.cast %mask {to = f32} : (tensor<?x?xi64, #transept.dims<[batch, S]>>) -> tensor<?x?xf32, #transept.dims<[batch, S]>>
  %n = transept.sub %one, %f : (tensor<f32>, tensor<?x?xf32, #transept.dims<[batch, S]>>) -> tensor<?x?xf32, #transept.dims<[batch, S]>>
  %a = transept.mul %n, %low : (tensor<?x?xf32, #transept.dims<[batch, S]>>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[batch, S]>>
  %m = transept.reshape %a {allowZero = false} : (tensor<?x?xf32, #transept.dims<[batch, S]>>) -> tensor<?x1x1x?xf32, #transept.dims<[batch, 1, 1, S]>>
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %t = transept.add %s, %m : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x1x1x?xf32, #transept.dims<[batch, 1, 1, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// A row without visible keys becomes zero.
// CHECK-LABEL: func.func @guarded_infinite_mask
// CHECK: transept.attention {{.*}} key_mask(%arg3) empty_row zero
func.func @guarded_infinite_mask(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>, %mask: tensor<?x?xi1, #transept.dims<[batch, S]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %low = transept.constant dense<0xFF800000> : tensor<f32>
  %zero = transept.constant dense<0.000000e+00> : tensor<f32>
  %a = transept.where %mask, %zero, %low : (tensor<?x?xi1, #transept.dims<[batch, S]>>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[batch, S]>>
  %m = transept.reshape %a {allowZero = false} : (tensor<?x?xf32, #transept.dims<[batch, S]>>) -> tensor<?x1x1x?xf32, #transept.dims<[batch, 1, 1, S]>>
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %t = transept.add %s, %m : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x1x1x?xf32, #transept.dims<[batch, 1, 1, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %w = transept.softmax %t {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %nan = transept.is_nan %w : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xi1, #transept.dims<[batch, 4, T, S]>>
  %p = transept.where %nan, %zero, %w : (tensor<?x4x?x?xi1, #transept.dims<[batch, 4, T, S]>>, tensor<f32>, tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// The reduction runs over the wrong axis.
// CHECK-LABEL: func.func @softmax_over_queries
// CHECK-NOT: transept.attention
// CHECK: transept.softmax
func.func @softmax_over_queries(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %s {axis = 2} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// A mask after the softmax is no mask.
// CHECK-LABEL: func.func @mask_after_softmax
// CHECK-NOT: transept.attention
// CHECK: transept.softmax
func.func @mask_after_softmax(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %low = transept.constant dense<-3.40282347E+38> : tensor<f32>
  %zero = transept.constant dense<0.000000e+00> : tensor<f32>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[T]>>
  %j = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[S]>>
  %ic = transept.reshape %i {allowZero = false} : (tensor<?xi64, #transept.dims<[T]>>) -> tensor<?x1xi64, #transept.dims<[T, 1]>>
  %later = transept.greater %j, %ic : (tensor<?xi64, #transept.dims<[S]>>, tensor<?x1xi64, #transept.dims<[T, 1]>>) -> tensor<?x?xi1, #transept.dims<[T, S]>>
  %m = transept.where %later, %low, %zero : (tensor<?x?xi1, #transept.dims<[T, S]>>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[T, S]>>
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %w = transept.softmax %s {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.add %w, %m : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x?xf32, #transept.dims<[T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// A finite bias is added to visible scores: a mask would lose it.
// CHECK-LABEL: func.func @bias_is_no_mask
// CHECK-NOT: transept.attention
// CHECK: transept.softmax
func.func @bias_is_no_mask(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>, %bias: tensor<?x?xf32, #transept.dims<[T, S]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>> {
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %t = transept.add %s, %bias : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x?xf32, #transept.dims<[T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
}

// The weights themselves are an output.
// CHECK-LABEL: func.func @weights_used_elsewhere
// CHECK-NOT: transept.attention
// CHECK: transept.softmax
func.func @weights_used_elsewhere(%q: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, %k: tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>, %v: tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) {
  %s = transept.matmul %q, %k : (tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x16x?xf32, #transept.dims<[batch, 4, 16, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %p = transept.softmax %s {axis = 3} : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>) -> tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
  %o = transept.matmul %p, %v : (tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>, tensor<?x4x?x16xf32, #transept.dims<[batch, 4, S, 16]>>) -> tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>
  return %o, %p : tensor<?x4x?x16xf32, #transept.dims<[batch, 4, T, 16]>>, tensor<?x4x?x?xf32, #transept.dims<[batch, 4, T, S]>>
}

// CHECK-LABEL: func.func @stored_causal_mask
// CHECK: transept.attention {{.*}} empty_row uniform {{.*}}causal, causalOffset = #transept.dim<0>
func.func @stored_causal_mask(%q: tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>, %k: tensor<?x4x16x3xf32, #transept.dims<[batch, 4, 16, 3]>>, %v: tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>) -> tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>> {
  %m = transept.constant dense<[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %s = transept.matmul %q, %k : (tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>, tensor<?x4x16x3xf32, #transept.dims<[batch, 4, 16, 3]>>) -> tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>
  %t = transept.add %s, %m : (tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>, tensor<3x3xf32>) -> tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>) -> tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>
  %o = transept.matmul %p, %v : (tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>, tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>) -> tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>
  return %o : tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>
}

// CHECK-LABEL: func.func @stored_causal_mask_with_a_hole
// CHECK-NOT: transept.attention
// CHECK: transept.softmax
func.func @stored_causal_mask_with_a_hole(%q: tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>, %k: tensor<?x4x16x3xf32, #transept.dims<[batch, 4, 16, 3]>>, %v: tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>) -> tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>> {
  %m = transept.constant dense<[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [-1.0e9, 0.0, 0.0]]> : tensor<3x3xf32>
  %s = transept.matmul %q, %k : (tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>, tensor<?x4x16x3xf32, #transept.dims<[batch, 4, 16, 3]>>) -> tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>
  %t = transept.add %s, %m : (tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>, tensor<3x3xf32>) -> tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>) -> tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>
  %o = transept.matmul %p, %v : (tensor<?x4x3x3xf32, #transept.dims<[batch, 4, 3, 3]>>, tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>) -> tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>
  return %o : tensor<?x4x3x16xf32, #transept.dims<[batch, 4, 3, 16]>>
}
