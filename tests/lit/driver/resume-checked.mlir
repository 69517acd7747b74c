// A file that says it is a dump is not believed.
// RUN: not transept-compile %s --start-from fuse -o %t.tsp 2>&1 | FileCheck %s
// CHECK: transept: error: {{.*}}resume-checked.mlir: is no module after phase 'fuse'
// CHECK-SAME: the module has no report of attention sites
// RUN: not transept-compile %s --start-from plan -o %t.tsp 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: is no module after phase 'plan'
// PLAN-SAME: resume-checked.mlir:[[@LINE+2]]:1: 'func.func' is not allowed

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
