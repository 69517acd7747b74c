// What only a run can confirm becomes a guard of the function; shared symbols need none.
// RUN: transept-opt %s --transept-pass=transept-shapes | FileCheck %s

// CHECK-LABEL: func.func @baked_length
// CHECK-SAME: transept.guards = [{lhs = #transept.dim<T>, message = "Reshape node '/decoder/Reshape_4' cannot make [10, 4 * batch, 12] of [T, batch, 48]", relation = "eq", rhs = #transept.dim<10>}]
func.func @baked_length(%x: tensor<?x?x48xf32, #transept.dims<[T, batch, 48]>>) -> tensor<*xf32> {
  %ten = transept.constant dense<10> : tensor<1xi64>
  %four = transept.constant dense<4> : tensor<1xi64>
  %twelve = transept.constant dense<12> : tensor<1xi64>
  %batch = transept.shape %x {start = 1, end = 2} : (tensor<?x?x48xf32, #transept.dims<[T, batch, 48]>>) -> tensor<*xi64>
  %heads = transept.mul %batch, %four : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %shape = transept.concat %ten, %heads, %twelve {axis = 0} : (tensor<1xi64>, tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %result = transept.reshape %x, %shape {allowZero = false} : (tensor<?x?x48xf32, #transept.dims<[T, batch, 48]>>, tensor<*xi64>) -> tensor<*xf32> loc("/decoder/Reshape_4")
  return %result : tensor<*xf32>
}

// CHECK-LABEL: func.func @position_table
// CHECK-SAME: message = "Slice node reads position T of a table that ends at 64", relation = "le", rhs = #transept.dim<64>
func.func @position_table(%ids: tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<*xf32> {
  %table = transept.weight "none" : tensor<64x8xf32>
  %zero = transept.constant dense<0> : tensor<1xi64>
  %end = transept.shape %ids {start = 1} : (tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<*xi64>
  %rows = transept.slice %table from(%zero) to(%end) : (tensor<64x8xf32>, tensor<1xi64>, tensor<*xi64>) -> tensor<*xf32>
  return %rows : tensor<*xf32>
}

// Sizes of two inputs that must be equal become one symbol: the later one gets the earlier one's.
// CHECK-LABEL: func.func @one_symbol
// CHECK-SAME: %arg1: tensor<?xf32, #transept.dims<[a]>>
// CHECK-NOT: transept.guards
func.func @one_symbol(%x: tensor<?xf32, #transept.dims<[a]>>, %y: tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32> {
  %dot = transept.matmul %x, %y : (tensor<?xf32, #transept.dims<[a]>>, tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32>
  return %dot : tensor<*xf32>
}

// Must not: what only one branch needs is no need of the function.
// CHECK-LABEL: func.func @branch
// CHECK-SAME: %arg2: tensor<?xf32, #transept.dims<[b]>>
// CHECK-NOT: attributes
// CHECK: transept.if %arg0
// CHECK: transept.yield
// CHECK-SAME: transept.guards = [{lhs = #transept.dim<{{.*}}a and b must be equal, or one of them 1
func.func @branch(%c: tensor<i1>, %x: tensor<?xf32, #transept.dims<[a]>>, %y: tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32> {
  %result = transept.if %c {
    %sum = transept.add %x, %y : (tensor<?xf32, #transept.dims<[a]>>, tensor<?xf32, #transept.dims<[b]>>) -> tensor<*xf32>
    transept.yield %sum : tensor<*xf32>
  } else {
    transept.yield %x : tensor<?xf32, #transept.dims<[a]>>
  } : (tensor<i1>) -> tensor<*xf32>
  return %result : tensor<*xf32>
}

// A decided branch is inlined, and its needs are the function's.
// CHECK-LABEL: func.func @decided
// CHECK-SAME: transept.guards = [{lhs = #transept.dim<a>, {{.*}}, rhs = #transept.dim<5>}]
// CHECK-NOT: transept.if
// CHECK: transept.add
func.func @decided(%x: tensor<?xf32, #transept.dims<[a]>>, %y: tensor<5xf32>) -> tensor<*xf32> {
  %size = transept.size %x : (tensor<?xf32, #transept.dims<[a]>>) -> tensor<i64>
  %minus = transept.constant dense<-1> : tensor<i64>
  %c = transept.greater %size, %minus : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %result = transept.if %c {
    %sum = transept.add %x, %y : (tensor<?xf32, #transept.dims<[a]>>, tensor<5xf32>) -> tensor<*xf32>
    transept.yield %sum : tensor<*xf32>
  } else {
    transept.yield %x : tensor<?xf32, #transept.dims<[a]>>
  } : (tensor<i1>) -> tensor<*xf32>
  return %result : tensor<*xf32>
}
