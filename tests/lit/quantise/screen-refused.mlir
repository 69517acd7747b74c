// Logits behind something else than a product, and matrices without bounds.
// RUN: not transept-opt %s --transept-pass='transept-screen{enabled=true}' 2>&1 | FileCheck %s --check-prefix=BEHIND
// RUN: sed -e 's/search_head %1/search_head %0/' -e 's/dense<0.5>/dense<0x7F800000>/' %s > %t.infinite.mlir
// RUN: not transept-opt %t.infinite.mlir --transept-pass='transept-screen{enabled=true}' 2>&1 | FileCheck %s --check-prefix=INFINITE
// RUN: sed -e 's/generation = /other = /' %s > %t.other.mlir
// RUN: not transept-opt %t.other.mlir --transept-pass='transept-screen{enabled=true}' 2>&1 | FileCheck %s --check-prefix=OTHER

// BEHIND: error: {{.*}}cannot screen its vocabulary: logits are no product of one position with a constant fp32 matrix
// INFINITE: error: {{.*}}cannot screen its vocabulary: the matrix holds infinities or NaN
// OTHER: error: {{.*}}cannot screen its vocabulary: it generates nothing
module attributes {transept.generation = {step = "step"}} {
  func.func @step() {
    %x = transept.state "step.x" : tensor<?x1x3xf32, #transept.dims<[rows, 1, 3]>>
    %w = transept.constant dense<0.5> : tensor<3x40xf32>
    %0 = transept.linear %x, %w : (tensor<?x1x3xf32, #transept.dims<[rows, 1, 3]>>, tensor<3x40xf32>) -> tensor<?x1x40xf32, #transept.dims<[rows, 1, 40]>>
    %1 = transept.relu %0 : (tensor<?x1x40xf32, #transept.dims<[rows, 1, 40]>>) -> tensor<?x1x40xf32, #transept.dims<[rows, 1, 40]>>
    transept.search_head %1 : tensor<?x1x40xf32, #transept.dims<[rows, 1, 40]>>
    return
  }
}
