// Kernels as compute shaders: how work is cut, and what the modules declare.
// RUN: transept-opt %s --transept-pass=transept-schedule | FileCheck %s --check-prefix=WORK
// RUN: transept-opt %s --transept-pass=transept-schedule --transept-pass=transept-lower | FileCheck %s

!f = !kernel.buffer<f32>

module attributes {transept.options = {cpu_levels = [], precision = "fp32", target = "vulkan"}} {

// An invocation computes a point. Buffers are addresses: no resource is bound.
// WORK-LABEL: kernel.func @map
// WORK-SAME: kernel.shader = {group_size = 64 : i64, group_step = 1 : i64, items = #transept.dim<512 * batch>, items_per_group = 0 : i64}
// CHECK: module @shaders
// CHECK: spirv.module @map PhysicalStorageBuffer64 GLSL450 requires #spirv.vce<v1.5, [Shader, PhysicalStorageBufferAddresses, Int64], []>
// CHECK-DAG: spirv.SpecConstant @group_size spec_id(0) = 64 : i32
// CHECK-DAG: spirv.SpecConstantComposite @group_sizes (@group_size, @one, @one) : vector<3xi32>
// CHECK-DAG: spirv.GlobalVariable @call : !spirv.ptr<!spirv.struct<(i64 [0], i64 [8], i64 [16], i64 [24], i64 [32])>, PushConstant>
// CHECK-DAG: spirv.GlobalVariable @group built_in("WorkgroupId")
// CHECK-DAG: spirv.GlobalVariable @local built_in("LocalInvocationId")
// CHECK-NOT: bind(
// CHECK: spirv.func @main() "None"
// CHECK: spirv.Load "PhysicalStorageBuffer" %{{.*}} ["Aligned", 4] : f32
// CHECK: spirv.FNegate
// CHECK: spirv.Store "PhysicalStorageBuffer" %{{.*}} ["Aligned", 4] : f32
// CHECK: spirv.EntryPoint "GLCompute" @main, @call, @group, @local
// CHECK: spirv.ExecutionMode @main "LocalSize", 64, 1, 1
kernel.func @map symbols ["batch"] from "" {
^bb0(%x: !f, %y: !f):
  kernel.map domain [#transept.dim<batch>, #transept.dim<512>]
      shapes [#transept.dims<[batch, 512]>, #transept.dims<[batch, 512]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %j: index, %xa: !f):
    %0 = kernel.load %xa[%i, %j] : !f -> f32
    %1 = arith.negf %0 : f32
    kernel.yield %1 : f32
  } : (!f, !f) -> ()
}

// Elementary functions multiply and add, which no device may reorder, and need no doubles.
// CHECK: spirv.module @functions
// CHECK-SAME: [Shader, PhysicalStorageBufferAddresses, Int64], []>
// CHECK-NOT: spirv.GL.Fma
// CHECK: spirv.module @half
kernel.func @functions symbols ["n"] from "" {
^bb0(%x: !f, %y: !f):
  kernel.map domain [#transept.dim<n>] shapes [#transept.dims<[n]>, #transept.dims<[n]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %xa: !f):
    %0 = kernel.load %xa[%i] : !f -> f32
    %1 = math.exp %0 : f32
    %2 = math.powf %1, %0 : f32
    %3 = math.sinh %2 : f32
    %4 = arith.remf %3, %0 : f32
    kernel.yield %4 : f32
  } : (!f, !f) -> ()
}

// Short floats are bits, and need no arithmetic of their own.
// CHECK-SAME: [Shader, PhysicalStorageBufferAddresses, Int64, Int16, StorageBuffer16BitAccess]
// CHECK-NOT: f16
// CHECK: spirv.EntryPoint
kernel.func @half symbols ["n"] from "" {
^bb0(%x: !kernel.buffer<f16>, %y: !kernel.buffer<f16>):
  kernel.map domain [#transept.dim<n>] shapes [#transept.dims<[n]>, #transept.dims<[n]>] ins(%x) outs(%y) {
  ^bb1(%i: index, %xa: !kernel.buffer<f16>):
    %0 = kernel.load %xa[%i] : !kernel.buffer<f16> -> f16
    %1 = arith.addf %0, %0 : f16
    kernel.yield %1 : f16
  } : (!kernel.buffer<f16>, !kernel.buffer<f16>) -> ()
}

// A workgroup takes a row; what its invocations have is combined through memory they share, whatever a subgroup is. The
// array has one element for each of them, however many. In front of that, a variant for devices with sums over subgroups.
// WORK-LABEL: kernel.func @rows
// WORK-SAME: items = #transept.dim<n>, items_per_group = 1 : i64
// CHECK: spirv.module @rows.subgroupArithmetic
// CHECK-SAME: GroupNonUniform, GroupNonUniformArithmetic
// CHECK-SAME: attributes {kernel.features = ["subgroupArithmetic"]}
// CHECK: spirv.GroupNonUniformFAdd "Subgroup" "Reduce"
// CHECK: spirv.GroupNonUniformElect <Subgroup>
// CHECK: spirv.module @rows Physical
// CHECK: spirv.GlobalVariable @[[SHARED:.*]] : !spirv.ptr<!spirv.array<2113929217 x f32>, Workgroup>
// CHECK-NOT: GroupNonUniform
// CHECK: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|UniformMemory|WorkgroupMemory>
// CHECK-NOT: GroupNonUniform
// CHECK: spirv.EntryPoint "GLCompute" @main, {{.*}}@[[SHARED]]
kernel.func @rows symbols ["n"] from "" {
^bb0(%x: !f, %y: !f):
  kernel.rows rows #transept.dim<n> length #transept.dim<96> shapes [#transept.dims<[n, 96]>, #transept.dims<[n]>] ins(%x) outs(%y) {
  ^bb1(%row: index, %xa: !f):
    %sum = kernel.row_reduce "add" {
    ^bb2(%j: index):
      %0 = kernel.load %xa[%row, %j] : !f -> f32
      kernel.yield %0 : f32
    } : f32
    kernel.yield %sum : f32
  } : (!f, !f) -> ()
}

// A workgroup takes a panel and up to four rows; weights are read sixteen bytes at a time.
// WORK-LABEL: kernel.func @contract
// WORK-SAME: group_size = 128 : i64, group_step = 16 : i64, items = #transept.dim<2 * floordiv(rows + 3, 4)>, items_per_group = 1 : i64
// CHECK: spirv.module @contract
// CHECK: spirv.Load "PhysicalStorageBuffer" %{{.*}} ["Aligned", 16] : vector<4xf32>
// CHECK: spirv.GL.Fma %{{.*}} : vector<4xf32>
// CHECK: spirv.ExecutionMode @main "LocalSize", 128, 1, 1
kernel.func @contract symbols ["rows"] from "" {
^bb0(%x: !f, %w: !f, %y: !f):
  kernel.contract rows #transept.dim<rows> k 32 parts [100]
      shapes [#transept.dims<[rows, 32]>, #transept.dims<[2, 32, 64]>, #transept.dims<[rows, 100]>] ins(%x, %w) outs(%y) {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  } : (!f, !f, !f) -> ()
}

// bf16 are the halves of words: no 16-bit type, no 16-bit storage.
// CHECK: spirv.module @bf16
// CHECK-SAME: [Shader, PhysicalStorageBufferAddresses, Int64], []
// CHECK: spirv.Load "PhysicalStorageBuffer" %{{.*}} ["Aligned", 16] : vector<4xi32>
// CHECK: spirv.ShiftLeftLogical %{{.*}} : vector<4xi32>
// CHECK: spirv.GL.Fma %{{.*}} : vector<4xf32>
kernel.func @bf16 symbols ["rows"] from "" {
^bb0(%x: !f, %w: !kernel.buffer<bf16>, %y: !f):
  kernel.contract rows #transept.dim<rows> k 32 parts [64]
      shapes [#transept.dims<[rows, 32]>, #transept.dims<[1, 16, 64, 2]>, #transept.dims<[rows, 64]>] ins(%x, %w) outs(%y) {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  } : (!f, !kernel.buffer<bf16>, !f) -> ()
}

// Matrices of a subgroup where it multiplies them, of sizes that the pipeline says, in the memory model that they ask for; four
// bytes at once where there are dot products, else one by one. A tile of matrices has more rows.
// WORK-LABEL: kernel.func @int8
// WORK-SAME: group_size = 128 : i64, group_step = 16 : i64, items = #transept.dim<floordiv(rows + 3, 4)>, items_per_group = 1 : i64, tiles = #transept.dim<floordiv(rows + 31, 32)>
// CHECK: spirv.module @int8.cooperativeMatrixInt8 PhysicalStorageBuffer64 Vulkan
// CHECK-SAME: [Shader, PhysicalStorageBufferAddresses, Int64, VulkanMemoryModel, Int8, {{.*}}CooperativeMatrixKHR{{.*}}], [SPV_KHR_cooperative_matrix]
// CHECK-DAG: spirv.SpecConstant @matrix_rows spec_id(1)
// CHECK-DAG: spirv.SpecConstant @matrix_columns spec_id(2)
// CHECK-DAG: spirv.SpecConstant @matrix_depth spec_id(3)
// CHECK: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|UniformMemory|WorkgroupMemory|MakeAvailable|MakeVisible>
// CHECK: spirv.Store "Workgroup" %{{.*}} ["NonPrivatePointer"] : i32
// CHECK: spirv.KHR.CooperativeMatrixLoad %{{.*}}, <ColumnMajor>, <NonPrivatePointer>
// CHECK: spirv.KHR.CooperativeMatrixLoad %{{.*}}, <RowMajor>, <NonPrivatePointer>
// CHECK: spirv.KHR.CooperativeMatrixMulAdd %{{.*}}, <ASigned|BSigned|CSigned|ResultSigned>
// CHECK: spirv.KHR.CooperativeMatrixStore
// CHECK-NOT: SDot
// CHECK: spirv.module @int8.shaderIntegerDotProduct
// CHECK-SAME: DotProductInput4x8BitPacked
// CHECK-SAME: [SPV_KHR_integer_dot_product]
// CHECK: spirv.SDot
// CHECK: spirv.module @int8 Physical
// CHECK-SAME: [Shader, PhysicalStorageBufferAddresses, Int64], []
// CHECK-NOT: SDot
// CHECK: spirv.IMul %{{.*}} : i32
// CHECK: spirv.EntryPoint
kernel.func @int8 symbols ["rows"] from "" {
^bb0(%x: !f, %w: !kernel.buffer<i8>, %y: !f):
  kernel.contract rows #transept.dim<rows> k 32 parts [64]
      shapes [#transept.dims<[rows, 32]>, #transept.dims<[1, 8, 64, 4]>, #transept.dims<[rows, 64]>] ins(%x, %w) outs(%y) attributes {quantised} {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  } : (!f, !kernel.buffer<i8>, !f) -> ()
}

// Of keys with a mask, those up to the last one that is shown: all invocations find it, and the loop over blocks of keys ends there.
// CHECK: spirv.module @attend.subgroupArithmetic
// CHECK: spirv.GroupNonUniformSMax
// CHECK: %[[SHOWN:.*]] = spirv.Bitcast %{{.*}} : vector<2xi32> to i64
// CHECK-NEXT: %[[FEWER:.*]] = spirv.SLessThan %{{.*}}, %[[SHOWN]] : i64
// CHECK-NEXT: %[[END:.*]] = spirv.Select %[[FEWER]], %{{.*}}, %[[SHOWN]] : i1, i64
// CHECK: %[[GOES_ON:.*]] = spirv.SLessThan %{{.*}}, %[[END]] : i64
// CHECK-NEXT: spirv.BranchConditional %[[GOES_ON]]
// CHECK: spirv.module @attend Physical
kernel.func @attend symbols ["batch", "source"] from "" {
^bb0(%q: !f, %k: !f, %v: !f, %m: !kernel.buffer<i64>, %y: !f):
  kernel.attend shapes [#transept.dims<[batch, source, 8, 64]>, #transept.dims<[batch, source, 8, 64]>,
      #transept.dims<[batch, source, 8, 64]>, #transept.dims<[batch, source]>, #transept.dims<[batch, source, 8, 64]>] ins(%q, %k, %v, %m) outs(%y)
      {scale = 0.125 : f32, softcap = 0.0 : f32, emptyRow = 0 : i64, hasKeyMask} : (!f, !f, !f, !kernel.buffer<i64>, !f) -> ()
}

// CHECK: spirv.module @source.subgroupArithmetic
// CHECK: spirv.GroupNonUniformSMax
// CHECK: %[[SHOWN:.*]] = spirv.Bitcast %{{.*}} : vector<2xi32> to i64
// CHECK: %[[GOES_ON:.*]] = spirv.SLessThan %{{.*}}, %[[SHOWN]] : i64
// CHECK-NEXT: spirv.BranchConditional %[[GOES_ON]]
// CHECK: spirv.module @source Physical
kernel.func @source symbols ["rows", "batch", "S"] from "" {
^bb0(%q: !f, %k: !f, %v: !f, %source: !kernel.buffer<i32>, %m: !kernel.buffer<i64>, %y: !f):
  kernel.attend_source shapes [#transept.dims<[rows, 1, 2, 64]>, #transept.dims<[batch, S, 2, 64]>, #transept.dims<[batch, S, 2, 64]>,
      #transept.dims<[rows]>, #transept.dims<[batch, S]>, #transept.dims<[rows, 1, 2, 64]>] ins(%q, %k, %v, %source, %m) outs(%y)
      {scale = 0.125 : f32, emptyRow = 0 : i64, hasKeyMask} : (!f, !f, !f, !kernel.buffer<i32>, !kernel.buffer<i64>, !f) -> ()
}

}
