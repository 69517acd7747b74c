// A cache that forgets its first position is none that positions are appended to.
// RUN: not transept-opt %s --transept-pass=transept-stage 2>&1 | FileCheck %s
// CHECK: the decoder's caches cannot be kept by the runtime
// CHECK-SAME: keys or values are not a cache with one new position behind
module attributes {transept.export = {kind = "decoder", roles = {decoder_only = {ids = "target_ids", pk = "past.self.key.0", pv = "past.self.value.0", nk = "present.self.key.0", nv = "present.self.value.0", out = "logits"}}}} {
func.func @decoder_only(%ids: tensor<?x1xi64, #transept.dims<[b, 1]>> {transept.name = "ids"}, %pk: tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>> {transept.name = "pk"}, %pv: tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>> {transept.name = "pv"}) -> (tensor<?x1x5xf32, #transept.dims<[b, 1, 5]>> {transept.name = "out"}, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>> {transept.name = "nk"}, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>> {transept.name = "nv"}) {
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
  %w = transept.slice %k {starts = [#transept.dim<0>, #transept.dim<0>, #transept.dim<1>, #transept.dim<0>], steps = array<i64: 1, 1, 1, 1>} : (tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>) -> tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>>
  return %logits, %w, %v : tensor<?x1x5xf32, #transept.dims<[b, 1, 5]>>, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p, 4]>>, tensor<?x2x?x4xf32, #transept.dims<[b, 2, p + 1, 4]>>
}
}
