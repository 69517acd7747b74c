// One position from caches where that is proved; the prefix again where it is not, with the node that broke the proof.
// RUN: transept-opt %s -split-input-file --transept-pass=transept-stage | FileCheck %s

// CHECK: strategy = "cached"
// CHECK-SAME: transept.staging = [{{.*}}"caches derived: one position is computed from 1 self caches
// CHECK: func.func @step
// CHECK-DAG: transept.state "step.token" : tensor<?x1xi64, #transept.dims<[rows, 1]>>
// CHECK-DAG: %[[P:.*]] = transept.state "step.position"
// CHECK: transept.gather %{{.*}}, %[[P]]
// CHECK: transept.cache_append
// CHECK-NEXT: transept.cache_attention
// CHECK: %[[K:.*]] = transept.state "cross.0"
// CHECK: transept.cross_attention %{{.*}}, %[[K]], %[[K]]
// CHECK: transept.search_head
// The best candidate of the head becomes the token at the next position; of equal ones, that of the first block.
// CHECK: func.func @advance
// CHECK: transept.argmax %{{.*}} {axis = 1 : i64, keepdims = true, selectLastIndex = false}
// CHECK: transept.export "step.token"
// CHECK: transept.add
// CHECK: transept.export "step.position"
// Ranks are counted: of a row's candidates, then of those of all rows of the search. What positions behind the last one
// have as their places stays the row's own.
// CHECK: func.func @advance_beams
// CHECK: transept.reduce log_sum_exp
// CHECK: transept.reduce sum %{{.*}} {axes = array<i64: 2>
// CHECK: transept.reduce sum %{{.*}} {axes = array<i64: 2, 3>
// CHECK: %[[TABLE:.*]] = transept.state "step.block"
// CHECK: %[[P:.*]] = transept.state "step.position"
// CHECK: %[[NEW:.*]] = transept.less %[[P]]
// CHECK: %[[MOVED:.*]] = transept.gather %[[TABLE]]
// CHECK: transept.where %[[NEW]], %[[TABLE]], %[[MOVED]]
// CHECK-NEXT: transept.export "step.block"
// CHECK: func.func @encode
// CHECK: transept.export "cross.0"
module attributes {transept.export = {kind = "encoder-decoder", roles = {monolith = {src = "source_ids", tgt = "target_ids", out = "logits"}}}} {
func.func @monolith(%src: tensor<?x?xi64, #transept.dims<[b, s]>> {transept.name = "src"}, %tgt: tensor<?x?xi64, #transept.dims<[b, t]>> {transept.name = "tgt"}) -> (tensor<?x?x5xf32, #transept.dims<[b, t, 5]>> {transept.name = "out"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %places = transept.constant dense<2.000000e+00> : tensor<16x8xf32>
  %head = transept.constant dense<3.000000e+00> : tensor<8x5xf32>
  %se = transept.gather %table, %src {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, s]>>) -> tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>
  %sk = transept.reshape %se {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>
  %te = transept.gather %table, %tgt {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[t]>>
  %pe = transept.gather %places, %i {axis = 0} : (tensor<16x8xf32>, tensor<?xi64, #transept.dims<[t]>>) -> tensor<?x8xf32, #transept.dims<[t, 8]>>
  %x = transept.add %te, %pe : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<?x8xf32, #transept.dims<[t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %q = transept.reshape %x {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %a = transept.attention %q, %q, %q empty_row uniform {causal, causalOffset = #transept.dim<0>, scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %c = transept.attention %a, %sk, %sk empty_row uniform {scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %y = transept.reshape %c {allowZero = false} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %z = transept.relu %y : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %logits = transept.linear %z, %head : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<8x5xf32>) -> tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
  return %logits : tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
}
}

// -----

// Attention that sees later positions has no cache.
// CHECK: strategy = "recompute"
// CHECK-SAME: attention over the target is not causal
// CHECK: func.func @step
// CHECK-NOT: transept.cache_append
// CHECK: transept.state "step.prefix" : tensor<?x?xi64, #transept.dims<[rows, target]>>
module attributes {transept.export = {kind = "encoder-decoder", roles = {monolith = {src = "source_ids", tgt = "target_ids", out = "logits"}}}} {
func.func @monolith(%src: tensor<?x?xi64, #transept.dims<[b, s]>> {transept.name = "src"}, %tgt: tensor<?x?xi64, #transept.dims<[b, t]>> {transept.name = "tgt"}) -> (tensor<?x?x5xf32, #transept.dims<[b, t, 5]>> {transept.name = "out"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %places = transept.constant dense<2.000000e+00> : tensor<16x8xf32>
  %head = transept.constant dense<3.000000e+00> : tensor<8x5xf32>
  %se = transept.gather %table, %src {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, s]>>) -> tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>
  %sk = transept.reshape %se {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>
  %te = transept.gather %table, %tgt {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[t]>>
  %pe = transept.gather %places, %i {axis = 0} : (tensor<16x8xf32>, tensor<?xi64, #transept.dims<[t]>>) -> tensor<?x8xf32, #transept.dims<[t, 8]>>
  %x = transept.add %te, %pe : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<?x8xf32, #transept.dims<[t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %q = transept.reshape %x {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %a = transept.attention %q, %q, %q empty_row uniform {scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %c = transept.attention %a, %sk, %sk empty_row uniform {scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %y = transept.reshape %c {allowZero = false} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %z = transept.relu %y : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %logits = transept.linear %z, %head : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<8x5xf32>) -> tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
  return %logits : tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
}
}

// -----

// A mean over positions mixes them.
// CHECK: strategy = "recompute"
// CHECK-SAME: mixes target positions
// CHECK-NOT: transept.cache_append
// CHECK: transept.state "step.prefix"
module attributes {transept.export = {kind = "encoder-decoder", roles = {monolith = {src = "source_ids", tgt = "target_ids", out = "logits"}}}} {
func.func @monolith(%src: tensor<?x?xi64, #transept.dims<[b, s]>> {transept.name = "src"}, %tgt: tensor<?x?xi64, #transept.dims<[b, t]>> {transept.name = "tgt"}) -> (tensor<?x?x5xf32, #transept.dims<[b, t, 5]>> {transept.name = "out"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %places = transept.constant dense<2.000000e+00> : tensor<16x8xf32>
  %head = transept.constant dense<3.000000e+00> : tensor<8x5xf32>
  %se = transept.gather %table, %src {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, s]>>) -> tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>
  %sk = transept.reshape %se {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>
  %te = transept.gather %table, %tgt {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %i = transept.range {startDim = #transept.dim<0>, stepValue = 1 : i64} : () -> tensor<?xi64, #transept.dims<[t]>>
  %pe = transept.gather %places, %i {axis = 0} : (tensor<16x8xf32>, tensor<?xi64, #transept.dims<[t]>>) -> tensor<?x8xf32, #transept.dims<[t, 8]>>
  %x = transept.add %te, %pe : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<?x8xf32, #transept.dims<[t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %q = transept.reshape %x {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %a = transept.attention %q, %q, %q empty_row uniform {causal, causalOffset = #transept.dim<0>, scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %c = transept.attention %a, %sk, %sk empty_row uniform {scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %y = transept.reshape %c {allowZero = false} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %m = transept.reduce mean %y {axes = array<i64: 1>, keepdims = true, noopWithEmptyAxes = false} : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>
  %z = transept.add %y, %m : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %logits = transept.linear %z, %head : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<8x5xf32>) -> tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
  return %logits : tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
}
}
