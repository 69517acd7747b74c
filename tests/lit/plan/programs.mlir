// Buffers, barriers, and functions that equal kernels share.
// RUN: transept-opt %s --transept-pass=transept-form --transept-pass=transept-plan | FileCheck %s

!x = tensor<?x64xf32, #transept.dims<[n, 64]>>
!wide = tensor<?x256xf32, #transept.dims<[n, 256]>>

// CHECK: module attributes {kernel.checks = ["Gather node 'emb' reads index {} outside [-9, 8]"]}

// Two layers, one set of functions. Slots are used again once a barrier has passed; a slot grows where a larger tensor
// can take it over.
// CHECK-LABEL: kernel.program @layers symbols ["n"]
// CHECK: %[[X:.*]] = kernel.buffer "input" "x" <[n, 64]> : <f32>
// CHECK: %[[Y:.*]] = kernel.buffer "output" "y" <[n, 64]> : <f32>
// CHECK: %[[A:.*]] = kernel.buffer "arena" {{.*}} <[n, 256]> at <0>
// CHECK: %[[B:.*]] = kernel.buffer "arena" {{.*}} <[n, 64]> at <1024 * n>
// CHECK: %[[C:.*]] = kernel.buffer "arena" {{.*}} <[n, 256]> at <0>
// CHECK: kernel.segment arena 0 <1280 * n> next 1 {
// CHECK: kernel.dispatch @[[UP:contract_[0-9]+]](%[[X]], %{{.*}}, %[[A]]) :
// CHECK: kernel.dispatch @[[DOWN:contract_[0-9]+]](%[[A]], %{{.*}}, %[[X]], %[[B]]) {barrier} :
// CHECK: kernel.dispatch @[[UP]](%[[B]], %{{.*}}, %[[C]]) {barrier} :
// CHECK: kernel.dispatch @[[DOWN]](%[[C]], %{{.*}}, %[[B]], %[[Y]]) {barrier} :
func.func @layers(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}) {
  %up = transept.constant dense<0.5> : tensor<64x256xf32>
  %down = transept.constant dense<0.25> : tensor<256x64xf32>
  %0 = transept.linear %x, %up : (!x, tensor<64x256xf32>) -> !wide
  %1 = transept.relu %0 : (!wide) -> !wide
  %2 = transept.linear %1, %down : (!wide, tensor<256x64xf32>) -> !x
  %3 = transept.add %2, %x : (!x, !x) -> !x
  %4 = transept.linear %3, %up : (!x, tensor<64x256xf32>) -> !wide
  %5 = transept.relu %4 : (!wide) -> !wide
  %6 = transept.linear %5, %down : (!wide, tensor<256x64xf32>) -> !x
  %7 = transept.add %6, %3 : (!x, !x) -> !x
  return %7 : !x
}

// Nothing waits where nothing depends.
// CHECK-LABEL: kernel.program @independent
// CHECK: kernel.dispatch @{{.*}} : {{.*}}
// CHECK-NOT: barrier
// CHECK: kernel.func
func.func @independent(%x: !x {transept.name = "x"}) -> (!x {transept.name = "y"}, !x {transept.name = "z"}) {
  %0 = transept.tanh %x : (!x) -> !x
  %1 = transept.exp %x : (!x) -> !x
  return %0, %1 : !x, !x
}

// CHECK-DAG: kernel.bounded {{.*}} check "Gather node 'emb' reads index {} outside [-9, 8]" {id = 1 : i64}
func.func @checks(%t: tensor<9x4xf32> {transept.name = "t"}, %at: tensor<?xi64, #transept.dims<[n]>> {transept.name = "at"})
    -> (tensor<?x4xf32, #transept.dims<[n, 4]>> {transept.name = "y"}) {
  %0 = transept.gather %t, %at {axis = 0 : i64} : (tensor<9x4xf32>, tensor<?xi64, #transept.dims<[n]>>) -> tensor<?x4xf32, #transept.dims<[n, 4]>> loc("emb")
  return %0 : tensor<?x4xf32, #transept.dims<[n, 4]>>
}
