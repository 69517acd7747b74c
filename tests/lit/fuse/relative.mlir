// A bias that depends on head and distance becomes a table by distance; one that depends on positions otherwise does not.
// RUN: transept-opt %s --transept-pass=transept-fuse | FileCheck %s

// Buckets as T5 has them: distances up to 2 are told apart, the logarithm of others, up to 8; later keys have the second half.
// CHECK-LABEL: func.func @both_directions
// CHECK: %[[TABLE:.*]] = transept.weight {{.*}} : tensor<2x9xf32>
// CHECK: transept.attention {{.*}} key_mask(%arg3) relative(%[[TABLE]]) empty_row uniform {relativeOrigin = #transept.dim<-4>, scale = 1.000000e+00
// CHECK-NOT: transept.softmax
func.func @both_directions(%q: tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>, %k: tensor<?x2x16x?xf32, #transept.dims<[batch, 2, 16, T]>>, %v: tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>, %mask: tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>> {
  %zero = transept.constant dense<0> : tensor<i64>
  %two = transept.constant dense<2> : tensor<i64>
  %three = transept.constant dense<3> : tensor<i64>
  %four = transept.constant dense<4> : tensor<i64>
  %twof = transept.constant dense<2.0> : tensor<f32>
  %onef = transept.constant dense<1.0> : tensor<f32>
  %low = transept.constant dense<-3.40282347E+38> : tensor<f32>
  %logarithm = transept.constant dense<1.3862944> : tensor<f32>
  %table = transept.constant dense<[[0.0, 1.0], [0.1, 1.1], [0.2, 1.2], [0.3, 1.3], [0.4, 1.4], [0.5, 1.5], [0.6, 1.6], [0.7, 1.7]]> : tensor<8x2xf32>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[T]>>
  %row = transept.reshape %i {allowZero = false} : (tensor<?xi64, #transept.dims<[T]>>) -> tensor<?x1xi64, #transept.dims<[T, 1]>>
  %d = transept.sub %i, %row : (tensor<?xi64, #transept.dims<[T]>>, tensor<?x1xi64, #transept.dims<[T, 1]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %later = transept.greater %d, %zero : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<i64>) -> tensor<?x?xi1, #transept.dims<[T, T]>>
  %half = transept.cast %later {to = i64} : (tensor<?x?xi1, #transept.dims<[T, T]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %base = transept.mul %half, %four : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<i64>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %abs = transept.abs %d : (tensor<?x?xi64, #transept.dims<[T, T]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %small = transept.less %abs, %two : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<i64>) -> tensor<?x?xi1, #transept.dims<[T, T]>>
  %absf = transept.cast %abs {to = f32} : (tensor<?x?xi64, #transept.dims<[T, T]>>) -> tensor<?x?xf32, #transept.dims<[T, T]>>
  %share = transept.div %absf, %twof : (tensor<?x?xf32, #transept.dims<[T, T]>>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[T, T]>>
  %log = transept.log %share : (tensor<?x?xf32, #transept.dims<[T, T]>>) -> tensor<?x?xf32, #transept.dims<[T, T]>>
  %logs = transept.div %log, %logarithm : (tensor<?x?xf32, #transept.dims<[T, T]>>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[T, T]>>
  %steps = transept.mul %logs, %twof : (tensor<?x?xf32, #transept.dims<[T, T]>>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[T, T]>>
  %whole = transept.cast %steps {to = i64} : (tensor<?x?xf32, #transept.dims<[T, T]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %shifted = transept.add %whole, %two : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<i64>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %bound = transept.min %shifted, %three : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<i64>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %bucket = transept.where %small, %abs, %bound : (tensor<?x?xi1, #transept.dims<[T, T]>>, tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<?x?xi64, #transept.dims<[T, T]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %index = transept.add %base, %bucket : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<?x?xi64, #transept.dims<[T, T]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %picked = transept.gather %table, %index {axis = 0 : i64} : (tensor<8x2xf32>, tensor<?x?xi64, #transept.dims<[T, T]>>) -> tensor<?x?x2xf32, #transept.dims<[T, T, 2]>>
  %headed = transept.transpose %picked {permutation = array<i64: 2, 0, 1>} : (tensor<?x?x2xf32, #transept.dims<[T, T, 2]>>) -> tensor<2x?x?xf32, #transept.dims<[2, T, T]>>
  %maskf = transept.cast %mask {to = f32} : (tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<?x?xf32, #transept.dims<[batch, T]>>
  %away = transept.sub %onef, %maskf : (tensor<f32>, tensor<?x?xf32, #transept.dims<[batch, T]>>) -> tensor<?x?xf32, #transept.dims<[batch, T]>>
  %lows = transept.mul %away, %low : (tensor<?x?xf32, #transept.dims<[batch, T]>>, tensor<f32>) -> tensor<?x?xf32, #transept.dims<[batch, T]>>
  %keys = transept.reshape %lows {allowZero = false} : (tensor<?x?xf32, #transept.dims<[batch, T]>>) -> tensor<?x1x1x?xf32, #transept.dims<[batch, 1, 1, T]>>
  %bias = transept.add %headed, %keys : (tensor<2x?x?xf32, #transept.dims<[2, T, T]>>, tensor<?x1x1x?xf32, #transept.dims<[batch, 1, 1, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %s = transept.matmul %q, %k : (tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>, tensor<?x2x16x?xf32, #transept.dims<[batch, 2, 16, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %t = transept.add %s, %bias : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>, tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %o = transept.matmul %p, %v : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>, tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>) -> tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>
  return %o : tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>
}

// Sums of positions are no distances.
// CHECK-LABEL: func.func @not_a_distance
// CHECK: transept.softmax
func.func @not_a_distance(%q: tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>, %k: tensor<?x2x16x?xf32, #transept.dims<[batch, 2, 16, T]>>, %v: tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>) -> tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>> {
  %three = transept.constant dense<3> : tensor<i64>
  %table = transept.constant dense<[[0.0, 1.0], [0.1, 1.1], [0.2, 1.2], [0.3, 1.3]]> : tensor<4x2xf32>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[T]>>
  %row = transept.reshape %i {allowZero = false} : (tensor<?xi64, #transept.dims<[T]>>) -> tensor<?x1xi64, #transept.dims<[T, 1]>>
  %d = transept.add %i, %row : (tensor<?xi64, #transept.dims<[T]>>, tensor<?x1xi64, #transept.dims<[T, 1]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %index = transept.min %d, %three : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<i64>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %picked = transept.gather %table, %index {axis = 0 : i64} : (tensor<4x2xf32>, tensor<?x?xi64, #transept.dims<[T, T]>>) -> tensor<?x?x2xf32, #transept.dims<[T, T, 2]>>
  %headed = transept.transpose %picked {permutation = array<i64: 2, 0, 1>} : (tensor<?x?x2xf32, #transept.dims<[T, T, 2]>>) -> tensor<2x?x?xf32, #transept.dims<[2, T, T]>>
  %s = transept.matmul %q, %k : (tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>, tensor<?x2x16x?xf32, #transept.dims<[batch, 2, 16, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %t = transept.add %s, %headed : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>, tensor<2x?x?xf32, #transept.dims<[2, T, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %o = transept.matmul %p, %v : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>, tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>) -> tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>
  return %o : tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>
}

// A distance without a bound has no table: there is no last column.
// CHECK-LABEL: func.func @without_a_bound
// CHECK: transept.softmax
func.func @without_a_bound(%q: tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>, %k: tensor<?x2x16x?xf32, #transept.dims<[batch, 2, 16, T]>>, %v: tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>) -> tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>> {
  %zero = transept.constant dense<0> : tensor<i64>
  %slopes = transept.constant dense<[[[0.5]], [[0.25]]]> : tensor<2x1x1xf32>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[T]>>
  %row = transept.reshape %i {allowZero = false} : (tensor<?xi64, #transept.dims<[T]>>) -> tensor<?x1xi64, #transept.dims<[T, 1]>>
  %d = transept.sub %i, %row : (tensor<?xi64, #transept.dims<[T]>>, tensor<?x1xi64, #transept.dims<[T, 1]>>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %past = transept.min %d, %zero : (tensor<?x?xi64, #transept.dims<[T, T]>>, tensor<i64>) -> tensor<?x?xi64, #transept.dims<[T, T]>>
  %df = transept.cast %past {to = f32} : (tensor<?x?xi64, #transept.dims<[T, T]>>) -> tensor<?x?xf32, #transept.dims<[T, T]>>
  %headed = transept.mul %slopes, %df : (tensor<2x1x1xf32>, tensor<?x?xf32, #transept.dims<[T, T]>>) -> tensor<2x?x?xf32, #transept.dims<[2, T, T]>>
  %s = transept.matmul %q, %k : (tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>, tensor<?x2x16x?xf32, #transept.dims<[batch, 2, 16, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %t = transept.add %s, %headed : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>, tensor<2x?x?xf32, #transept.dims<[2, T, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %p = transept.softmax %t {axis = 3} : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>) -> tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>
  %o = transept.matmul %p, %v : (tensor<?x2x?x?xf32, #transept.dims<[batch, 2, T, T]>>, tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>) -> tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>
  return %o : tensor<?x2x?x16xf32, #transept.dims<[batch, 2, T, 16]>>
}
