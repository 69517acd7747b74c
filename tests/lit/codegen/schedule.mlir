// Work items, scratch, and the domains maps are walked in.
// RUN: transept-opt %s --transept-pass=transept-schedule | FileCheck %s

!f = !kernel.buffer<f32>

// Three indices that occur side by side are one.
// CHECK-LABEL: kernel.func @merged
// CHECK-SAME: items = #transept.dim<floordiv(512 * batch * source + 1023, 1024)>, scratch = #transept.dim<0>
// CHECK: kernel.map domain [#transept.dim<512 * batch * source>]
// CHECK: kernel.load %{{.*}}[%{{[^,]*}}] : !kernel.buffer<f32>
kernel.func @merged symbols ["batch", "source"] from "" {
^bb0(%x: !f, %y: !f):
  kernel.map domain [#transept.dim<batch>, #transept.dim<source>, #transept.dim<512>]
      shapes [#transept.dims<[batch, source, 512]>, #transept.dims<[batch, source, 512]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %j: index, %k: index, %xa: !f):
    %0 = kernel.load %xa[%i, %j, %k] : !f -> f32
    %1 = arith.negf %0 : f32
    kernel.yield %1 : f32
  } : (!f, !f) -> ()
}

// A bias runs along the last dimension only, which stays; the others merge.
// CHECK-LABEL: kernel.func @bias
// CHECK-SAME: items = #transept.dim<batch * source>
// CHECK: kernel.map domain [#transept.dim<batch * source>, #transept.dim<512>]
kernel.func @bias symbols ["batch", "source"] from "" {
^bb0(%x: !f, %b: !f, %y: !f):
  kernel.map domain [#transept.dim<batch>, #transept.dim<source>, #transept.dim<512>]
      shapes [#transept.dims<[batch, source, 512]>, #transept.dims<[512]>, #transept.dims<[batch, source, 512]>] ins(%x, %b) outs(%y) {
  ^bb1(%i: index, %j: index, %k: index, %xa: !f, %ba: !f):
    %0 = kernel.load %xa[%i, %j, %k] : !f -> f32
    %1 = kernel.load %ba[%k] : !f -> f32
    %2 = arith.addf %0, %1 : f32
    kernel.yield %2 : f32
  } : (!f, !f, !f) -> ()
}

// Not merged: the input's rows are longer than the domain's, the transposed one is read column by column.
// CHECK-LABEL: kernel.func @apart
// CHECK: kernel.map domain [#transept.dim<n>, #transept.dim<64>]
// CHECK-LABEL: kernel.func @transposed
// CHECK: kernel.map domain [#transept.dim<n>, #transept.dim<64>]
kernel.func @apart symbols ["n"] from "" {
^bb0(%x: !f, %y: !f):
  kernel.map domain [#transept.dim<n>, #transept.dim<64>]
      shapes [#transept.dims<[n, 128]>, #transept.dims<[n, 64]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %j: index, %xa: !f):
    %0 = kernel.load %xa[%i, %j] : !f -> f32
    kernel.yield %0 : f32
  } : (!f, !f) -> ()
}
kernel.func @transposed symbols ["n"] from "" {
^bb0(%x: !f, %y: !f):
  kernel.map domain [#transept.dim<n>, #transept.dim<64>]
      shapes [#transept.dims<[64, n]>, #transept.dims<[n, 64]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %j: index, %xa: !f):
    %0 = kernel.load %xa[%j, %i] : !f -> f32
    kernel.yield %0 : f32
  } : (!f, !f) -> ()
}

// Live rows count the leading dimension, which therefore stays.
// CHECK-LABEL: kernel.func @live
// CHECK: kernel.map domain [#transept.dim<rows>, #transept.dim<512>]
kernel.func @live symbols ["rows"] from "" {
^bb0(%x: !f, %y: !f, %live: !kernel.buffer<i32>):
  kernel.map domain [#transept.dim<rows>, #transept.dim<512>]
      shapes [#transept.dims<[rows, 512]>, #transept.dims<[rows, 512]>] ins(%x) outs(%y) live(%live) {
  ^bb1(%i: index, %j: index, %xa: !f):
    %0 = kernel.load %xa[%i, %j] : !f -> f32
    kernel.yield %0 : f32
  } : (!f, !f, !kernel.buffer<i32>) -> ()
}

// Two parts of 100 and 5 columns are three panels; 96 rows are one chunk.
// CHECK-LABEL: kernel.func @contract
// CHECK-SAME: items = #transept.dim<3 * floordiv(rows + 95, 96)>, scratch = #transept.dim<1536>
kernel.func @contract symbols ["rows"] from "" {
^bb0(%x: !f, %w: !f, %y: !f, %z: !f):
  kernel.contract rows #transept.dim<rows> k 23 parts [100, 5]
      shapes [#transept.dims<[rows, 23]>, #transept.dims<[3, 23, 64]>, #transept.dims<[rows, 100]>, #transept.dims<[rows, 5]>]
      ins(%x, %w) outs(%y, %z) {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  }, {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  } : (!f, !f, !f, !f) -> ()
}

// Scratch does not grow with the sequence.
// CHECK-LABEL: kernel.func @attend
// CHECK-SAME: items = #transept.dim<8 * batch * floordiv(source + 47, 48)>, scratch = #transept.dim<131840>
kernel.func @attend symbols ["batch", "source"] from "" {
^bb0(%q: !f, %k: !f, %v: !f, %y: !f):
  kernel.attend shapes [#transept.dims<[batch, source, 8, 64]>, #transept.dims<[batch, source, 8, 64]>,
      #transept.dims<[batch, source, 8, 64]>, #transept.dims<[batch, source, 8, 64]>] ins(%q, %k, %v) outs(%y)
      {scale = 0.125 : f32, softcap = 0.0 : f32, emptyRow = 0 : i64} : (!f, !f, !f, !f) -> ()
}
