// Sizes that only data says: computed, read back under the names that inference gave them, and used by what comes after.
// RUN: transept-opt %s --transept-pass=transept-shapes --transept-pass=transept-read-sizes | FileCheck %s
// RUN: transept-opt %s --transept-pass=transept-shapes --transept-pass=transept-read-sizes --transept-pass=transept-form --transept-pass=transept-plan | FileCheck %s --check-prefix=PLAN

!f = tensor<?x?xf32, #transept.dims<[b, c]>>

// CHECK-LABEL: @reshape
// CHECK-SAME: {lhs = #transept.dim<b * c>, message = "{{.*}}", relation = "eq", rhs = #transept.dim<reshaped.0 * reshaped.1>}
// CHECK: transept.read_sizes %{{.*}} to ["reshaped.0", "reshaped.1"] : tensor<2xi64>
// CHECK: transept.reshape %arg0 {{.*}}-> tensor<?x?xf32, #transept.dims<[reshaped.0, reshaped.1]>>

// The guard is checked when the second segment is entered, where the output's memory is set up as well.
// PLAN: kernel.program @reshape symbols ["b", "c"] run_time ["reshaped.0", "reshaped.1"]
// PLAN-SAME: segment = 1
// PLAN: kernel.buffer "output" "y" <[reshaped.0, reshaped.1]> arena 1
// PLAN: kernel.segment arena 0 {{.*}} next 1
// PLAN: kernel.read_back %{{.*}} to ["reshaped.0", "reshaped.1"]
// PLAN: kernel.segment arena 1 {{.*}} next 2
func.func @reshape(%x: !f {transept.name = "x"}, %s: tensor<2xi64> {transept.name = "s"}) -> (tensor<*xf32> {transept.name = "y"}) {
  %0 = transept.reshape %x, %s {allowZero = false} : (!f, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// A shape that symbols say is read from nowhere.
// CHECK-LABEL: @known
// CHECK-NOT: read_sizes
// PLAN: kernel.program @known symbols ["b", "c"] attributes
// PLAN: kernel.segment
// PLAN-NOT: kernel.segment
// PLAN: kernel.program @slice
func.func @known(%x: !f {transept.name = "x"}) -> (tensor<*xf32> {transept.name = "y"}) {
  %0 = transept.constant dense<[0, -1]> : tensor<2xi64>
  %1 = transept.reshape %x, %0 {allowZero = false} : (!f, tensor<2xi64>) -> tensor<*xf32>
  %2 = transept.neg %1 : (tensor<*xf32>) -> tensor<*xf32>
  return %2 : tensor<*xf32>
}

// Only the axis that is sliced is read.
// CHECK-LABEL: @slice
// CHECK: transept.read_sizes %{{.*}} to ["sliced.0"] : tensor<1xi64>
// CHECK: transept.gather %arg0, %{{.*}} {axis = 1 : i64} : {{.*}} -> tensor<?x?xf32, #transept.dims<[b, sliced.0]>>
func.func @slice(%x: !f {transept.name = "x"}, %s: tensor<1xi64> {transept.name = "s"}) -> (tensor<*xf32> {transept.name = "y"}) {
  %0 = transept.constant dense<1> : tensor<1xi64>
  %1 = transept.constant dense<100> : tensor<1xi64>
  %2 = transept.slice %x from(%s) to(%1) axes(%0) : (!f, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %2 : tensor<*xf32>
}
