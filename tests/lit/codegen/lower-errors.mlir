// What a kernel cannot hold is an error at its place, never a crash.
// RUN: split-file %s %t
// RUN: not transept-opt %t/symbol.mlir --transept-pass=transept-schedule --transept-pass=transept-lower 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: not transept-opt %t/op.mlir --transept-pass=transept-schedule --transept-pass=transept-lower 2>&1 | FileCheck %s --check-prefix=OP
// RUN: not transept-opt %t/two.mlir --transept-pass=transept-schedule 2>&1 | FileCheck %s --check-prefix=TWO

//--- symbol.mlir
// SYMBOL: kernel.func does not list the symbol 'm'
kernel.func @k symbols ["n"] from "" {
^bb0(%y: !kernel.buffer<f32>):
  kernel.map domain [#transept.dim<n>, #transept.dim<m>] shapes [#transept.dims<[n, m]>] ins() outs(%y) {
  ^bb1(%i: index, %j: index):
    %0 = arith.constant 0.0 : f32
    kernel.yield %0 : f32
  } : (!kernel.buffer<f32>) -> ()
}

//--- op.mlir
// OP: 'math.cbrt' op is not supported in a kernel body
kernel.func @k symbols ["n"] from "" {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map domain [#transept.dim<n>] shapes [#transept.dims<[n]>, #transept.dims<[n]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %xa: !kernel.buffer<f32>):
    %0 = kernel.load %xa[%i] : !kernel.buffer<f32> -> f32
    %1 = math.cbrt %0 : f32
    kernel.yield %1 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
}

//--- two.mlir
// TWO: holds not exactly one kernel
kernel.func @k symbols [] from "" {
^bb0(%y: !kernel.buffer<f32>):
}
