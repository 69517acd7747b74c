//===- KernelOps.td - what a target has to implement -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two levels live here. *Kernels* (map, contract, rows, serial, attend…, cache_append, search_head) say what is computed, each
// with scalar regions for what was fused around it; regions use `arith`, `math`, `scf` and the scalar ops below.
// *Programs* say in which order kernels run on which buffers.
//
//   form      entry of kernels on tensors (kernel.entry)          sizes are dim expressions in attributes
//   plan      kernel.func (one kernel each, on !kernel.buffer) + kernel.program (a list of kernel.dispatch)
//   schedule  adds `items`, `scratch` and target attributes to each kernel.func
//
// All data is dense and row-major. Operand i has the shape `shapes[i]` (inputs first, then outputs).

#ifndef TRANSEPT_KERNEL_OPS
#define TRANSEPT_KERNEL_OPS

include "ir/TranseptDialect.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::mlir::kernel";
  let summary = "Kernels and programs: what a target implements and what the runtime walks";
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::transept::TranseptDialect"];
}

def Kernel_BufferType : TypeDef<Kernel_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A dense buffer of elements, its address known when a call is set up";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

//===- Kernels ------------------------------------------------------------------------------------------------------===//

def Kernel_KernelOpInterface : OpInterface<"KernelOp"> {
  let cppNamespace = "::mlir::kernel";
  let description = [{
    A kernel: `inputs` are read, `outputs` written. On tensors (before plan) it has results and no `outputs` operands; on
    buffers (inside kernel.func) it has `outputs` operands and no results. `shapes` lists input shapes, then output shapes.
    With `live`, the operand `liveRows` (one i32) limits the leading dimension: rows at or above it are skipped.
  }];
  let methods = [
    InterfaceMethod<"Operands that are read", "::mlir::OperandRange", "getInputs">,
    InterfaceMethod<"Buffers that are written; empty before plan", "::mlir::OperandRange", "getOutputs">,
    InterfaceMethod<"Shapes of inputs, then outputs, as DimsAttr", "::mlir::ArrayAttr", "getShapes">,
  ];
}

class Kernel_KernelOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, !listconcat([AttrSizedOperandSegments, Kernel_KernelOpInterface], traits)> {
  dag base = (ins Variadic<AnyType>:$inputs, Variadic<AnyType>:$outputs, Optional<AnyType>:$liveRows, ArrayAttr:$shapes);
  let results = (outs Variadic<AnyType>:$results);
  string operandsFormat = [{ `ins` `(` $inputs `)` (`outs` `(` $outputs^ `)`)? (`live` `(` $liveRows^ `)`)? }];
  string typesFormat = [{ `:` functional-type(operands, results) }];
}

def Kernel_MapOp : Kernel_KernelOp<"map", [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Computes every element of its outputs independently: element-wise, gathering, and anything irregular";
  let description = [{
    The body's arguments are the indices of the point (one `index` per dimension of `domain`), then one per input (of the input's
    type, to be read with kernel.load). It yields one scalar per output; each output has the shape `domain`. The body may
    hold scf.for and scf.if.

    ```mlir
    %r = kernel.map domain [#transept.dim<batch>, #transept.dim<512>] ins(%x, %b) … {
    ^bb0(%i: index, %j: index, %xa: tensor<?x512xf32>, %ba: tensor<512xf32>):
      %0 = kernel.load %xa[%i, %j] : tensor<?x512xf32> -> f32
      …
      kernel.yield %2 : f32
    } : (tensor<?x512xf32>, tensor<512xf32>) -> tensor<?x512xf32>
    ```
  }];
  let arguments = !con(base, (ins ArrayAttr:$domain));
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`domain` $domain `shapes` $shapes" # operandsFormat # "attr-dict-with-keyword $body" # typesFormat;
}

