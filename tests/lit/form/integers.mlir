// The product of bytes and a constant matrix of bytes is a contraction of integers; its scale is taken in the epilogue.
// RUN: transept-opt %s --transept-form | FileCheck %s

// CHECK: kernel.contract
// CHECK-SAME: k 3 parts [2]
// CHECK: ^bb0(%{{.*}}: index{{.*}}, %{{.*}}: index{{.*}}, %[[SUM:.*]]: i32
// CHECK: arith.addi %[[SUM]]
// CHECK: arith.sitofp %{{.*}} : i32 to f32
// CHECK: arith.mulf
// CHECK: kernel.yield %{{.*}} : f32
// CHECK: : (tensor<?x3xi8>, tensor<1x1x64x4xui8>, {{.*}}) -> tensor<?x2xf32>
func.func @main(%x: tensor<?x3xui8, #transept.dims<[n, 3]>> {transept.name = "x"}, %zero: tensor<ui8> {transept.name = "zero"}) -> (tensor<?x2xf32, #transept.dims<[n, 2]>> {transept.name = "y"}) {
  %w = transept.constant dense<[[1, -2], [3, 4], [-5, 6]]> : tensor<3x2xi8>
  %scale = transept.constant dense<[5.000000e-01, 2.000000e+00]> : tensor<2xf32>
  %i = transept.matmul_integer %x, %w lhs_zero_point(%zero) : (tensor<?x3xui8, #transept.dims<[n, 3]>>, tensor<3x2xi8>, tensor<ui8>) -> tensor<?x2xi32, #transept.dims<[n, 2]>>
  %f = transept.cast %i {to = f32} : (tensor<?x2xi32, #transept.dims<[n, 2]>>) -> tensor<?x2xf32, #transept.dims<[n, 2]>>
  %y = transept.mul %f, %scale : (tensor<?x2xf32, #transept.dims<[n, 2]>>, tensor<2xf32>) -> tensor<?x2xf32, #transept.dims<[n, 2]>>
  return %y : tensor<?x2xf32, #transept.dims<[n, 2]>>
}
