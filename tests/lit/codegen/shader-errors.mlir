// What shaders cannot do is an error at the op.
// RUN: transept-opt %s --transept-pass=transept-schedule --transept-pass=transept-lower --verify-diagnostics

module attributes {transept.options = {cpu_levels = [], precision = "fp32", target = "vulkan"}} {
// expected-error @+1 {{'math.ctlz' op is not supported in a shader}}
kernel.func @count symbols ["n"] from "" {
^bb0(%x: !kernel.buffer<i32>, %y: !kernel.buffer<i32>):
  kernel.map domain [#transept.dim<n>] shapes [#transept.dims<[n]>, #transept.dims<[n]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %xa: !kernel.buffer<i32>):
    %0 = kernel.load %xa[%i] : !kernel.buffer<i32> -> i32
    %1 = math.ctlz %0 : i32
    kernel.yield %1 : i32
  } : (!kernel.buffer<i32>, !kernel.buffer<i32>) -> ()
}
}
