// RUN: transept-opt %s --transept-pass=transept-shapes --split-input-file --verify-diagnostics

func.func @contracts(%x: tensor<2x5xf32>, %y: tensor<7x4xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{'transept.matmul' op contracts: 5 and 7 differ}}
  %r = transept.matmul %x, %y : (tensor<2x5xf32>, tensor<7x4xf32>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}

// -----

func.func @never(%x: tensor<?x4xf32, #transept.dims<[n, 4]>>) -> tensor<*xf32> {
  %two = transept.constant dense<[3]> : tensor<1xi64>
  %c = transept.shape %x {end = 1} : (tensor<?x4xf32, #transept.dims<[n, 4]>>) -> tensor<*xi64>
  %s = transept.concat %c, %two {axis = 0} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  // expected-error @+1 {{can never run: Reshape node cannot make [n, 3] of [n, 4]}}
  %r = transept.reshape %x, %s {allowZero = false} : (tensor<?x4xf32, #transept.dims<[n, 4]>>, tensor<*xi64>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}