def Kernel_ContractOp : Kernel_KernelOp<"contract"> {
  let summary = "x [rows, K] times constant matrices packed in panels, with an epilogue in registers";
  let description = [{
    inputs: x [rows, k], the packed matrix (kernel.constant with layout panels), then what the epilogues read.
    The matrix has one part of `parts[i]` columns per output, each padded to whole panels of 64. Output i is [rows, parts[i]].
    Epilogue i has the arguments row (index), column within the part (index), the accumulated value (f32), then one per input
    from the third on; it yields the value to store. What a product is follows from the matrix' elements:
    f32: sums run over k in ascending order as one chain of fused multiply-adds, for every row tile and level.
    bf16: x is rounded to bf16 (nearest, ties to even). Sums run over pairs of k as one chain, in f32: two fused multiply-adds each,
      or where a level has it one instruction for both, whose bits are its own.
    ui8 (offset 128): with `quantised` each row of x is scaled by 127 / its largest magnitude and rounded to integers (nearest, ties to
      even); the accumulated value is the exact sum of integer products times the row's scale, in f32, with the same bits on every
      level. k is at most 131,072. Without `quantised`, x stays f32, and sums are those of f32.
    ui8 with x of signed 8-bit integers: the accumulated value is the exact sum of x * (element - 128), i32. k is at most 65,536.
    The scale of each of the matrix' columns is the epilogue's business. With `block` (a multiple of 4; 0: none; ui8 with x of f32 only), so many adjacent k of a column have one scale: the third input holds them, f32, packed like a matrix [blocks, columns] (layout
      panels). Weights are (element - 128) * scale then, rounded to f32, and the product is that of f32.
  }];
  let arguments = !con(base, (ins Transept_DimAttr:$rows, I64Attr:$k, DenseI64ArrayAttr:$parts, UnitAttr:$quantised, DefaultValuedAttr<I64Attr, "0">:$block));
  let regions = (region VariadicRegion<SizedRegion<1>>:$epilogues);
  let assemblyFormat = "`rows` $rows `k` $k `parts` $parts `shapes` $shapes" # operandsFormat # "attr-dict-with-keyword $epilogues" # typesFormat;
}

def Kernel_RowsOp : Kernel_KernelOp<"rows", [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Ordered reductions and maps over the same row: softmax, norms, statistics";
  let description = [{
    Runs the body once per row; arguments: the flat row index, then one per input. kernel.row_reduce runs over the positions of
    the row with sixteen lanes and a fixed tree, kernel.row_map writes outputs of shape [rows, length] in order; the
    terminator yields one scalar per output of shape [rows] (these come after the row_map outputs).
  }];
  let arguments = !con(base, (ins Transept_DimAttr:$rows, Transept_DimAttr:$length));
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`rows` $rows `length` $length `shapes` $shapes" # operandsFormat # "attr-dict-with-keyword $body" # typesFormat;
}

def Kernel_RowReduceOp : Kernel_Op<"row_reduce", [SingleBlockImplicitTerminator<"YieldOp">, HasParent<"RowsOp">]> {
  let summary = "Reduces what the body yields over all positions of the row: lane l takes positions l, l + 16, …, then a fixed tree";
  let arguments = (ins StrAttr:$kind);  // "add", "max", "min", "mul"
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind attr-dict-with-keyword $body `:` type($result)";
}
def Kernel_RowMapOp : Kernel_Op<"row_map", [SingleBlockImplicitTerminator<"YieldOp">, HasParent<"RowsOp">]> {
  let summary = "Writes the value the body yields at every position of the row to output `output`";
  let arguments = (ins I64Attr:$output);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$output attr-dict-with-keyword $body";
}

def Kernel_SerialOp : Kernel_KernelOp<"serial", [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Items that each run a body with memory: running sums, recurrences, sorts, scatters, and what else is no map";
  let description = [{
    Runs the body once per item; arguments: the item (an index below `items`), then one per output, then one per input. Elements of both are
    read with kernel.load and those of outputs written with kernel.store, in the order of the body; the terminator yields nothing.
    An output holds nothing defined before it is written. What an item writes no other item reads or writes, so that items may run on
    any thread and in any order. An output that nobody reads afterwards is scratch memory of the items.
  }];
  let arguments = !con(base, (ins Transept_DimAttr:$items));
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`items` $items `shapes` $shapes" # operandsFormat # "attr-dict-with-keyword $body" # typesFormat;
}

