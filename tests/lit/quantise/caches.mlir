// Keys and values are rounded where they are written; a state that something else reads, and what the host writes, stay.
// RUN: transept-opt %s --transept-pass='transept-narrow-caches{type=bf16}' | FileCheck %s
// RUN: transept-opt %s --transept-pass=transept-narrow-caches | FileCheck %s --check-prefix=SAME
// RUN: not transept-opt %s --transept-pass='transept-narrow-caches{type=fp8}' 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: module attributes {transept.narrow_caches}
// SAME-NOT: bf16
// NONE: error: there are no caches in 'fp8'

// CHECK-LABEL: func.func @encode
// CHECK-DAG: %[[K:.*]] = transept.cast %arg0 {{.*}}to = bf16{{.*}} -> tensor<?x?x2x4xbf16
// CHECK-DAG: transept.export "cross.0", %[[K]] : tensor<?x?x2x4xbf16
// CHECK: transept.export "cross.1", %arg0 : tensor<?x?x2x4xf32
func.func @encode(%x: tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>) {
  transept.export "cross.0", %x : tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>
  transept.export "cross.1", %x : tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>
  return
}

// CHECK-LABEL: func.func @step
// CHECK: transept.state "cross.0" : tensor<?x?x2x4xbf16
// CHECK: transept.state "cross.1" : tensor<?x?x2x4xf32
// CHECK: transept.state "given" : tensor<?x?x2x4xf32
// CHECK: %[[R:.*]] = transept.cast %arg0
// CHECK: transept.cache_append %[[R]], %{{.*}} : tensor<?x1x2x4xbf16
// CHECK: transept.cross_attention %{{.*}}, %{{.*}}, %{{.*}} empty_row
// CHECK-SAME: -> tensor<?x1x2x4xf32
func.func @step(%q: tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>) -> (tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>) {
  %a = transept.state "cross.0" : tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>
  %b = transept.state "cross.1" : tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>
  %c = transept.state "given" : tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>
  transept.cache_append %q, %q {layer = 0 : i64} : tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>, tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>
  %0 = transept.cross_attention %q, %a, %a empty_row uniform {scale = 1.0 : f32} : (tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>) -> tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>
  %1 = transept.cross_attention %0, %b, %c empty_row uniform {scale = 1.0 : f32} : (tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>) -> tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>
  %2 = transept.relu %b : (tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>) -> tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>
  return %1, %2 : tensor<?x1x2x4xf32, #transept.dims<[rows, 1, 2, 4]>>, tensor<?x?x2x4xf32, #transept.dims<[batch, source, 2, 4]>>
}
