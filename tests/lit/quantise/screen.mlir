// A second step, whose logits are approximated by 8-bit integers, and few of them computed.
// RUN: transept-opt %s --transept-pass='transept-screen{enabled=true}' | FileCheck %s
// RUN: transept-opt %s --transept-pass=transept-screen | FileCheck %s --check-prefix=OFF

// OFF-NOT: step_greedy

// 40 columns of 3: 120 bytes and three numbers each, in place of 480.
// CHECK: transept.generation = {{{.*}}step_greedy = "step_greedy"
// CHECK-SAME: transept.staging = ["caches derived", "two-stage vocabulary: a greedy step of a row reads 600 bytes in place of 480 for the logits
// CHECK-LABEL: func.func @step()
// CHECK: transept.search_head
// CHECK-NOT: transept.screen
// CHECK-LABEL: func.func @step_greedy()
// CHECK: transept.search_head {{.*}}transept.screen = {errors = "{{[0-9a-f]+}}", norms = "{{[0-9a-f]+}}", scales = "{{[0-9a-f]+}}", weight = "{{[0-9a-f]+}}"}
module attributes {transept.generation = {step = "step"}, transept.staging = ["caches derived"]} {
  func.func @step() {
    %token = transept.state "step.token" : tensor<?x1xi64, #transept.dims<[rows, 1]>>
    %table = transept.fill dense<1.5> : tensor<1xf32> : () -> tensor<40x3xf32>
    %x = transept.gather %table, %token {axis = 0 : i64} : (tensor<40x3xf32>, tensor<?x1xi64, #transept.dims<[rows, 1]>>) -> tensor<?x1x3xf32, #transept.dims<[rows, 1, 3]>>
    %w = transept.constant dense<0.5> : tensor<3x40xf32>
    %b = transept.constant dense<0.25> : tensor<40xf32>
    %logits = transept.linear %x, %w, %b : (tensor<?x1x3xf32, #transept.dims<[rows, 1, 3]>>, tensor<3x40xf32>, tensor<40xf32>) -> tensor<?x1x40xf32, #transept.dims<[rows, 1, 40]>>
    transept.search_head %logits : tensor<?x1x40xf32, #transept.dims<[rows, 1, 40]>>
    return
  }
}
