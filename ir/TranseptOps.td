//===- TranseptOps.td - the graph-level ops ------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An op is described once, here. The import table, the docs and the evaluator's dispatch derive from this file:
// `onnx` is the ONNX operator that maps to the op one to one after opset upgrade ("" where the importer composes it),
// `since` the first ONNX version with the meaning stated here.

#ifndef TRANSEPT_OPS
#define TRANSEPT_OPS

include "ir/TranseptDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===- Base classes ---------------------------------------------------------------------------------------------===//

class Transept_Op<string mnemonic, string onnx, int since, list<Trait> traits = []>
    : Op<Transept_Dialect, mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<Transept_GraphOpInterface>])> {
  string onnxName = onnx;
  int onnxSince = since;
  code names = "static constexpr ::llvm::StringLiteral onnxName = \"" # onnx # "\";\n" #
               "static constexpr int onnxSince = " # since # ";\n";
  let extraClassDeclaration = names;
}
class Transept_PureOp<string mnemonic, string onnx, int since, list<Trait> traits = []>
    : Transept_Op<mnemonic, onnx, since, !listconcat([Pure], traits)>;

/// Marks ops that compute result element i from operand elements i alone (with broadcasting).
def Transept_Elementwise : NativeOpTrait<"Elementwise"> { let cppNamespace = "::mlir::transept"; }
/// Marks element-wise ops that are defined for floats only.
def Transept_FloatsOnly : NativeOpTrait<"FloatsOnly"> { let cppNamespace = "::mlir::transept"; }

/// Axes align with those of the result. What an op does to elements is in ir/InferElementwise.cpp and
/// ir/EvaluateElementwise.cpp.
class Transept_ElementwiseOp<string mnemonic, string onnx, int since, list<Trait> traits = []>
    : Transept_PureOp<mnemonic, onnx, since, !listconcat([Transept_Elementwise], traits)> {
  code axes = [{
    ::mlir::transept::AxisBehaviour $cppClass::axisBehaviour(unsigned operand, int64_t axis, int64_t &resultAxis) {
      return elementwise::alignedAxis(*this, operand, axis, resultAxis);
    }
  }];
  let extraClassDefinition = axes;
}
class Transept_UnaryOp<string mnemonic, string onnx, int since, list<Trait> traits = []>
    : Transept_ElementwiseOp<mnemonic, onnx, since, traits> {
  let arguments = (ins AnyTensor:$input);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
/// A function of one float; `host` is its C++ expression, double to double. Nothing else is to be said of it but what
/// a kernel computes (passes/FormElementwise.cpp).
class Transept_FloatUnaryOp<string mnemonic, string onnx, int since, string host>
    : Transept_UnaryOp<mnemonic, onnx, since, [Transept_FloatsOnly]> {
  let extraClassDefinition = axes # [{
    ::mlir::LogicalResult $cppClass::infer(InferContext &context, ::llvm::ArrayRef<Fact> operands,
                                           ::llvm::SmallVectorImpl<Fact> &results) {
      return elementwise::inferUnary(context, *this, operands, results);
    }
    ::mlir::LogicalResult $cppClass::evaluate(::llvm::ArrayRef<HostTensor> operands,
                                              ::llvm::SmallVectorImpl<HostTensor> &results) {
      return elementwise::evaluateUnary(*this, operands, results, }] # host # [{, nullptr);
    }
  }];
}
class Transept_BinaryOp<string mnemonic, string onnx, int since>
    : Transept_ElementwiseOp<mnemonic, onnx, since> {
  let arguments = (ins AnyTensor:$lhs, AnyTensor:$rhs);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}
/// Compares element by element; the result is a tensor of i1.
class Transept_CompareOp<string mnemonic, string onnx, int since> : Transept_BinaryOp<mnemonic, onnx, since>;

//===- Constants and weights ------------------------------------------------------------------------------------===//

