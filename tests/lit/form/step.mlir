// One decode step: caches, the search head, and rows that are not in use.
// RUN: transept-opt %s --transept-pass=transept-form | FileCheck %s

!x = tensor<?x1x32xf32, #transept.dims<[rows, 1, 32]>>
!heads = tensor<?x1x2x16xf32, #transept.dims<[rows, 1, 2, 16]>>
!cross = tensor<?x?x2x16xf32, #transept.dims<[batch, source, 2, 16]>>
!logits = tensor<?x1x5000xf32, #transept.dims<[rows, 1, 5000]>>

// Layer 1 lies behind layer 0: 2 heads x 16 positions x (16 + 16) elements each.
// CHECK-LABEL: kernel.entry @step
// CHECK: %[[LIVE:.*]] = kernel.state "step.live" <[1]> role "step" : tensor<1xi32>
// CHECK: kernel.state "step.token" <[rows]> role "step" : tensor<?xi64>
// CHECK: kernel.map domain [#transept.dim<rows>, {{.*}} live(%[[LIVE]]) {
// CHECK: %[[POOL:.*]] = kernel.state "cache.self" <[blocks, 2048]> role "self-cache" : tensor<?x2048xf32>
// CHECK: %[[TABLE:.*]] = kernel.state "step.block" <[rows, capacity]> role "step" : tensor<?x?xi32>
// CHECK: %[[POSITION:.*]] = kernel.state "step.position" <[rows]> role "step" : tensor<?xi64>
// CHECK: kernel.cache_append {{.*}}, %[[POOL]], %[[TABLE]], %[[POSITION]]) live(%[[LIVE]]) {keyOffset = 0 : i64, keySize = 16 : i64, kvHeads = 2 : i64, valueOffset = 512 : i64, valueSize = 16 : i64}
// CHECK: kernel.attend_cache {{.*}} live(%[[LIVE]]) {heads = 2 : i64, keyOffset = 0 : i64
// CHECK: kernel.cache_append {{.*}} {keyOffset = 1024 : i64, {{.*}} valueOffset = 1536 : i64
// CHECK: kernel.attend_cache {{.*}} keyOffset = 1024 : i64
// CHECK: kernel.state "cross.0" <[batch, source, 2, 16]> role "cross-cache"
// CHECK: kernel.attend_source {{.*}} live(%[[LIVE]]) {emptyRow = 0 : i64
// CHECK: %[[LOGITS:.*]] = kernel.contract rows <rows> k 32 parts [5000] {{.*}} live(%[[LIVE]])
// CHECK: kernel.export %[[LOGITS]] to "logits" <[rows, 5000]> role "search"
// CHECK: %[[BEST:.*]] = kernel.state "step.best" <[1]> role "step" : tensor<1xi32>
// CHECK: %[[HEAD:.*]]:5 = kernel.search_head {{.*}} #transept.dims<[rows, 3, topk]>
// CHECK-SAME: ins(%[[LOGITS]], %{{[0-9]+}}, %[[BEST]]) live(%[[LIVE]]) {blockSize = 2048 : i64, vocabulary = 5000 : i64}
// CHECK: kernel.export %[[HEAD]]#0 to "search.max" <[rows, 3]>
// CHECK: kernel.export %[[HEAD]]#1 to "search.sum" <[rows, 3]>
// CHECK: kernel.export %[[HEAD]]#2 to "search.value" <[rows, 3, topk]>
// CHECK: kernel.export %[[HEAD]]#3 to "search.token" <[rows, 3, topk]>
// CHECK: kernel.export %[[HEAD]]#4 to "search.special" <[rows, specials]>
func.func @step() {
  %table = transept.fill dense<1.0> : tensor<1xf32> : () -> tensor<5000x32xf32>
  %token = transept.state "step.token" : tensor<?x1xi64, #transept.dims<[rows, 1]>>
  %x = transept.gather %table, %token {axis = 0 : i64} : (tensor<5000x32xf32>, tensor<?x1xi64, #transept.dims<[rows, 1]>>) -> !x
  %h = transept.reshape %x {allowZero = false} : (!x) -> !heads
  transept.cache_append %h, %h {layer = 0 : i64} : !heads, !heads
  %0 = transept.cache_attention %h {layer = 0 : i64, scale = 0.25 : f32, kvHeads = 2 : i64, valueSize = 16 : i64} : (!heads) -> !heads
  transept.cache_append %0, %0 {layer = 1 : i64} : !heads, !heads
  %1 = transept.cache_attention %0 {layer = 1 : i64, scale = 0.25 : f32, kvHeads = 2 : i64, valueSize = 16 : i64} : (!heads) -> !heads
  %k = transept.state "cross.0" : !cross
  %2 = transept.cross_attention %1, %k, %k empty_row uniform {scale = 0.25 : f32} : (!heads, !cross, !cross) -> !heads
  %3 = transept.reshape %2 {allowZero = false} : (!heads) -> !x
  %w = transept.constant dense<0.5> : tensor<32x5000xf32>
  %logits = transept.linear %3, %w : (!x, tensor<32x5000xf32>) -> !logits
  transept.search_head %logits : !logits
  return
}
