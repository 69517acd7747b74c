// Caches and states that a decoder takes and returns become those of the session.
// RUN: transept-opt %s -split-input-file --transept-pass=transept-stage | FileCheck %s

// CHECK: encode = ""
// CHECK-SAME: kind = "decoder"
// CHECK-SAME: position_limit = 16
// CHECK-SAME: score = ""
// CHECK-SAME: strategy = "cached"
// CHECK-SAME: transept.staging = ["caches as exported: the decoder's 1 self caches
// CHECK: func.func @step
// CHECK: %[[P:.*]] = transept.state "step.position"
// CHECK: transept.gather %{{.*}}, %[[P]]
// CHECK: transept.cache_append {{.*}} : tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>
// CHECK-NEXT: transept.cache_attention
// CHECK: transept.search_head
// CHECK: func.func @advance
// CHECK: func.func @advance_beams
// CHECK-NOT: func.func
// CHECK-NOT: transept.concat
module attributes {transept.export = {kind = "decoder", roles = {decoder_only = {ids = "target_ids", pk = "past.self.key.0", pv = "past.self.value.0", nk = "present.self.key.0", nv = "present.self.value.0", out = "logits"}}}} {
func.func @decoder_only(%ids: tensor<?x1xi64, #transept.dims<[b, 1]>> {transept.name = "ids"}, %pk: tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>> {transept.name = "pk"}, %pv: tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>> {transept.name = "pv"}) -> (tensor<?x1x5xf32, #transept.dims<[b, 1, 5]>> {transept.name = "out"}, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>> {transept.name = "nk"}, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>> {transept.name = "nv"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %places = transept.constant dense<2.000000e+00> : tensor<16x8xf32>
  %head = transept.constant dense<3.000000e+00> : tensor<8x5xf32>
  %te = transept.gather %table, %ids {axis = 0} : (tensor<5x8xf32>, tensor<?x1xi64, #transept.dims<[b, 1]>>) -> tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>
  %p = transept.dim_value [#transept.dim<p>] : tensor<1xi64>
  %pe = transept.gather %places, %p {axis = 0} : (tensor<16x8xf32>, tensor<1xi64>) -> tensor<1x8xf32>
  %x = transept.add %te, %pe : (tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>, tensor<1x8xf32>) -> tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>
  %h = transept.reshape %x {allowZero = false} : (tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>) -> tensor<?x1x2x4xf32, #transept.dims<[b, 1, 2, 4]>>
  %t = transept.transpose %h {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x1x2x4xf32, #transept.dims<[b, 1, 2, 4]>>) -> tensor<?x2x1x4xf32, #transept.dims<[b, 2, 1, 4]>>
  %k = transept.concat %pk, %t {axis = 2 : i64} : (tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>>, tensor<?x2x1x4xf32, #transept.dims<[b, 2, 1, 4]>>) -> tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>
  %v = transept.concat %pv, %t {axis = 2 : i64} : (tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>>, tensor<?x2x1x4xf32, #transept.dims<[b, 2, 1, 4]>>) -> tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>
  %kr = transept.transpose %k {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, p + 1, 2, 4]>>
  %vr = transept.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[b, p + 1, 2, 4]>>
  %a = transept.attention %h, %kr, %vr empty_row uniform {scale = 5.000000e-01 : f32} : (tensor<?x1x2x4xf32, #transept.dims<[b, 1, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, p + 1, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[b, p + 1, 2, 4]>>) -> tensor<?x1x2x4xf32, #transept.dims<[b, 1, 2, 4]>>
  %y = transept.reshape %a {allowZero = false} : (tensor<?x1x2x4xf32, #transept.dims<[b, 1, 2, 4]>>) -> tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>
  %logits = transept.linear %y, %head : (tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>, tensor<8x5xf32>) -> tensor<?x1x5xf32, #transept.dims<[b, 1, 5]>>
  return %logits, %k, %v : tensor<?x1x5xf32, #transept.dims<[b, 1, 5]>>, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>
}
}

// -----

// What a step hands on is read by the parent of each row; a new row begins with what the encoder made, or with zeros.
// CHECK: "assumed: 'c' begins with zeros
// CHECK: func.func @step
// CHECK: %[[PARENT:.*]] = transept.state "step.parent"
// CHECK: %[[FROM:.*]] = transept.max %[[PARENT]]
// CHECK: %[[BEFORE:.*]] = transept.state "recurrent.0" : tensor<1x?x8xf32, #transept.dims<[1, rows, 8]>>
// CHECK: transept.gather %[[BEFORE]], %[[FROM]] {axis = 1 : i64}
// CHECK: transept.state "cross.0"
// CHECK: transept.where
// CHECK: transept.export "recurrent_in.0"
// CHECK: transept.state "recurrent.1"
// CHECK: transept.search_head
// CHECK: transept.export "recurrent.0"
// CHECK: transept.export "recurrent.1"
// CHECK: func.func @encode
// CHECK: transept.export "cross.0"
module attributes {transept.export = {kind = "encoder-decoder", roles = {encoder = {src = "source_ids", h = "encoder_result", memory = "encoder_states"}, decoder_with_past = {ids = "target_ids", h = "recurrent.0", c = "recurrent.1", h_out = "recurrent_out.0", c_out = "recurrent_out.1", out = "logits"}}}} {
func.func @encoder(%src: tensor<?x?xi64, #transept.dims<[b, s]>> {transept.name = "src"}) -> (tensor<?x?x8xf32, #transept.dims<[b, s, 8]>> {transept.name = "memory"}, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>> {transept.name = "h"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %e = transept.gather %table, %src {axis = 0} : (tensor<5x8xf32>, tensor<?x?xi64, #transept.dims<[b, s]>>) -> tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>
  %m = transept.reduce mean %e {axes = array<i64: 1>, keepdims = false, noopWithEmptyAxes = false} : (tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>) -> tensor<?x8xf32, #transept.dims<[b, 8]>>
  %h = transept.reshape %m {allowZero = false} : (tensor<?x8xf32, #transept.dims<[b, 8]>>) -> tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>
  return %e, %h : tensor<?x?x8xf32, #transept.dims<[b, s, 8]>>, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>
}
func.func @decoder_with_past(%ids: tensor<?x1xi64, #transept.dims<[b, 1]>> {transept.name = "ids"}, %h: tensor<1x?x8xf32, #transept.dims<[1, b, 8]>> {transept.name = "h"}, %c: tensor<1x?x8xf32, #transept.dims<[1, b, 8]>> {transept.name = "c"}) -> (tensor<?x5xf32, #transept.dims<[b, 5]>> {transept.name = "out"}, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>> {transept.name = "h_out"}, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>> {transept.name = "c_out"}) {
  %table = transept.constant dense<1.000000e+00> : tensor<5x8xf32>
  %head = transept.constant dense<3.000000e+00> : tensor<8x5xf32>
  %te = transept.gather %table, %ids {axis = 0} : (tensor<5x8xf32>, tensor<?x1xi64, #transept.dims<[b, 1]>>) -> tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>
  %x = transept.reshape %te {allowZero = false} : (tensor<?x1x8xf32, #transept.dims<[b, 1, 8]>>) -> tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>
  %n = transept.add %h, %x : (tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>) -> tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>
  %d = transept.mul %c, %n : (tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>) -> tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>
  %y = transept.reshape %d {allowZero = false} : (tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>) -> tensor<?x8xf32, #transept.dims<[b, 8]>>
  %logits = transept.linear %y, %head : (tensor<?x8xf32, #transept.dims<[b, 8]>>, tensor<8x5xf32>) -> tensor<?x5xf32, #transept.dims<[b, 5]>>
  return %logits, %n, %d : tensor<?x5xf32, #transept.dims<[b, 5]>>, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>, tensor<1x?x8xf32, #transept.dims<[1, b, 8]>>
}
}