def Transept_ConstantOp : Transept_PureOp<"constant", "", 1, [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A small constant, written out";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}
def Transept_WeightOp : Transept_PureOp<"weight", "", 1> {
  let summary = "A weight: content in the context's WeightStore";
  let description = [{ `key` is the SHA-256 of shape, type and content: equal weights are one, across all files of an export. }];
  let arguments = (ins StrAttr:$key, OptionalAttr<StrAttr>:$name);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$key attr-dict `:` type($result)";
}

//===- Element-wise ----------------------------------------------------------------------------------------------===//

def Transept_NegOp : Transept_UnaryOp<"neg", "Neg", 13> { let summary = "Negation"; }
def Transept_AbsOp : Transept_UnaryOp<"abs", "Abs", 13> { let summary = "Absolute value"; }
def Transept_SignOp : Transept_UnaryOp<"sign", "Sign", 13> { let summary = "-1, 0 or 1"; }
def Transept_ReluOp : Transept_UnaryOp<"relu", "Relu", 14> { let summary = "max(x, 0)"; }
def Transept_FloorOp : Transept_UnaryOp<"floor", "Floor", 13, [Transept_FloatsOnly]> { let summary = "Largest integer not above"; }
def Transept_CeilOp : Transept_UnaryOp<"ceil", "Ceil", 13, [Transept_FloatsOnly]> { let summary = "Smallest integer not below"; }
def Transept_RoundOp : Transept_UnaryOp<"round", "Round", 11, [Transept_FloatsOnly]> { let summary = "Nearest integer, halves to even"; }
def Transept_NotOp : Transept_UnaryOp<"not", "Not", 1> { let summary = "Logical negation"; }
def Transept_BitwiseNotOp : Transept_UnaryOp<"bitwise_not", "BitwiseNot", 18> { let summary = "Every bit of an integer inverted"; }
def Transept_IsNaNOp : Transept_UnaryOp<"is_nan", "IsNaN", 20, [Transept_FloatsOnly]> { let summary = "Whether the element is not a number"; }
def Transept_GeluOp : Transept_UnaryOp<"gelu", "Gelu", 20, [Transept_FloatsOnly]> {
  let summary = "x * Phi(x): exact with the error function, or its tanh approximation";
  let arguments = (ins AnyTensor:$input, DefaultValuedAttr<StrAttr, "\"none\"">:$approximate);
}
def Transept_CastOp : Transept_UnaryOp<"cast", "Cast", 13> {
  let summary = "Conversion to the element type `to`";
  let description = [{
    Floats round to the nearest, ties to even. To integers they are truncated; NaN gives 0, what is out of range the nearest
    bound. Integers wrap. What is out of the range of an 8-bit float is its largest number with `saturate`, else infinity or
    NaN, whichever the type has. f8e8m0 has powers of two only: `round` is "nearest", "up" or "down".
  }];
  let arguments = (ins AnyTensor:$input, TypeAttr:$to, DefaultValuedAttr<BoolAttr, "true">:$saturate,
                       DefaultValuedAttr<StrAttr, "\"nearest\"">:$round);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input, "::mlir::TypeAttr":$to),
                            [{ build($_builder, $_state, result, input, to.getValue()); }]>];
}
def Transept_BitCastOp : Transept_UnaryOp<"bit_cast", "", 26> {
  let summary = "The same bits as an element of type `to`, which has the same width";
  let arguments = (ins AnyTensor:$input, TypeAttr:$to);
}

def Transept_SqrtOp : Transept_FloatUnaryOp<"sqrt", "Sqrt", 13, "[](double x) { return std::sqrt(x); }"> { let summary = "Square root"; }
def Transept_ReciprocalOp : Transept_FloatUnaryOp<"reciprocal", "Reciprocal", 13, "[](double x) { return 1 / x; }"> { let summary = "1 / x"; }
def Transept_ExpOp : Transept_FloatUnaryOp<"exp", "Exp", 13, "math::exp"> { let summary = "Natural exponential"; }
def Transept_LogOp : Transept_FloatUnaryOp<"log", "Log", 13, "math::log"> { let summary = "Natural logarithm"; }
def Transept_Log1pOp : Transept_FloatUnaryOp<"log1p", "", 1, "math::log1p"> { let summary = "log(1 + x)"; }
def Transept_SinOp : Transept_FloatUnaryOp<"sin", "Sin", 7, "math::sin"> { let summary = "Sine of radians"; }
def Transept_CosOp : Transept_FloatUnaryOp<"cos", "Cos", 7, "math::cos"> { let summary = "Cosine of radians"; }
def Transept_TanOp : Transept_FloatUnaryOp<"tan", "Tan", 7, "math::tan"> { let summary = "Tangent of radians"; }
def Transept_AsinOp : Transept_FloatUnaryOp<"asin", "Asin", 7, "math::asin"> { let summary = "Arcsine in radians"; }
def Transept_AcosOp : Transept_FloatUnaryOp<"acos", "Acos", 7, "math::acos"> { let summary = "Arccosine in radians"; }
def Transept_AtanOp : Transept_FloatUnaryOp<"atan", "Atan", 7, "math::atan"> { let summary = "Arctangent in radians"; }
def Transept_SinhOp : Transept_FloatUnaryOp<"sinh", "Sinh", 9, "math::sinh"> { let summary = "Hyperbolic sine"; }
def Transept_CoshOp : Transept_FloatUnaryOp<"cosh", "Cosh", 9, "math::cosh"> { let summary = "Hyperbolic cosine"; }
def Transept_TanhOp : Transept_FloatUnaryOp<"tanh", "Tanh", 13, "math::tanh"> { let summary = "Hyperbolic tangent"; }
def Transept_AsinhOp : Transept_FloatUnaryOp<"asinh", "Asinh", 9, "math::asinh"> { let summary = "Inverse hyperbolic sine"; }
def Transept_AcoshOp : Transept_FloatUnaryOp<"acosh", "Acosh", 9, "math::acosh"> { let summary = "Inverse hyperbolic cosine"; }
def Transept_AtanhOp : Transept_FloatUnaryOp<"atanh", "Atanh", 9, "math::atanh"> { let summary = "Inverse hyperbolic tangent"; }
def Transept_ErfOp : Transept_FloatUnaryOp<"erf", "Erf", 13, "math::erf"> { let summary = "Gauss error function, element by element"; }
def Transept_SigmoidOp : Transept_FloatUnaryOp<"sigmoid", "Sigmoid", 13, "math::sigmoid"> { let summary = "1 / (1 + exp(-x))"; }
def Transept_SiluOp : Transept_FloatUnaryOp<"silu", "", 24, "[](double x) { return x * math::sigmoid(x); }"> { let summary = "x * sigmoid(x)"; }

