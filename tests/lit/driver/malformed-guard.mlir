// A guard that the runtime could not check is no guard: the dump is refused.
// RUN: not transept-compile %s --start-from shapes -o %t.tsp 2>&1 | FileCheck %s
// CHECK: transept: error: {{.*}}malformed-guard.mlir: is no module after phase 'shapes'
// CHECK-SAME: 'func.func' has a malformed guard

func.func @main(%x: tensor<?xf32, #transept.dims<[n]>>) -> tensor<?xf32, #transept.dims<[n]>>
    attributes {transept.guards = [{lhs = #transept.dim<n>, relation = "lt", rhs = #transept.dim<3>, message = "too long"}]} {
  return %x : tensor<?xf32, #transept.dims<[n]>>
}