def Kernel_AttendOp : Kernel_KernelOp<"attend"> {
  let summary = "Attention over dense keys and values, online softmax, no score matrix";
  let description = [{
    inputs: query [B, T, H, D], key [B, S, Hk, D], value [B, S, Hk, Dv]; with `hasKeyMask` a mask [B, S] (non-zero = visible, any
    integer type or i1); with `hasBias` a float bias whose 4-D shape broadcasts to [B, H, T, S]; with `hasMask` an i1 mask likewise;
    with `relativeOrigin` an f32 table [H or 1, L]: its element in column j - i - relativeOrigin, taken into 0 … L - 1, is added to the score of
    key j for query i. The first sixteen elements of a row of it are equal, and so are the last, so that those of any sixteen adjacent keys lie
    side by side.
    output: [B, T, H, Dv], and with two outputs the probabilities [B, H, T, S].
    With `causalOffset`, key j is visible to query i iff j <= i + causalOffset. emptyRow: 0 uniform, 1 zero, 2 NaN.
    Keys are visited from 0 in absolute blocks: a key that is not visible contributes exactly nothing.
  }];
  let arguments = !con(base, (ins F32Attr:$scale, OptionalAttr<Transept_DimAttr>:$causalOffset, F32Attr:$softcap, I64Attr:$emptyRow,
                       UnitAttr:$hasKeyMask, UnitAttr:$hasBias, UnitAttr:$hasMask, OptionalAttr<Transept_DimAttr>:$relativeOrigin));
  let assemblyFormat = "`shapes` $shapes" # operandsFormat # "attr-dict" # typesFormat;
}
def Kernel_AttendCacheOp : Kernel_KernelOp<"attend_cache"> {
  let summary = "Attention of T new positions per row over the paged self cache, each over positions 0 … its own";
  let description = [{
    inputs: query [rows, T, H, D], pool f32 or bf16 [blocks, E], block table i32 [rows, capacity], position i64 [rows] (of query 0), and with
    `relativeOrigin` a table as in attend, with positions for i.
    output: [rows, T, H, Dv].
    The key of position p and head h is at pool[block[row, p]] + keyOffset + (h * 16 + p mod 16) * D, likewise the value.
  }];
  let arguments = !con(base, (ins F32Attr:$scale, I64Attr:$heads, I64Attr:$kvHeads, I64Attr:$keySize, I64Attr:$valueSize,
                       I64Attr:$keyOffset, I64Attr:$valueOffset, OptionalAttr<I64Attr>:$relativeOrigin));
  let assemblyFormat = "`shapes` $shapes" # operandsFormat # "attr-dict" # typesFormat;
}
def Kernel_AttendSourceOp : Kernel_KernelOp<"attend_source"> {
  let summary = "Attention of rows over the keys and values of their source slot";
  let description = [{
    inputs: query [rows, T, H, D], key and value, both f32 or bf16, [batch, S, Hk, D] and [batch, S, Hk, Dv], source i32 [rows], and with `hasKeyMask`
    a mask [batch, S]. output: [rows, T, H, Dv], and with two outputs the probabilities [rows, H, T, S].
  }];
  let arguments = !con(base, (ins F32Attr:$scale, I64Attr:$emptyRow, UnitAttr:$hasKeyMask));
  let assemblyFormat = "`shapes` $shapes" # operandsFormat # "attr-dict" # typesFormat;
}
def Kernel_CacheAppendOp : Kernel_KernelOp<"cache_append"> {
  let summary = "Writes the keys and values of the rows' T new positions into the paged self cache";
  let description = [{
    inputs: key [rows, T, Hk, D], value [rows, T, Hk, Dv], pool [blocks, E] of the same type (written in place), block table i32 [rows, capacity], position i64 [rows].
    No outputs. Addresses as in attend_cache.
  }];
  let arguments = !con(base, (ins I64Attr:$kvHeads, I64Attr:$keySize, I64Attr:$valueSize, I64Attr:$keyOffset, I64Attr:$valueOffset));
  let assemblyFormat = "`shapes` $shapes" # operandsFormat # "attr-dict" # typesFormat;
}
def Kernel_SearchHeadOp : Kernel_KernelOp<"search_head"> {
  let summary = "Block maxima, sums of exponentials and candidates of every row's logits";
  let description = [{
    inputs: logits f32 [rows, V] (entries of special tokens are overwritten with -inf), special i32 [rows, specials] (ascending, -1 unused).
    outputs: maximum f32 [rows, VB], sum f32 [rows, VB] of exp(logit - maximum) over the whole block, value f32 and token i32 [rows, VB, topk] (the
    largest logits outside the special set, descending, ties: lower token first, unused: -inf and -1), special logits f32 [rows, specials].
    VB = ceil(V / blockSize). One item is one (row, block).
    A third input, best i32 [1], may be there: where it is not 0, nothing but the best tokens is wanted, and sums may be 1.
    With more inputs, logits are approximations, products of 8-bit integers that are overwritten, and only the best token outside the special set is
    found: x f32 [rows, K], packed f32 matrix [ceil(V / 64), K, 64], f32 [V] norms of the errors of the integers and of what they stand for, bias f32 [V]
    (may be missing). The best token of a row is that of the f32 logits, and stands first in its block; other blocks may have lesser tokens or none. The
    maximum and the first value are those of the logits of the block that were computed, and "sum" is how many these are.
    With the unit attribute `listed`, logits of listed tokens are computed and nothing else: see ir/ListedTokens.h.
  }];
  let arguments = !con(base, (ins I64Attr:$vocabulary, I64Attr:$blockSize));
  let assemblyFormat = "`shapes` $shapes" # operandsFormat # "attr-dict" # typesFormat;
}

