// A phase that leaves what it must not is found at the op, with its place in the source.
// RUN: transept-opt %s -split-input-file -verify-diagnostics --transept-shapes

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'arith.addf' is not allowed after phase 'shapes'}}
  %0 = arith.addf %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Nothing to find.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = transept.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
