//===- Emitter.h - building the code of one kernel ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code is built from func, scf and arith on scalars and 16-lane vectors, with LLVM pointers for memory. What a target
// does with it is its own; the operations of a kernel body mean the same everywhere.

#ifndef TRANSEPT_CODEGEN_EMIT_EMITTER_H
#define TRANSEPT_CODEGEN_EMIT_EMITTER_H

#include "codegen/Codegen.h"
#include "ir/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::kernel::emit {

using mlir::transept::DimAttr;

/// A function that is to become a kernel, and what it is called with.
struct KernelFunction {
  func::FuncOp function;       // with its entry block
  Value buffers, sizes, error; // pointers, as in transept_dispatch
  Value begin, end;            // i64: the items to compute
  Value scratch;               // pointer; null where kernels get none
};

/// Builds the code of one kernel.func: constants, arithmetic, loops, memory, and what the dispatch passes.
class Emitter {
public:
  /// Code goes to the end of the function's entry block.
  Emitter(OpBuilder &builder, FuncOp source, const Machine &machine, const KernelFunction &function);

  OpBuilder &b;
  const Location loc;
  const Machine machine;

  //===- What the dispatch passes ---===//
  Value begin, end;                   // index: the items to compute
  Value scratch;                      // pointer
  Value buffer(Value argument) const; // pointer of a buffer argument of the kernel.func
  Value buffer(unsigned argument) const { return buffers[argument]; }
  /// The value of a size expression, as an index. Computed at the function's entry, once.
  Value dim(DimAttr expression);
  Value dim(Attribute expression) { return dim(cast<DimAttr>(expression)); }
  /// Stores {id, value} as the run's error unless one is there.
  void storeError(int64_t id, Value value);
  /// Items go from begin to end.
  void forItems(llvm::function_ref<void(Value item)> body) { forLoop(begin, end, 1, body); }
  /// `total`, the size of a loop that contains the leading dimension; with live rows, the part of it that is live.
  Value liveRows(KernelOp kernel, DimAttr total);
  /// The part of begin to end, of `all` items, that falls to this call where only the first `live` are computed:
  /// whoever shares the items shares those alike.
  std::pair<Value, Value> shareOf(Value live, Value all);
  /// Items of a kernel that has `items` of them, each of one row; with live rows, of those.
  void forLiveItems(KernelOp kernel, DimAttr items, llvm::function_ref<void(Value item)> body);

  //===- Constants and types ---===//
  Value index(int64_t value);
  /// A number of `type` (float or integer, scalar or vector).
  Value number(Type type, double value);
  Value integer(Type type, int64_t value);
  VectorType vectorOf(Type element) { return VectorType::get({lanes}, element); }
  Type f32() { return b.getF32Type(); }
  Type vf32() { return vectorOf(f32()); }
  /// The same shape (scalar or vector) as `like`, of another element type.
  Type sameShape(Type like, Type element);
  /// i1 is stored as one byte. The short floats are bits everywhere: LLVM would convert them through a library.
  Type storageOf(Type element) { return element.isInteger(1) ? Type(b.getI8Type()) : carriedType(element); }
  /// The type in which code holds values of a type of a kernel body.
  Type carriedType(Type type) { return isShortFloat(type) ? Type(b.getI16Type()) : type; }
  static bool isShortFloat(Type type) { return type.isBF16() || type.isF16(); }
  int64_t bytesOf(Type element) { return (storageOf(element).getIntOrFloatBitWidth() + 7) / 8; }

  //===- Arithmetic; operands are scalars or vectors of the same type ---===//
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// Index arithmetic on non-negative values.
  Value div(Value x, Value y) { return b.createOrFold<arith::DivUIOp>(loc, x, y); }
  Value rem(Value x, Value y) { return b.createOrFold<arith::RemUIOp>(loc, x, y); }
  Value ceilDiv(Value x, int64_t y) { return div(add(x, index(y - 1)), index(y)); }
  Value minimum(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(loc, x, y); }
  Value maximum(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(loc, x, y); }
  Value less(Value x, Value y) { return compare(arith::CmpIPredicate::slt, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return b.createOrFold<arith::CmpFOp>(loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) { return b.createOrFold<arith::SelectOp>(loc, condition, x, y); }
  /// x * y + z: one rounding where the machine has it, else two.
  Value fma(Value x, Value y, Value z);
  Value castIndex(Value x, Type type) { return b.createOrFold<arith::IndexCastOp>(loc, type, x); }

  //===- Vectors ---===//
  Value broadcast(Value scalar);
  /// 0, 1, … 15 in elements of `element` (integer or index).
  Value laneNumbers(Type element);
  /// Lanes below `count` (an index).
  Value lanesBelow(Value count);
  /// Lanes i of the result: lane `order[i]` of x, then y.
  Value shuffle(Value x, Value y, ArrayRef<int64_t> order);
  /// Combines the lanes of `vector` by the fixed tree 8, 4, 2, 1.
  Value reduceLanes(Value vector, llvm::function_ref<Value(Value, Value)> combine);

  //===- Memory; positions count elements and are indices ---===//
  Value pointer(Value base, Value position, Type element);
  Value pointer(Value base, int64_t position, Type element);
  /// An element, or with a vector type 16 of them; i1 elements become true for every non-zero byte.
  Value load(Value pointer, Type type);
  void store(Value value, Value pointer);
  /// Stores the lanes of `mask`.
  void maskedStore(Value value, Value pointer, Value mask);
  /// Memory on the stack, of a constant number of elements.
  Value stackArray(Type element, int64_t count);

  //===- Control flow ---===//
  void forLoop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);
  using Carried = SmallVector<Value>;
  Carried forLoop(Value from, Value to, int64_t step, ValueRange init,
                  llvm::function_ref<Carried(Value, ValueRange)> body);
  /// Repeats `body` while `condition` holds; both get the carried values.
  Carried whileLoop(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                    llvm::function_ref<Carried(ValueRange)> body);
  void ifThen(Value condition, llvm::function_ref<void()> then);
  void ifElse(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);
  /// Full groups of 16 positions from `from` on, then the rest: `body` gets the first position of a group and, for the
  /// rest, the number of its lanes (null for a full group).
  void forLaneGroups(Value from, Value to, llvm::function_ref<void(Value, Value)> body);
  /// Ends the function. Fails where a size used a symbol that the dispatch does not pass.
  LogicalResult finish();

private:
  func::FuncOp function;
  SmallVector<Value> buffers;
  Value error;
  bool unknownSymbol = false;
  Operation *sizesEnd; // sizes are computed before it, kernel code follows
  llvm::StringMap<Value> symbols;
  llvm::DenseMap<Attribute, Value> dims;
};

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_EMITTER_H