//===- Scalar ops of kernel bodies ------------------------------------------------------------------------------------===//

def Kernel_LoadOp : Kernel_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "Element of an input (a body argument) at an index tuple; indices are in range";
  let arguments = (ins AnyType:$source, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$source `[` $indices `]` attr-dict `:` type($source) `->` type($result)";
}
def Kernel_StoreOp : Kernel_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes an element of an output of kernel.serial (a body argument) at an index tuple; indices are in range";
  let arguments = (ins AnyType:$value, AnyType:$target, Variadic<Index>:$indices);
  let assemblyFormat = "$value `to` $target `[` $indices `]` attr-dict `:` type($value) `,` type($target)";
}
def Kernel_SizeOp : Kernel_Op<"size", [Pure]> {
  let summary = "A size expression as an index value";
  let arguments = (ins Transept_DimAttr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
}
def Kernel_BoundedOp : Kernel_Op<"bounded", [MemoryEffects<[MemWrite]>]> {
  let summary = "index clamped to [0, size); out of range stores the first {check, reported} in the run's error word";
  let description = [{ `reported` is the value named in the message (the index as the model had it). Plan replaces `check` texts by ids: `id` counts from 1. }];
  let arguments = (ins Index:$index, Index:$size, Index:$reported, StrAttr:$check, OptionalAttr<I64Attr>:$id);
  let results = (outs Index:$result);
  let assemblyFormat = "$index `below` $size `reports` $reported `check` $check attr-dict";
}
def Kernel_YieldOp : Kernel_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Values of a kernel body";
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===- Entries on tensors (form … plan) ---------------------------------------------------------------------------------===//

def Kernel_EntryOp : Kernel_Op<"entry", [IsolatedFromAbove, Symbol, SingleBlockImplicitTerminator<"ReturnOp">]> {
  let summary = "An entry as kernels on tensors";
  let description = [{
    Block arguments are the caller's inputs: `inputNames`, `inputShapes` (DimsAttr each), `inputDefaults` (an ElementsAttr or unit each).
    Results: `outputNames`, `outputShapes`. `guards`: dictionaries {lhs, relation ("eq", "le", "ge", "ne"), rhs, message}.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$inputNames, ArrayAttr:$inputShapes, ArrayAttr:$inputDefaults,
                       StrArrayAttr:$outputNames, ArrayAttr:$outputShapes, ArrayAttr:$guards);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}
def Kernel_ReturnOp : Kernel_Op<"return", [Pure, Terminator, HasParent<"EntryOp">]> {
  let summary = "Outputs of an entry";
  let arguments = (ins Variadic<AnyTensor>:$values);
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}
def Kernel_ConstantOp : Kernel_Op<"constant", [Pure]> {
  let summary = "Constant data by WeightStore keys";
  let description = [{
    layout "rows": one key, as it is. layout "panels": the keys are matrices [K, N] ([N, K] where `transposed`), one per part, packed as
    [parts' panels][ceil(K / g)][64][g], where the g elements of adjacent k fill 4 bytes (f32: no axis for g = 1); each part is
    padded with zeros to whole panels and groups. Equal constants are stored once.
  }];
  let arguments = (ins StrArrayAttr:$keys, DenseBoolArrayAttr:$transposed, StrAttr:$layout);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$layout $keys $transposed attr-dict `:` type($result)";
}
def Kernel_StateOp : Kernel_Op<"state", [MemoryEffects<[MemRead]>]> {
  let summary = "A session state as a tensor";
  let arguments = (ins StrAttr:$name, Transept_DimsAttr:$shape, StrAttr:$role);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$name $shape `role` $role attr-dict `:` type($result)";
}
def Kernel_ExportOp : Kernel_Op<"export", [MemoryEffects<[MemWrite]>]> {
  let summary = "The tensor becomes the content of a session state";
  let arguments = (ins AnyTensor:$value, StrAttr:$name, Transept_DimsAttr:$shape, StrAttr:$role);
  let assemblyFormat = "$value `to` $name $shape `role` $role attr-dict `:` type($value)";
}
def Kernel_ReadSizesOp : Kernel_Op<"read_sizes", [MemoryEffects<[MemWrite]>]> {
  let summary = "The elements of an i64 tensor become the values of run-time symbols";
  let description = [{ Ops that depend on the symbols come after it. A negative element is an error of the run. }];
  let arguments = (ins AnyTensor:$values, StrArrayAttr:$symbols);
  let assemblyFormat = "$values `to` $symbols attr-dict `:` type($values)";
}
def Kernel_VariableOp : Kernel_Op<"variable", [MemoryEffects<[MemRead]>]> {
  let summary = "A tensor that kernel.set gives new contents, while an entry branches and repeats";
  let description = [{ Its memory is set up whenever a label with the same arena is passed; its dims are those of that moment. }];
  let arguments = (ins StrAttr:$name, StrAttr:$arena, Transept_DimsAttr:$shape);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$name `in` $arena $shape attr-dict `:` type($result)";
}
def Kernel_SetOp : Kernel_Op<"set", [MemoryEffects<[MemWrite]>]> {
  let summary = "The tensor becomes the content of a variable; follows a label with the variable's arena";
  let arguments = (ins AnyTensor:$value, AnyTensor:$variable);
  let assemblyFormat = "$value `to` $variable attr-dict `:` type($value) `,` type($variable)";
}
def Kernel_LabelOp : Kernel_Op<"label", [MemoryEffects<[MemWrite]>]> {
  let summary = "A place that jumps lead to: run-time symbols get values, then an arena is set up";
  let arguments = (ins StrAttr:$name, OptionalAttr<StrArrayAttr>:$sets, OptionalAttr<ArrayAttr>:$setValues, OptionalAttr<StrAttr>:$arena);
  let assemblyFormat = "$name (`sets` $sets^ `to` $setValues)? (`arena` $arena^)? attr-dict";
}
def Kernel_JumpOp : Kernel_Op<"jump", [MemoryEffects<[MemWrite]>]> {
  let summary = "Goes on at a label";
  let arguments = (ins StrAttr:$target);
  let assemblyFormat = "$target attr-dict";
}
def Kernel_BranchOp : Kernel_Op<"branch", [MemoryEffects<[MemWrite]>]> {
  let summary = "Goes on at one of two labels, as one boolean says";
  let arguments = (ins AnyTensor:$condition, StrAttr:$target, StrAttr:$otherwise);
  let assemblyFormat = "$condition `to` $target `else` $otherwise attr-dict `:` type($condition)";
}
def Kernel_GuardOp : Kernel_Op<"guard", [MemoryEffects<[MemWrite]>]> {
  let summary = "A relation {lhs, relation, rhs, message} that must hold when the code after it is entered";
  let arguments = (ins DictionaryAttr:$relation);
  let assemblyFormat = "$relation attr-dict";
}
def Kernel_ViewOp : Kernel_Op<"view", [Pure]> {
  let summary = "The same elements under another shape; no copy";
  let arguments = (ins AnyTensor:$source, ArrayAttr:$shape);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$source `as` $shape attr-dict `:` type($source) `to` type($result)";
}

//===- Functions and programs (plan … pack) --------------------------------------------------------------------------------===//

def Kernel_FuncOp : Kernel_Op<"func", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "One kernel on buffers: what a target compiles";
  let description = [{
    The block's arguments are buffers, one per operand of the single kernel op inside (inputs, outputs, live rows). `symbols` are the names
    whose values a dispatch passes as sizes, in this order. `sourceNodes`: the model nodes it came from.
    Schedule adds `items` (a dim over `symbols`) and `scratch` (bytes per thread).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols, StrAttr:$sourceNodes, OptionalAttr<Transept_DimAttr>:$items,
                       OptionalAttr<Transept_DimAttr>:$scratch);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `symbols` $symbols `from` $sourceNodes attr-dict-with-keyword $body";
}
def Kernel_ProgramOp : Kernel_Op<"program", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "An entry as the runtime walks it: buffers, then segments";
  let description = [{
    `symbols` are known when a call is set up, `runTimeSymbols` are set by segments. A guard may say its `segment` (default 0).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols, OptionalAttr<StrArrayAttr>:$runTimeSymbols, ArrayAttr:$guards);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `symbols` $symbols (`run_time` $runTimeSymbols^)? attr-dict-with-keyword $body";
}
def Kernel_SegmentOp : Kernel_Op<"segment", [HasParent<"ProgramOp">, SingleBlock, NoTerminator]> {
  let summary = "Dispatches whose sizes are known when the segment is entered, and what follows them";
  let description = [{
    Entering it: symbol `sets[i]` gets the value `setValues[i]`, then the arena `arena` is set up (segments may share one), then
    dispatches and read-backs run in order. Segment `next` follows, or `otherwise` where the first element of `condition` is zero; the
    number of segments stands for the end.
  }];
  let arguments = (ins I64Attr:$arena, Transept_DimAttr:$arenaBytes, I64Attr:$next, Optional<Kernel_BufferType>:$condition, OptionalAttr<I64Attr>:$otherwise,
                       OptionalAttr<StrArrayAttr>:$sets, OptionalAttr<ArrayAttr>:$setValues);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ (`sets` $sets^ `to` $setValues)? `arena` $arena $arenaBytes `next` $next (`if` $condition^ `:` type($condition) `else` $otherwise)?
    attr-dict-with-keyword $body }];
}
def Kernel_ReadBackOp : Kernel_Op<"read_back", [HasParent<"SegmentOp">]> {
  let summary = "The first elements of an i64 buffer become the values of run-time symbols";
  let arguments = (ins Kernel_BufferType:$buffer, StrArrayAttr:$symbols, StrAttr:$sourceNodes);
  let assemblyFormat = "$buffer `to` $symbols `for` $sourceNodes attr-dict `:` type($buffer)";
}
def Kernel_BufferOp : Kernel_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "Where a tensor of a program lives";
  let description = [{
    storage: "input", "output", "arena", "constant", "state". arena: `offset` in bytes over symbols, 256-byte aligned, in the arena
    `arena` (default 0), in which outputs lie as well.
    constant: `keys`, `transposed`, `layout` as in kernel.constant (pack assigns the file offset). input: `defaultValue` if it may be left out.
    state: `role` as in kernel.state.
  }];
  let arguments = (ins StrAttr:$storage, StrAttr:$name, Transept_DimsAttr:$shape, OptionalAttr<Transept_DimAttr>:$offset,
                       OptionalAttr<StrArrayAttr>:$keys, OptionalAttr<DenseBoolArrayAttr>:$transposed, OptionalAttr<StrAttr>:$layout,
                       OptionalAttr<StrAttr>:$role, OptionalAttr<ElementsAttr>:$defaultValue, OptionalAttr<I64Attr>:$arena);
  let results = (outs Kernel_BufferType:$result);
  let assemblyFormat = "$storage $name $shape (`at` $offset^)? (`arena` $arena^)? attr-dict `:` type($result)";
}
def Kernel_DispatchOp : Kernel_Op<"dispatch", [HasParent<"SegmentOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel function on buffers";
  let description = [{ With `barrier`, all threads wait for all earlier dispatches first. Sizes are the values of the callee's symbols. }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Kernel_BufferType>:$buffers, UnitAttr:$barrier);
  let assemblyFormat = "$callee `(` $buffers `)` attr-dict `:` type($buffers)";
}

#endif // TRANSEPT_KERNEL_OPS
