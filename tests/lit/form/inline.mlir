// What is inlined, and what must not be.
// RUN: transept-opt %s --transept-pass=transept-form | FileCheck %s

!x = tensor<?x8xf32, #transept.dims<[n, 8]>>
!t = tensor<8x?xf32, #transept.dims<[8, n]>>

// A chain with single uses is one kernel, whatever it costs.
// CHECK-LABEL: kernel.entry @chain
// CHECK-COUNT-1: kernel.map
// CHECK-NOT: kernel.map
// CHECK: kernel.return
func.func @chain(%x: !x {transept.name = "x"}) -> (!t {transept.name = "y"}) {
  %0 = transept.tanh %x : (!x) -> !x
  %1 = transept.exp %0 : (!x) -> !x
  %2 = transept.transpose %1 {permutation = array<i64: 1, 0>} : (!x) -> !t
  %3 = transept.sqrt %2 : (!t) -> !t
  return %3 : !t
}

// A hyperbolic tangent is not computed twice.
// CHECK-LABEL: kernel.entry @expensive_for_two
// CHECK: %[[T:.*]] = kernel.map
// CHECK: math.tanh
// CHECK: kernel.map {{.*}} ins(%[[T]])
// CHECK-NOT: math.tanh
// CHECK: kernel.map {{.*}} ins(%[[T]])
// CHECK-NOT: math.tanh
// CHECK: kernel.return
func.func @expensive_for_two(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}, !x {transept.name = "z"}) {
  %0 = transept.tanh %x : (!x) -> !x
  %1 = transept.neg %0 : (!x) -> !x
  %2 = transept.abs %0 : (!x) -> !x
  return %1, %2 : !x, !x
}

// An addition is.
// CHECK-LABEL: kernel.entry @cheap_for_two
// CHECK-COUNT-2: kernel.map
// CHECK-NOT: kernel.map
// CHECK: kernel.return
func.func @cheap_for_two(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}, !x {transept.name = "z"}) {
  %0 = transept.add %x, %x : (!x, !x) -> !x
  %1 = transept.neg %0 : (!x) -> !x
  %2 = transept.abs %0 : (!x) -> !x
  return %1, %2 : !x, !x
}

// Nor is it computed for every row it is broadcast to.
// CHECK-LABEL: kernel.entry @expensive_and_repeated
// CHECK: kernel.map domain [#transept.dim<8>]
// CHECK: math.tanh
// CHECK: kernel.map domain [#transept.dim<n>, #transept.dim<8>]
// CHECK-NOT: math.tanh
// CHECK: kernel.return
func.func @expensive_and_repeated(%x: !x {transept.name = "x"}, %b: tensor<8xf32> {transept.name = "b"}) -> (!x {transept.name = "y"}) {
  %0 = transept.tanh %b : (tensor<8xf32>) -> tensor<8xf32>
  %1 = transept.add %x, %0 : (!x, tensor<8xf32>) -> !x
  return %1 : !x
}

// What a reduction in loops reads once is computed there, one that looks at some elements again and again is not.
// CHECK-LABEL: kernel.entry @reduced_once
// CHECK-COUNT-1: kernel.map domain [#transept.dim<8>]
// CHECK: scf.for
// CHECK: math.tanh
// CHECK-NOT: kernel.map
// CHECK: kernel.return
func.func @reduced_once(%x: !x {transept.name = "x"}) -> (tensor<8xf32> {transept.name = "y"}) {
  %0 = transept.tanh %x : (!x) -> !x
  %1 = transept.reduce sum %0 {axes = array<i64: 0>, keepdims = false, noopWithEmptyAxes = false} : (!x) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
// CHECK-LABEL: kernel.entry @reduced_again
// CHECK: kernel.map domain [#transept.dim<8>]
// CHECK: math.tanh
// CHECK: kernel.map domain [#transept.dim<8>]
// CHECK: scf.for
// CHECK-NOT: math.tanh
// CHECK: kernel.return
func.func @reduced_again(%x: !x {transept.name = "x"}, %b: tensor<8xf32> {transept.name = "b"}) -> (tensor<8xf32> {transept.name = "y"}) {
  %0 = transept.tanh %b : (tensor<8xf32>) -> tensor<8xf32>
  %1 = transept.add %x, %0 : (!x, tensor<8xf32>) -> !x
  %2 = transept.reduce sum %1 {axes = array<i64: 0>, keepdims = false, noopWithEmptyAxes = false} : (!x) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// A result that is returned stays, and is read from memory.
// CHECK-LABEL: kernel.entry @returned_too
// CHECK: %[[A:.*]] = kernel.map
// CHECK: %[[B:.*]] = kernel.map {{.*}} ins(%[[A]])
// CHECK: kernel.return %[[A]], %[[B]]
func.func @returned_too(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}, !x {transept.name = "z"}) {
  %0 = transept.add %x, %x : (!x, !x) -> !x
  %1 = transept.neg %0 : (!x) -> !x
  return %0, %1 : !x, !x
}

// Axes that are split or joined are index arithmetic.
// CHECK-LABEL: kernel.entry @through_views
// CHECK: kernel.map domain [#transept.dim<n>, #transept.dim<2>, #transept.dim<4>]
// CHECK: %[[I:.*]] = arith.muli %{{.*}}, %c4
// CHECK: %[[J:.*]] = arith.addi %[[I]]
// CHECK: kernel.load %{{.*}}[%{{.*}}, %[[J]]]
// CHECK-NOT: kernel.map
// CHECK: kernel.return
func.func @through_views(%x: !x {transept.name = "x"}) -> (tensor<?x2x4xf32, #transept.dims<[n, 2, 4]>> {transept.name = "y"}) {
  %0 = transept.tanh %x : (!x) -> !x
  %1 = transept.reshape %0 {allowZero = false} : (!x) -> tensor<?x2x4xf32, #transept.dims<[n, 2, 4]>>
  %2 = transept.neg %1 : (tensor<?x2x4xf32, #transept.dims<[n, 2, 4]>>) -> tensor<?x2x4xf32, #transept.dims<[n, 2, 4]>>
  return %2 : tensor<?x2x4xf32, #transept.dims<[n, 2, 4]>>
}
