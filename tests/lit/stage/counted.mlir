// Positions that a graph counts, as M2M100 does, are positions; a running sum of the ids themselves is none.
// RUN: transept-opt %s -split-input-file --transept-pass=transept-stage | FileCheck %s

// CHECK: strategy = "cached"
// CHECK-SAME: tokens given to the decoder are never 1 (the graph would not count them as positions)
// CHECK: func.func @step
// CHECK-NOT: transept.cumsum
// CHECK: transept.cache_attention
// CHECK: func.func @encode
module attributes {transept.export = {kind = "encoder-decoder", roles = {monolith = {src = "source_ids", tgt = "target_ids", out = "logits"}}}} {
func.func @monolith(%src: tensor<?x?xi64, #transept.dims<[b, s]>> {transept.name = "src"}, %tgt: tensor<?x?xi64, #transept.dims<[b, t]>> {transept.name = "tgt"}) -> (tensor<?x?x5xf32, #transept.dims<[b, t, 5]>> {transept.name = "out"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %places = transept.constant dense<2.000000e+00> : tensor<16x8xf32>
  %head = transept.constant dense<3.000000e+00> : tensor<8x5xf32>
  %se = transept.gather %table, %src {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, s]>>) -> tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>
  %sk = transept.reshape %se {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>
  %te = transept.gather %table, %tgt {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %pad = transept.constant dense<1> : tensor<i64>
  %padding = transept.equal %tgt, %pad : (tensor<?x?xi64, #transept.dims<[b, t]>>, tensor<i64>) -> tensor<?x?xi1, #transept.dims<[b, t]>>
  %kept = transept.not %padding : (tensor<?x?xi1, #transept.dims<[b, t]>>) -> tensor<?x?xi1, #transept.dims<[b, t]>>
  %one = transept.cast %kept {to = i64} : (tensor<?x?xi1, #transept.dims<[b, t]>>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %sum = transept.cumsum %one {axis = 1 : i64, exclusive = false, reverse = false} : (tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %counted = transept.mul %sum, %one : (tensor<?x?xi64, #transept.dims<[b, t]>>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %at = transept.add %counted, %pad : (tensor<?x?xi64, #transept.dims<[b, t]>>, tensor<i64>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %pe = transept.gather %places, %at {axis = 0} : (tensor<16x8xf32>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %x = transept.add %te, %pe : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
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

// CHECK: strategy = "recompute"
// CHECK-SAME: mixes target positions
// CHECK: func.func @step
// CHECK: transept.cumsum
module attributes {transept.export = {kind = "encoder-decoder", roles = {monolith = {src = "source_ids", tgt = "target_ids", out = "logits"}}}} {
func.func @monolith(%src: tensor<?x?xi64, #transept.dims<[b, s]>> {transept.name = "src"}, %tgt: tensor<?x?xi64, #transept.dims<[b, t]>> {transept.name = "tgt"}) -> (tensor<?x?x5xf32, #transept.dims<[b, t, 5]>> {transept.name = "out"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %places = transept.constant dense<2.000000e+00> : tensor<16x8xf32>
  %head = transept.constant dense<3.000000e+00> : tensor<8x5xf32>
  %se = transept.gather %table, %src {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, s]>>) -> tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>
  %sk = transept.reshape %se {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>
  %te = transept.gather %table, %tgt {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %pad = transept.constant dense<1> : tensor<i64>
  %padding = transept.equal %tgt, %pad : (tensor<?x?xi64, #transept.dims<[b, t]>>, tensor<i64>) -> tensor<?x?xi1, #transept.dims<[b, t]>>
  %kept = transept.not %padding : (tensor<?x?xi1, #transept.dims<[b, t]>>) -> tensor<?x?xi1, #transept.dims<[b, t]>>
  %one = transept.cast %kept {to = i64} : (tensor<?x?xi1, #transept.dims<[b, t]>>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %sum = transept.cumsum %tgt {axis = 1 : i64, exclusive = false, reverse = false} : (tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %counted = transept.mul %sum, %one : (tensor<?x?xi64, #transept.dims<[b, t]>>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %at = transept.add %counted, %pad : (tensor<?x?xi64, #transept.dims<[b, t]>>, tensor<i64>) -> tensor<?x?xi64, #transept.dims<[b, t]>>
  %pe = transept.gather %places, %at {axis = 0} : (tensor<16x8xf32>, tensor<?x?xi64, #transept.dims<[b, t]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %x = transept.add %te, %pe : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %q = transept.reshape %x {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %a = transept.attention %q, %q, %q empty_row uniform {causal, causalOffset = #transept.dim<0>, scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %c = transept.attention %a, %sk, %sk empty_row uniform {scale = 5.000000e-01 : f32} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, s, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>
  %y = transept.reshape %c {allowZero = false} : (tensor<?x?x2x4xf32, #transept.dims<[b, t, 2, 4]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %z = transept.relu %y : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>) -> tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>
  %logits = transept.linear %z, %head : (tensor<?x?x8xf32, #transept.dims<[b, t, 8]>>, tensor<8x5xf32>) -> tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
  return %logits : tensor<?x?x5xf32, #transept.dims<[b, t, 5]>>
}
}
