// What only a run says to be 1 is repeated; what cannot differ stays one size.
// RUN: transept-opt %s --transept-pass=transept-shapes | FileCheck %s

// Sizes of two inputs: the one that is not 1, and no third possibility.
// CHECK-LABEL: func.func @selected
// CHECK-SAME: lhs = #transept.dim<{{.*}}>, message = "Add node {{.*}}a and b must be equal, or one of them 1", relation = "eq", rhs = #transept.dim<0>
// CHECK: transept.add %arg0, %arg1 : {{.*}} -> tensor<?xf32, #transept.dims<[{{.*}}max(a, b){{.*}}]>>
func.func @selected(%x: tensor<?xf32, #transept.dims<[a]>>, %y: tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32> {
  %sum = transept.add %x, %y : (tensor<?xf32, #transept.dims<[a]>>, tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32> loc("sum")
  return %sum : tensor<*xf32>
}

// A size that the graph computes is the one it meets.
// CHECK-LABEL: func.func @computed
// CHECK-SAME: must be equal", relation = "eq"
// CHECK: transept.add {{.*}} -> tensor<?xf32, #transept.dims<[total]>>
func.func @computed(%past: tensor<?xf32, #transept.dims<[past]>>, %now: tensor<1xf32>, %mask: tensor<?xf32, #transept.dims<[total]>>) -> tensor<*xf32> {
  %all = transept.concat %past, %now {axis = 0} : (tensor<?xf32, #transept.dims<[past]>>, tensor<1xf32>) -> tensor<*xf32>
  %sum = transept.add %all, %mask : (tensor<*xf32>, tensor<?xf32, #transept.dims<[total]>>) -> tensor<*xf32>
  return %sum : tensor<*xf32>
}

// Something else says that both are one size: no selection is left.
// CHECK-LABEL: func.func @one_size
// CHECK-NOT: max
// CHECK: transept.add {{.*}} -> tensor<?xf32, #transept.dims<[a]>>
func.func @one_size(%x: tensor<?xf32, #transept.dims<[a]>>, %y: tensor<?xf32, #transept.dims<[b]>>) -> (tensor<*xf32>, tensor<*xf32>) {
  %sum = transept.add %x, %y : (tensor<?xf32, #transept.dims<[a]>>, tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32>
  %dot = transept.matmul %x, %y : (tensor<?xf32, #transept.dims<[a]>>, tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32>
  return %sum, %dot : tensor<*xf32>, tensor<*xf32>
}