def Transept_AddOp : Transept_BinaryOp<"add", "Add", 14> { let summary = "Sum"; }
def Transept_SubOp : Transept_BinaryOp<"sub", "Sub", 14> { let summary = "Difference"; }
def Transept_MulOp : Transept_BinaryOp<"mul", "Mul", 14> { let summary = "Product"; }
def Transept_DivOp : Transept_BinaryOp<"div", "Div", 14> { let summary = "Quotient; integers truncate towards zero, and a divisor of zero gives 0 at run time"; }
def Transept_PowOp : Transept_BinaryOp<"pow", "Pow", 15> { let summary = "lhs to the power of rhs"; }
def Transept_MinOp : Transept_BinaryOp<"min", "Min", 13> { let summary = "Smaller element; NaN wins"; }
def Transept_MaxOp : Transept_BinaryOp<"max", "Max", 13> { let summary = "Larger element; NaN wins"; }
def Transept_ModOp : Transept_BinaryOp<"mod", "Mod", 13> {
  let summary = "Remainder: sign of the divisor, or of the dividend with `fmod`; of integers, a divisor of zero leaves the dividend";
  let arguments = (ins AnyTensor:$lhs, AnyTensor:$rhs, DefaultValuedAttr<I64Attr, "0">:$fmod);
}
def Transept_AndOp : Transept_BinaryOp<"and", "And", 7> { let summary = "Logical conjunction"; }
def Transept_OrOp : Transept_BinaryOp<"or", "Or", 7> { let summary = "Logical disjunction"; }
def Transept_XorOp : Transept_BinaryOp<"xor", "Xor", 7> { let summary = "Logical exclusive disjunction"; }
def Transept_BitwiseAndOp : Transept_BinaryOp<"bitwise_and", "BitwiseAnd", 18> { let summary = "Conjunction of every bit of integers"; }
def Transept_BitwiseOrOp : Transept_BinaryOp<"bitwise_or", "BitwiseOr", 18> { let summary = "Disjunction of every bit of integers"; }
def Transept_BitwiseXorOp : Transept_BinaryOp<"bitwise_xor", "BitwiseXor", 18> { let summary = "Exclusive disjunction of every bit of integers"; }
def Transept_BitShiftOp : Transept_BinaryOp<"bit_shift", "", 11> {
  let summary = "lhs shifted by rhs bits to the left or to the right; zeros come in, also for shifts by the width and more";
  let arguments = (ins AnyTensor:$lhs, AnyTensor:$rhs, UnitAttr:$right);
}
def Transept_EqualOp : Transept_CompareOp<"equal", "Equal", 19> { let summary = "lhs == rhs"; }
def Transept_LessOp : Transept_CompareOp<"less", "Less", 13> { let summary = "lhs < rhs"; }
def Transept_LessOrEqualOp : Transept_CompareOp<"less_or_equal", "LessOrEqual", 16> { let summary = "lhs <= rhs"; }
def Transept_GreaterOp : Transept_CompareOp<"greater", "Greater", 13> { let summary = "lhs > rhs"; }
def Transept_GreaterOrEqualOp : Transept_CompareOp<"greater_or_equal", "GreaterOrEqual", 16> { let summary = "lhs >= rhs"; }
def Transept_WhereOp : Transept_ElementwiseOp<"where", "Where", 16> {
  let summary = "Chooses element by element";
  let arguments = (ins AnyTensor:$condition, AnyTensor:$onTrue, AnyTensor:$onFalse);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$condition `,` $onTrue `,` $onFalse attr-dict `:` functional-type(operands, results)";
}

