// Branches and loops become labels and jumps; a branch whose results have one shape is a choice.
// RUN: transept-opt %s --transept-pass=transept-shapes --transept-pass=transept-form | FileCheck %s

!n = tensor<?xf32, #transept.dims<[n]>>
!m = tensor<?xf32, #transept.dims<[m]>>

// CHECK-LABEL: kernel.entry @shapes_differ
// CHECK: %[[R:.*]] = kernel.variable "if.0.value.0" in "if.0" <[either.0]>
// CHECK: kernel.branch %{{.*}} to "if.0.then" else "if.0.else"
// CHECK: kernel.label "if.0.then"
// CHECK: %[[T:.*]] = kernel.map domain [#transept.dim<n>]
// CHECK: kernel.label "if.0.then_results" sets ["either.0"] to [#transept.dim<n>] arena "if.0"
// CHECK-NEXT: kernel.set %[[T]] to %[[R]]
// CHECK: kernel.jump "if.0.end"
// CHECK: kernel.label "if.0.else_results" sets ["either.0"] to [#transept.dim<m>] arena "if.0"
// CHECK: kernel.label "if.0.end"
// CHECK-NEXT: kernel.return %[[R]]
func.func @shapes_differ(%c: tensor<i1> {transept.name = "c"}, %x: !n {transept.name = "x"}, %z: !m {transept.name = "z"}) -> (tensor<*xf32> {transept.name = "y"}) {
  %0 = transept.if %c {
    %1 = transept.neg %x : (!n) -> !n
    transept.yield %1 : !n
  } else {
    %1 = transept.abs %z : (!m) -> !m
    transept.yield %1 : !m
  } : (tensor<i1>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: kernel.entry @one_shape
// CHECK-NOT: kernel.label
func.func @one_shape(%c: tensor<i1> {transept.name = "c"}, %x: !n {transept.name = "x"}) -> (tensor<*xf32> {transept.name = "y"}) {
  %0 = transept.if %c {
    %1 = transept.neg %x : (!n) -> !n
    transept.yield %1 : !n
  } else {
    transept.yield %x : !n
  } : (tensor<i1>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// What is carried grows; what keeps its size has no symbol.
// CHECK-LABEL: kernel.entry @grows
// CHECK: %[[V:.*]] = kernel.variable "loop.0.value.2" in "loop.0" <[carried.[[K:.*]]]>
// CHECK: %[[W:.*]] = kernel.variable "loop.0.value.3" in "loop.0" <[m]>
// CHECK: kernel.label "loop.0.enter" sets ["carried.[[K]]", "loop.0.done.0"] to [#transept.dim<n>, #transept.dim<0>] arena "loop.0"
// CHECK: kernel.branch %{{.*}} to "loop.0.body" else "loop.0.end"
// CHECK: kernel.label "loop.0.next" sets ["carried.[[K]]", "loop.0.done.0"] to [#transept.dim<carried.[[K]] + m>, #transept.dim<loop.0.done.0 + 1>]
// CHECK: kernel.jump "loop.0.test"
func.func @grows(%count: tensor<i64> {transept.name = "count"}, %x: !n {transept.name = "x"}, %z: !m {transept.name = "z"})
    -> (tensor<*xf32> {transept.name = "y"}, tensor<*xf32> {transept.name = "w"}) {
  %0:2 = transept.loop count(%count) carries(%x, %z) {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<*xf32>, %w: tensor<*xf32>):
    %1 = transept.concat %v, %w {axis = 0 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %2 = transept.add %w, %z : (tensor<*xf32>, !m) -> tensor<*xf32>
    transept.yield %go, %1, %2 : tensor<i1>, tensor<*xf32>, tensor<*xf32>
  } : (tensor<i64>, !n, !m) -> (tensor<*xf32>, tensor<*xf32>)
  return %0#0, %0#1 : tensor<*xf32>, tensor<*xf32>
}
