// A second step, which gives the logits of listed tokens; none where the product reads a narrow matrix.
// RUN: transept-opt %s --transept-pass='transept-shortlist{enabled=true}' | FileCheck %s
// RUN: transept-opt %s --transept-pass='transept-shortlist{enabled=true}' | transept-opt - --transept-pass=transept-form | FileCheck %s --check-prefix=FORM
// RUN: transept-opt %s --transept-pass='transept-shortlist{enabled=false}' | FileCheck %s --check-prefix=OFF
// RUN: sed -e '/transept.linear/s/b :/b {transept.narrow = {}} :/' %s | transept-opt - --transept-pass='transept-shortlist{enabled=true}' | FileCheck %s --check-prefix=OFF

// OFF-NOT: step_listed

// CHECK-LABEL: func.func @step()
// CHECK: transept.search_head
// CHECK-NOT: transept.listed
// CHECK-LABEL: func.func @step_listed()
// CHECK: transept.search_head {{.*}}transept.listed

// FORM-LABEL: kernel.entry @step_listed
// FORM: %[[LIVE:.*]] = kernel.state "step.live"
// FORM: %[[TOKENS:.*]] = kernel.state "step.listed" <[64 * listed]> role "step" : tensor<?xi32>
// FORM: %[[FRESH:.*]] = kernel.state "step.fresh" <[listed]> role "step" : tensor<?xi32>
// FORM: %[[COLUMNS:.*]] = kernel.state "search.columns" <[listed, 4, 64]> role "search" : tensor<?x4x64xf32>
// FORM-NOT: kernel.contract
// FORM: %[[LOGITS:.*]] = kernel.search_head {{.*}}%[[TOKENS]], %[[FRESH]], %[[COLUMNS]], {{.*}} live(%[[LIVE]]) {blockSize = 2048 : i64, listed, vocabulary = 40 : i64}
// FORM: kernel.export %[[LOGITS]] to "search.listed" <[rows, 64 * listed]> role "search"
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