//===- Products ---------------------------------------------------------------------------------------------------===//

def Transept_MatMulOp : Transept_PureOp<"matmul", "MatMul", 13> {
  let summary = "Matrix product over the last two axes, leading axes broadcast (NumPy rules)";
  let arguments = (ins AnyTensor:$lhs, AnyTensor:$rhs);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}
def Transept_LinearOp : Transept_PureOp<"linear", "", 1> {
  let summary = "input [..., K] times a constant matrix, plus bias";
  let description = [{ `weight` is [K, N], or [N, K] with `transposed`. Result [..., N]. Made by fusion. }];
  let arguments = (ins AnyTensor:$input, AnyTensor:$weight, Optional<AnyTensor>:$bias, UnitAttr:$transposed);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input `,` $weight (`,` $bias^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_MatMulIntegerOp : Transept_PureOp<"matmul_integer", "MatMulInteger", 10, [AttrSizedOperandSegments]> {
  let summary = "Exact product of 8-bit integers in 32 bits, zero points subtracted first";
  let results = (outs AnyTensor:$result);
  let assemblyFormat = [{ $lhs `,` $rhs (`lhs_zero_point` `(` $lhsZeroPoint^ `)`)? (`rhs_zero_point` `(` $rhsZeroPoint^ `)`)? attr-dict `:` functional-type(operands, results) }];
  let arguments = (ins AnyTensor:$lhs, AnyTensor:$rhs, Optional<AnyTensor>:$lhsZeroPoint, Optional<AnyTensor>:$rhsZeroPoint);
}
def Transept_ConvOp : Transept_PureOp<"conv", "Conv", 11> {
  let summary = "Convolution over any number of spatial axes";
  let description = [{ input [B, C, spatial…], weight [O, C / groups, kernel…]. `pads` holds all begins, then all ends. }];
  let arguments = (ins AnyTensor:$input, AnyTensor:$weight, Optional<AnyTensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, I64Attr:$group);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input `,` $weight (`,` $bias^)? attr-dict `:` functional-type(operands, results)";
}

def Transept_WindowsOp : Transept_PureOp<"windows", "", 1> {
  let summary = "The windows of the last axes: result[…, o…, k…] = input[…, o * stride + k * dilation…]";
  let description = [{
    One entry of `kernel`, `strides` and `dilations` per windowed axis. An axis of size s has floordiv(s - reach, stride) + 1 windows,
    where reach = (kernel - 1) * dilation + 1. Pooling is a reduction of the kernel axes; padding comes before.
  }];
  let arguments = (ins AnyTensor:$input, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Transept_DetOp : Transept_PureOp<"det", "Det", 11> {
  let summary = "Determinants of the square matrices in the last two axes";
  let arguments = (ins AnyTensor:$input);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

//===- Along rows -------------------------------------------------------------------------------------------------===//

def Transept_ReduceOp : Transept_PureOp<"reduce", "", 18> {
  let summary = "Reduction over `axes` (all of them if empty and not `noop`)";
  let description = [{ Axes are non-negative once the rank is known. `axesValue` is the run-time form. }];
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$axesValue, Transept_ReduceKindAttr:$kind,
                       OptionalAttr<DenseI64ArrayAttr>:$axes, BoolAttr:$keepdims, BoolAttr:$noopWithEmptyAxes);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$kind $input (`,` $axesValue^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_ArgMaxOp : Transept_PureOp<"argmax", "ArgMax", 13> {
  let summary = "Index of the largest (or smallest) element along `axis`, i64; the first NaN is both";
  let arguments = (ins AnyTensor:$input, I64Attr:$axis, BoolAttr:$keepdims, BoolAttr:$selectLastIndex, UnitAttr:$smallest);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Transept_SoftmaxOp : Transept_PureOp<"softmax", "Softmax", 13> {
  let summary = "exp(x - max) / sum along one axis, or its logarithm";
  let arguments = (ins AnyTensor:$input, I64Attr:$axis, UnitAttr:$logarithm);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Transept_LayerNormOp : Transept_PureOp<"layer_norm", "", 17, [AttrSizedOperandSegments]> {
  let summary = "(x - mean) / sqrt(var + epsilon) * scale + bias over axes from `axis` on";
  let description = [{ The variance is the mean of squared deviations (population). With `rms`, the mean is not subtracted. }];
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$scale, Optional<AnyTensor>:$bias, I64Attr:$axis, F32Attr:$epsilon, UnitAttr:$rms);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`scale` `(` $scale^ `)`)? (`bias` `(` $bias^ `)`)? attr-dict `:` functional-type(operands, results)";
}
def Transept_CumSumOp : Transept_PureOp<"cumsum", "CumSum", 14> {
  let summary = "Running sum, or with `product` running product, along an axis";
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$axisValue, OptionalAttr<I64Attr>:$axis, BoolAttr:$exclusive, BoolAttr:$reverse,
                       UnitAttr:$product);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`,` $axisValue^)? attr-dict `:` functional-type(operands, results)";
}

def Transept_TopKOp : Transept_PureOp<"top_k", "TopK", 11> {
  let summary = "The `k` largest (or smallest) elements along `axis` in order, and their indices; among equals the lower index first";
  let description = [{ NaN counts as larger than every number. Resolved: `k` instead of the operand. Indices are i64. }];
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$kValue, OptionalAttr<Transept_DimAttr>:$k, I64Attr:$axis, BoolAttr:$largest);
  let results = (outs AnyTensor:$values, AnyTensor:$indices);
  let assemblyFormat = "$input (`,` $kValue^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_RecurrentOp : Transept_PureOp<"recurrent", "", 14, [AttrSizedOperandSegments]> {
  let summary = "One direction of a recurrent layer (simple, GRU or LSTM) over the leading axis";
  let description = [{
    input [T, B, G * H]: what the positions contribute to the G gates, biases included (G = 1, 3 or 4; gates in the order of ONNX: h, zrh, iofc);
    weight [H, G * H]: what the hidden state contributes. `lengths` [B] (integers): positions from there on are not visited and give 0.
    `hidden` and `cell` [B, H]: the state before the first position, 0 where absent. `peephole` [3 * H] (LSTM; iof). `hiddenBias` [H] (GRU
    with `linearBeforeReset`): added to the product of state and weight before the reset gate scales it. With `reverse`, positions are visited
    from the last to the first. `activations`: of ONNX's names, f, g and h in this order, with their `alpha` and `beta`; `clip` (0: none) limits
    what the gates take into them. `coupled`: the forget gate is 1 - input gate.
    Results: hidden states [T, B, H], the last one [B, H], and for an LSTM the last cell state [B, H].
  }];
  let arguments = (ins AnyTensor:$input, AnyTensor:$weight, Optional<AnyTensor>:$lengths, Optional<AnyTensor>:$hidden, Optional<AnyTensor>:$cell,
                       Optional<AnyTensor>:$peephole, Optional<AnyTensor>:$hiddenBias, Transept_CellKindAttr:$kind, StrArrayAttr:$activations,
                       DenseF32ArrayAttr:$alpha, DenseF32ArrayAttr:$beta, F32Attr:$clip, UnitAttr:$reverse, UnitAttr:$linearBeforeReset,
                       UnitAttr:$coupled);
  let results = (outs AnyTensor:$result, AnyTensor:$lastHidden, Optional<AnyTensor>:$lastCell);
  let assemblyFormat = [{ $kind $input `,` $weight (`lengths` `(` $lengths^ `)`)? (`hidden` `(` $hidden^ `)`)? (`cell` `(` $cell^ `)`)?
    (`peephole` `(` $peephole^ `)`)? (`hidden_bias` `(` $hiddenBias^ `)`)? attr-dict `:` functional-type(operands, results) }];
}

//===- Movement of elements ---------------------------------------------------------------------------------------===//
// Ops that take a shape or amounts have two forms: with an operand, as imported, and resolved, where the operand is
// absent and the result type or an attribute says it. The shapes phase turns the first into the second.

def Transept_ReshapeOp : Transept_PureOp<"reshape", "Reshape", 14> {
  let summary = "The same elements in row-major order under another shape";
  let description = [{ With `shape`: ONNX rules (0 copies unless `allowZero`, one -1). Without: the result type's dims. }];
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$shape, BoolAttr:$allowZero);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`,` $shape^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_TransposeOp : Transept_PureOp<"transpose", "", 13> {
  let summary = "Result axis i is operand axis `permutation[i]`";
  let arguments = (ins AnyTensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Transept_BroadcastOp : Transept_PureOp<"broadcast", "Expand", 13> {
  let summary = "Repeats axes of size 1 (two-way, NumPy rules, with `shape`; resolved: to the result type)";
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$shape);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`,` $shape^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_TileOp : Transept_PureOp<"tile", "Tile", 13> {
  let summary = "Repeats the whole tensor along each axis";
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$repeats);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`,` $repeats^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_SqueezeOp : Transept_PureOp<"squeeze", "", 13> {
  let summary = "Drops axes of size 1 (all of them if none is named); becomes a reshape once the rank is known";
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$axesValue, OptionalAttr<DenseI64ArrayAttr>:$axes);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`,` $axesValue^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_UnsqueezeOp : Transept_PureOp<"unsqueeze", "", 13> {
  let summary = "Inserts axes of size 1; becomes a reshape once the rank is known";
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$axesValue, OptionalAttr<DenseI64ArrayAttr>:$axes);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`,` $axesValue^)? attr-dict `:` functional-type(operands, results)";
}
def Transept_SliceOp : Transept_PureOp<"slice", "", 13, [AttrSizedOperandSegments]> {
  let summary = "Every `steps[i]`-th element from `starts[i]` on";
  let description = [{
    With operands: ONNX rules (negative from the end, clamping, negative steps). Resolved: `starts` and `steps` have one
    entry per axis, sizes are the result type's dims, and every index is in range.
  }];
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$startsValue, Optional<AnyTensor>:$endsValue, Optional<AnyTensor>:$axesValue,
                       Optional<AnyTensor>:$stepsValue, OptionalAttr<ArrayAttr>:$starts, OptionalAttr<DenseI64ArrayAttr>:$steps);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = [{ $input (`from` `(` $startsValue^ `)`)? (`to` `(` $endsValue^ `)`)? (`axes` `(` $axesValue^ `)`)? (`by` `(` $stepsValue^ `)`)?
    attr-dict `:` functional-type(operands, results) }];
}
def Transept_ConcatOp : Transept_PureOp<"concat", "Concat", 13> {
  let summary = "Joins tensors along `axis`";
  let arguments = (ins Variadic<AnyTensor>:$inputs, I64Attr:$axis);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}
def Transept_PadOp : Transept_PureOp<"pad", "Pad", 18, [AttrSizedOperandSegments]> {
  let summary = "Adds (or, negative, removes) elements at both ends of axes";
  let description = [{ Resolved: `low` has one dim expression per axis; the result type says the rest. }];
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$padsValue, Optional<AnyTensor>:$fill, Optional<AnyTensor>:$axesValue,
                       Transept_PadModeAttr:$mode, OptionalAttr<ArrayAttr>:$low);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = [{ $mode $input (`pads` `(` $padsValue^ `)`)? (`fill` `(` $fill^ `)`)? (`axes` `(` $axesValue^ `)`)?
    attr-dict `:` functional-type(operands, results) }];
}
def Transept_GatherOp : Transept_PureOp<"gather", "Gather", 13> {
  let summary = "Slices of `data` along `axis` at `indices`; negative indices count from the end; out of range is a run-time error";
  let arguments = (ins AnyTensor:$data, AnyTensor:$indices, I64Attr:$axis);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$data `,` $indices attr-dict `:` functional-type(operands, results)";
}
def Transept_GatherElementsOp : Transept_PureOp<"gather_elements", "GatherElements", 13> {
  let summary = "result[i…] = data[i… with `axis` replaced by indices[i…]]";
  let arguments = (ins AnyTensor:$data, AnyTensor:$indices, I64Attr:$axis);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$data `,` $indices attr-dict `:` functional-type(operands, results)";
}
def Transept_GatherNDOp : Transept_PureOp<"gather_nd", "GatherND", 13> {
  let summary = "Slices of `data` at index tuples held in the last axis of `indices`";
  let arguments = (ins AnyTensor:$data, AnyTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batchDims);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$data `,` $indices attr-dict `:` functional-type(operands, results)";
}
def Transept_ScatterElementsOp : Transept_PureOp<"scatter_elements", "ScatterElements", 18> {
  let summary = "A copy of `data` where element i… with `axis` replaced by indices[i…] is combined with updates[i…], in order";
  let arguments = (ins AnyTensor:$data, AnyTensor:$indices, AnyTensor:$updates, I64Attr:$axis, Transept_ScatterKindAttr:$reduction);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$reduction $data `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
}
def Transept_ScatterNDOp : Transept_PureOp<"scatter_nd", "ScatterND", 18> {
  let summary = "A copy of `data` with slices at index tuples updated";
  let arguments = (ins AnyTensor:$data, AnyTensor:$indices, AnyTensor:$updates, Transept_ScatterKindAttr:$reduction);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$reduction $data `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
}
def Transept_TriluOp : Transept_PureOp<"trilu", "Trilu", 14> {
  let summary = "Keeps the upper (column >= row + k) or lower (column <= row + k) triangle, zero elsewhere";
  let arguments = (ins AnyTensor:$input, Optional<AnyTensor>:$kValue, OptionalAttr<I64Attr>:$k, BoolAttr:$upper);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input (`,` $kValue^)? attr-dict `:` functional-type(operands, results)";
}

//===- Shapes and positions as data ---------------------------------------------------------------------------------===//

def Transept_ShapeOp : Transept_PureOp<"shape", "", 15> {
  let summary = "Sizes of axes [start, end) as i64 values";
  let arguments = (ins AnyTensor:$input, OptionalAttr<I64Attr>:$start, OptionalAttr<I64Attr>:$end);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Transept_SizeOp : Transept_PureOp<"size", "Size", 13> {
  let summary = "Number of elements as an i64 scalar";
  let arguments = (ins AnyTensor:$input);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Transept_DimValueOp : Transept_PureOp<"dim_value", "", 1> {
  let summary = "Symbolic sizes as data: an integer or float scalar or vector whose elements are dim expressions";
  let arguments = (ins ArrayAttr:$dims);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$dims attr-dict `:` type($result)";
}
def Transept_RangeOp : Transept_PureOp<"range", "Range", 11, [AttrSizedOperandSegments]> {
  let summary = "start, start + step, … below limit";
  let description = [{ Resolved (integers): `startDim` and `stepValue`; the result type says how many. }];
  let arguments = (ins Optional<AnyTensor>:$start, Optional<AnyTensor>:$limit, Optional<AnyTensor>:$delta,
                       OptionalAttr<Transept_DimAttr>:$startDim, OptionalAttr<I64Attr>:$stepValue);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "(`from` `(` $start^ `)`)? (`to` `(` $limit^ `)`)? (`by` `(` $delta^ `)`)? attr-dict `:` functional-type(operands, results)";
}
def Transept_NonZeroOp : Transept_PureOp<"nonzero", "NonZero", 13> {
  let summary = "Coordinates [rank, count] of the elements that are not zero, in row-major order, i64";
  let arguments = (ins AnyTensor:$input);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Transept_ReadSizesOp : Transept_Op<"read_sizes", "", 1, [MemoryEffects<[MemWrite]>]> {
  let summary = "The elements of an i64 vector become the values of run-time symbols; a negative one is a run-time error";
  let arguments = (ins AnyTensor:$values, StrArrayAttr:$symbols);
  let assemblyFormat = "$values `to` $symbols attr-dict `:` type($values)";
}
def Transept_FillOp : Transept_PureOp<"fill", "ConstantOfShape", 9> {
  let summary = "One value everywhere; the shape is an operand, or resolved, the result type's";
  let arguments = (ins Optional<AnyTensor>:$shape, ElementsAttr:$value);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$value (`,` $shape^)? attr-dict `:` functional-type(operands, results)";
}

//===- Attention ------------------------------------------------------------------------------------------------------===//

def Transept_AttentionOp : Transept_PureOp<"attention", "", 23, [AttrSizedOperandSegments]> {
  let summary = "softmax(scale * Q K^T + mask) V";
  let description = [{
    query [B, T, H, D], key [B, S, Hk, D], value [B, S, Hk, Dv]; H is a multiple of Hk. Result [B, T, H, Dv].
    Key j is visible to query i iff `causal` is absent or j <= i + causalOffset, and keyMask [B, S] (absent: all) is non-zero.
    With `softcap`, the scaled product x becomes softcap * tanh(x / softcap). `bias` (float) is broadcast to [B, H, T, S] and added to it; values of -1e4 and below count as exclusion when
    they come from a mask. `mask` is a boolean broadcast to [B, H, T, S], true = visible, for masks that are no product of the above.
    `relative` [H or 1, distances], a constant, is added as well: its element for key j and query i is that of column j - i - relativeOrigin,
    the first one for all columns before and the last one for all behind.
    Weights are a softmax over visible keys only; `emptyRow` says what a query without visible keys gives.
    `probabilities`, where asked for, is [B, H, T, S].
  }];
  let arguments = (ins AnyTensor:$query, AnyTensor:$key, AnyTensor:$value, Optional<AnyTensor>:$keyMask, Optional<AnyTensor>:$bias,
                       Optional<AnyTensor>:$mask, Optional<AnyTensor>:$relative, F32Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<Transept_DimAttr>:$causalOffset, DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
                       Transept_EmptyRowAttr:$emptyRow, OptionalAttr<Transept_DimAttr>:$relativeOrigin);
  let results = (outs AnyTensor:$result, Optional<AnyTensor>:$probabilities);
  let assemblyFormat = [{ $query `,` $key `,` $value (`key_mask` `(` $keyMask^ `)`)? (`bias` `(` $bias^ `)`)? (`mask` `(` $mask^ `)`)?
    (`relative` `(` $relative^ `)`)? `empty_row` $emptyRow attr-dict `:` functional-type(operands, results) }];
}

//===- Control flow ----------------------------------------------------------------------------------------------------===//

def Transept_IfOp : Transept_Op<"if", "If", 16, [RecursiveMemoryEffects, NoRegionArguments, SingleBlock]> {
  let summary = "One of two graphs; both may use values of the graph around them";
  let arguments = (ins AnyTensor:$condition);
  let results = (outs Variadic<AnyTensor>:$outputs);
  let regions = (region SizedRegion<1>:$thenRegion, SizedRegion<1>:$elseRegion);
  let assemblyFormat = "$condition $thenRegion `else` $elseRegion attr-dict `:` functional-type(operands, results)";
}
def Transept_LoopOp : Transept_Op<"loop", "", 1, [RecursiveMemoryEffects, SingleBlock, AttrSizedOperandSegments]> {
  let summary = "Repeats a graph at most `count` times (absent: no limit) and as long as it says";
  let description = [{
    The body gets the number of the repetition (i64 scalar), whether it was told to go on (i1 scalar) and the carried values; it
    yields whether to go on, the carried values, and elements to be collected. Results: the last carried values, then the
    elements along a new first axis. A size of a carried value that changes is a run-time symbol in `transept.symbols`.
  }];
  let arguments = (ins Optional<AnyTensor>:$count, Optional<AnyTensor>:$condition, Variadic<AnyTensor>:$initial);
  let results = (outs Variadic<AnyTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ (`count` `(` $count^ `)`)? (`while` `(` $condition^ `)`)? (`carries` `(` $initial^ `)`)? $body attr-dict `:` functional-type(operands, results) }];
}
def Transept_YieldOp : Op<Transept_Dialect, "yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Results of a nested graph";
  let arguments = (ins Variadic<AnyTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

//===- Generation ---------------------------------------------------------------------------------------------------------===//

def Transept_StateOp : Transept_Op<"state", "", 1, [MemoryEffects<[MemRead]>]> {
  let summary = "A tensor that lives as long as a session: written by the host, by @encode, or by an earlier op of the entry";
  let description = [{ Names and shapes of the host's states: step.token [rows, 1], step.position [rows, 1], step.source [rows] and others; `cross.N` are written by @encode. }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}
def Transept_ExportOp : Transept_Op<"export", "", 1, [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a tensor to a session state";
  let arguments = (ins StrAttr:$name, AnyTensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}
def Transept_CacheAppendOp : Transept_Op<"cache_append", "", 1, [MemoryEffects<[MemWrite]>]> {
  let summary = "Appends T positions of keys and values of every live row to the self cache of `layer`";
  let description = [{ key [rows, T, H, D], value [rows, T, H, Dv], at the positions step.position[row] and following. T is 1 in a step. }];
  let arguments = (ins AnyTensor:$key, AnyTensor:$value, I64Attr:$layer);
  let assemblyFormat = "$key `,` $value attr-dict `:` type($key) `,` type($value)";
}
def Transept_CacheAttentionOp : Transept_Op<"cache_attention", "", 1, [MemoryEffects<[MemRead]>]> {
  let summary = "Attention of T new positions over the self cache of `layer`, each over the positions from 0 to its own";
  let description = [{
    query [rows, T, H, D], at the positions step.position[row] and following; result [rows, T, H, Dv]. Hk heads are cached.
    `relative` is as in attention, with positions for i.
  }];
  let arguments = (ins AnyTensor:$query, Optional<AnyTensor>:$relative, I64Attr:$layer, F32Attr:$scale, I64Attr:$kvHeads, I64Attr:$valueSize,
                       OptionalAttr<I64Attr>:$relativeOrigin);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$query (`relative` `(` $relative^ `)`)? attr-dict `:` functional-type(operands, results)";
}
def Transept_CrossAttentionOp : Transept_Op<"cross_attention", "", 1, [MemoryEffects<[MemRead]>]> {
  let summary = "Attention of the rows over keys and values of their source slot";
  let description = [{
    query [rows, T, H, D]; key [batch, S, Hk, D]; value [batch, S, Hk, Dv]; keyMask [batch, S], non-zero = visible.
    Row r reads source slot step.source[r]: beams of a sentence share one copy. `probabilities`, where asked for, is [rows, H, T, S].
  }];
  let arguments = (ins AnyTensor:$query, AnyTensor:$key, AnyTensor:$value, Optional<AnyTensor>:$keyMask, F32Attr:$scale, Transept_EmptyRowAttr:$emptyRow);
  let results = (outs AnyTensor:$result, Optional<AnyTensor>:$probabilities);
  let assemblyFormat = "$query `,` $key `,` $value (`key_mask` `(` $keyMask^ `)`)? `empty_row` $emptyRow attr-dict `:` functional-type(operands, results)";
}
def Transept_SearchHeadOp : Transept_Op<"search_head", "", 1, [MemoryEffects<[MemWrite]>]> {
  let summary = "What the search needs of the logits [rows, 1, V]: block maxima and sums, candidates, special tokens";
  let arguments = (ins AnyTensor:$logits);
  let assemblyFormat = "$logits attr-dict `:` type($logits)";
}

#endif // TRANSEPT_OPS
