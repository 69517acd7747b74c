//===- TranseptDialect.td - the graph-level dialect, its attributes and interfaces ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_DIALECT
#define TRANSEPT_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"

def Transept_Dialect : Dialect {
  let name = "transept";
  let cppNamespace = "::mlir::transept";
  let summary = "Exported Transformer graphs in one canonical form";
  let description = [{
    A small canonical op set on tensors: one meaning per op, whatever opset or exporter the graph came from.
    Dimensions are symbolic and visible in the types as `#transept.dims`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// The contents of `transept.weight` ops of this context, by key.
    WeightStore &weights() { return *weightStore; }

  private:
    std::shared_ptr<WeightStore> weightStore;
    friend class ::mlir::transept::WeightStore;

  public:
  }];
}

class Transept_Attr<string name, string mnemonicName, list<Trait> traits = []> : AttrDef<Transept_Dialect, name, traits> {
  let mnemonic = mnemonicName;
}

def Transept_DimAttr : Transept_Attr<"Dim", "dim"> {
  let summary = "A size: a polynomial over symbols in normal form";
  let description = [{
    Integer polynomials whose atoms are symbols, `floordiv(a, b)`, `mod(a, b)`, `min(a, b, …)` and `max(a, b, …)`.
    Uniqued and normalised on construction: equal attributes are equal expressions for every value of the symbols
    (the converse holds for polynomials). Build them with `mlir/transept` `DimBuilder` (ir/DimExpr.h), never directly.

    Example: `#transept.dim<batch * source + 2>`
  }];
  // kind: see DimKind in ir/DimExpr.h. `name` is set for symbols, `value` for constants and product coefficients.
  let parameters = (ins "uint32_t":$kind, StringRefParameter<"symbol name">:$name, "int64_t":$value,
                        OptionalArrayRefParameter<"::mlir::Attribute">:$operands);
  let hasCustomAssemblyFormat = 1;
}

def Transept_DimsAttr : Transept_Attr<"Dims", "dims", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "The symbolic dimensions of a tensor type, one expression per axis";
  let description = [{
    A verified tensor encoding: as many expressions as the tensor has axes; static axes hold their constant.

    Example: `tensor<?x?x512xf32, #transept.dims<[batch, source, 512]>>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"::mlir::transept::DimAttr">:$dims);
  let hasCustomAssemblyFormat = 1;
}

class Transept_Type<string name, string mnemonicName> : TypeDef<Transept_Dialect, name> { let mnemonic = mnemonicName; }

def Transept_F4E2M1Type : Transept_Type<"F4E2M1", "f4e2m1"> {
  let summary = "Element of a tensor: a float of 4 bits, of the Open Compute microscaling formats";
}
def Transept_F8E8M0Type : Transept_Type<"F8E8M0", "f8e8m0"> {
  let summary = "Element of a tensor: a power of two in 8 bits, of the Open Compute microscaling formats";
}

class Transept_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::transept";
}

def Transept_ReduceKind : Transept_I32Enum<"ReduceKind", "what a reduction computes", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">, I32EnumAttrCase<"Max", 2, "max">,
  I32EnumAttrCase<"Min", 3, "min">, I32EnumAttrCase<"Prod", 4, "prod">, I32EnumAttrCase<"SumSquare", 5, "sum_square">,
  I32EnumAttrCase<"L1", 6, "l1">, I32EnumAttrCase<"L2", 7, "l2">, I32EnumAttrCase<"LogSum", 8, "log_sum">,
  I32EnumAttrCase<"LogSumExp", 9, "log_sum_exp">]>;
def Transept_ReduceKindAttr : EnumAttr<Transept_Dialect, Transept_ReduceKind, "reduce">;

def Transept_EmptyRow : Transept_I32Enum<"EmptyRow", "the result of attention for a query that may see no key", [
  I32EnumAttrCase<"Uniform", 0, "uniform">, I32EnumAttrCase<"Zero", 1, "zero">, I32EnumAttrCase<"NaN", 2, "nan">]>;
def Transept_EmptyRowAttr : EnumAttr<Transept_Dialect, Transept_EmptyRow, "empty_row">;

def Transept_PadMode : Transept_I32Enum<"PadMode", "what padding is filled with", [
  I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Edge", 1, "edge">,
  I32EnumAttrCase<"Reflect", 2, "reflect">, I32EnumAttrCase<"Wrap", 3, "wrap">]>;
def Transept_PadModeAttr : EnumAttr<Transept_Dialect, Transept_PadMode, "pad_mode">;

def Transept_ScatterKind : Transept_I32Enum<"ScatterKind", "how scattered updates combine with what is there", [
  I32EnumAttrCase<"Replace", 0, "replace">, I32EnumAttrCase<"Add", 1, "add">, I32EnumAttrCase<"Mul", 2, "mul">,
  I32EnumAttrCase<"Max", 3, "max">, I32EnumAttrCase<"Min", 4, "min">]>;
def Transept_ScatterKindAttr : EnumAttr<Transept_Dialect, Transept_ScatterKind, "scatter">;

def Transept_CellKind : Transept_I32Enum<"CellKind", "what a recurrent layer computes at a position", [
  I32EnumAttrCase<"Rnn", 0, "rnn">, I32EnumAttrCase<"Gru", 1, "gru">, I32EnumAttrCase<"Lstm", 2, "lstm">]>;
def Transept_CellKindAttr : EnumAttr<Transept_Dialect, Transept_CellKind, "cell">;

//===- What every graph op answers ------------------------------------------------------------------------------===//

def Transept_GraphOpInterface : OpInterface<"GraphOp"> {
  let cppNamespace = "::mlir::transept";
  let description = [{ The facts every graph-level op states about itself, once; passes reason from these only. }];
  let methods = [
    InterfaceMethod<[{
      Infers what is known of the results from what is known of the operands, and checks the op's constraints
      (numbered C1, C2, … in the implementation). Unknown ranks are unranked types; contents are known for small integer
      tensors only. Constraints that depend on symbols are recorded as guards in `context`. Emits one error on failure.
    }], "::mlir::LogicalResult", "infer",
      (ins "::mlir::transept::InferContext &":$context, "::llvm::ArrayRef<::mlir::transept::Fact>":$operands,
           "::llvm::SmallVectorImpl<::mlir::transept::Fact> &":$results)>,
    InterfaceMethod<[{
      Evaluates the op on host tensors: slow, obvious, own math, the same bits on every libc. The oracle of the tests
      and the engine of constant folding. Result types must be fully static in `results` on entry (shape and element type).
    }], "::mlir::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<::mlir::transept::HostTensor>":$operands,
           "::llvm::SmallVectorImpl<::mlir::transept::HostTensor> &":$results)>,
    InterfaceMethod<[{
      How the op behaves along axis `axis` of operand `operand`: the only thing staging and batching reason from.
      `resultAxis` receives the axis of result 0 that the operand's axis becomes, or -1 where it disappears.
    }], "::mlir::transept::AxisBehaviour", "axisBehaviour",
      (ins "unsigned":$operand, "int64_t":$axis, "int64_t &":$resultAxis)>,
  ];
}

#endif // TRANSEPT_DIALECT
