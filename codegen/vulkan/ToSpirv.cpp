//===- ToSpirv.cpp - scalar code as a SPIR-V module ---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/ToSpirv.h"
#include "codegen/vulkan/ShaderModule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;

namespace {

/// An element of an array variable.
struct Place {
  Value array;
  Value index; // i64
};

class Converter {
public:
  Converter(ShaderModule &module, func::FuncOp function) : m(module), b(module.b), function(function) {}

  LogicalResult run() {
    for (unsigned i = 0; i < ShaderArguments; ++i)
      if (Value argument = function.getArgument(i); !argument.use_empty())
        values[argument] = m.argument(static_cast<ShaderArgument>(i));
    LogicalResult result = convertBlock(function.getBody().front());
    b.create<spirv::ReturnOp>(loc());
    return result;
  }

private:
  Location loc() const { return m.loc; }
  Value value(Value original) const { return values.lookup(original); }
  Type typeOf(Type type) { return m.typeOf(type); }
  Type typeOf(Value original) { return m.typeOf(original.getType()); }

  LogicalResult convertBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(convert(op)))
        return failure();
    return success();
  }

  LogicalResult convert(Operation &op) {
    if (!llvm::all_of(op.getOperands(),
                      [&](Value operand) { return values.contains(operand) || places.contains(operand); }))
      return op.emitOpError("uses a value that shaders cannot hold");
    if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op))
      return convertCast(cast);
    for (Type type : op.getResultTypes())
      if (!m.holds(type) && !isa<LLVM::AtomicCmpXchgOp>(op))
        return op.emitOpError("has a result of type ") << type << ", which shaders cannot hold";
    if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
      return convertControl(op);
    if (isa<LLVM::LLVMDialect>(op.getDialect()))
      return convertMemory(op);
    if (isa<spirv::SPIRVDialect>(op.getDialect())) {
      for (auto [original, result] : llvm::zip(op.getResults(), m.take(op, convertedOperands(op))->getResults()))
        values[original] = result;
      return success();
    }
    Value result = op.getNumResults() == 1 ? convertScalar(op) : Value();
    if (!result)
      return op.emitOpError("is not supported in a shader");
    values[op.getResult(0)] = result;
    return success();
  }

  //===- Control flow: what leaves a region goes through a variable ---===//

  SmallVector<Value> variablesFor(TypeRange types) {
    SmallVector<Value> variables;
    for (Type type : types)
      variables.push_back(m.variable(typeOf(type)));
    return variables;
  }
  void storeAll(ArrayRef<Value> variables, ValueRange originals) {
    // All are read before one is written: a loop may swap what it carries.
    SmallVector<Value> converted;
    for (Value original : originals)
      converted.push_back(value(original));
    for (auto [variable, stored] : llvm::zip(variables, converted))
      m.store(variable, stored);
  }
  void loadAll(ArrayRef<Value> variables, ValueRange originals) {
    for (auto [variable, original] : llvm::zip(variables, originals))
      values[original] = m.load(variable);
  }

  LogicalResult convertControl(Operation &op) {
    return TypeSwitch<Operation *, LogicalResult>(&op)
        .Case([&](scf::ForOp loop) { return convertFor(loop); })
        .Case([&](scf::IfOp branch) { return convertIf(branch); })
        .Case([&](scf::WhileOp loop) { return convertWhile(loop); });
  }

  LogicalResult convertFor(scf::ForOp op) {
    SmallVector<Value> carried = variablesFor(op.getResultTypes());
    Value counter = m.variable(b.getI64Type());
    m.store(counter, value(op.getLowerBound()));
    storeAll(carried, op.getInitArgs());
    LogicalResult result = success();
    m.loop(
        [&] {
          Value position = m.load(counter);
          return b.create<spirv::SLessThanOp>(loc(), position, value(op.getUpperBound())).getResult();
        },
        [&] {
          values[op.getInductionVar()] = m.load(counter);
          loadAll(carried, op.getRegionIterArgs());
          result = convertBlock(*op.getBody());
          storeAll(carried, op.getBody()->getTerminator()->getOperands());
        },
        [&] { m.store(counter, b.create<spirv::IAddOp>(loc(), m.load(counter), value(op.getStep()))); });
    loadAll(carried, op.getResults());
    return result;
  }

  LogicalResult convertWhile(scf::WhileOp op) {
    SmallVector<Value> before = variablesFor(op.getInits().getTypes()), after = variablesFor(op.getResultTypes());
    Value goesOn = m.variable(b.getI1Type());
    storeAll(before, op.getInits());
    m.store(goesOn, m.boolean(true));
    LogicalResult result = success();
    m.loop([&] { return m.load(goesOn); },
           [&] {
             loadAll(before, op.getBeforeArguments());
             result = convertBlock(*op.getBeforeBody());
             scf::ConditionOp condition = op.getConditionOp();
             storeAll(after, condition.getArgs());
             Value holds = value(condition.getCondition());
             m.store(goesOn, holds);
             m.branch(holds, [&] {
               loadAll(after, op.getAfterArguments());
               result = success(succeeded(result) && succeeded(convertBlock(*op.getAfterBody())));
               storeAll(before, op.getYieldOp().getOperands());
             });
           },
           [] {});
    loadAll(after, op.getResults());
    return result;
  }

  LogicalResult convertIf(scf::IfOp op) {
    SmallVector<Value> results = variablesFor(op.getResultTypes());
    LogicalResult converted = success();
    auto convertSide = [&](Block &block) {
      converted = success(succeeded(converted) && succeeded(convertBlock(block)));
      storeAll(results, block.getTerminator()->getOperands());
    };
    auto then = [&] { convertSide(*op.thenBlock()); };
    if (op.elseBlock())
      m.branch(value(op.getCondition()), then, [&] { convertSide(*op.elseBlock()); });
    else
      m.branch(value(op.getCondition()), then);
    loadAll(results, op.getResults());
    return converted;
  }

  //===- Memory ---===//

  LogicalResult convertMemory(Operation &op) {
    return TypeSwitch<Operation *, LogicalResult>(&op)
        .Case([&](LLVM::AllocaOp alloca) {
          auto pointer = cast<LLVM::LLVMPointerType>(alloca.getType());
          APInt count;
          if (!matchPattern(alloca.getArraySize(), m_ConstantInt(&count)))
            return LogicalResult(alloca.emitOpError("needs a constant size"));
          Type element = typeOf(alloca.getElemType());
          bool isShared = pointer.getAddressSpace() == workgroupAddressSpace;
          int64_t size = count.getZExtValue();
          Value array =
              isShared ? m.sharedArray(element, size, alloca->hasAttr(perInvocationAttrName)) : m.array(element, size);
          places[alloca] = {array, m.integer(0)};
          return success();
        })
        .Case([&](LLVM::GEPOp gep) { return convertPointer(gep); })
        .Case([&](LLVM::LoadOp load) {
          auto place = places.find(load.getAddr());
          Type type = typeOf(load);
          values[load] = place != places.end()
                             ? m.load(m.element(place->second.array, place->second.index))
                             : m.loadFrom(value(load.getAddr()), type, load.getAlignment().value_or(1));
          return success();
        })
        .Case([&](LLVM::StoreOp store) {
          auto place = places.find(store.getAddr());
          Value stored = value(store.getValue());
          if (place != places.end())
            m.store(m.element(place->second.array, place->second.index), stored);
          else
            m.storeTo(value(store.getAddr()), stored, store.getAlignment().value_or(1));
          return success();
        })
        .Case([&](LLVM::AtomicCmpXchgOp exchange) {
          Value old = m.exchangeIfEqual(value(exchange.getPtr()), value(exchange.getCmp()), value(exchange.getVal()));
          exchanged[exchange] = b.create<spirv::IEqualOp>(loc(), old, value(exchange.getCmp()));
          values[exchange] = old;
          return success();
        })
        .Case([&](LLVM::ExtractValueOp extract) { // whether the exchange took place
          values[extract] = exchanged.lookup(extract.getContainer());
          return success(values[extract] && extract.getPosition().front() == 1);
        })
        .Case([&](LLVM::ConstantOp constant) {
          values[constant] = m.integer(cast<IntegerAttr>(constant.getValue()).getInt());
          return success();
        })
        .Default([](Operation *other) { return other->emitOpError("is not supported in a shader"); });
  }

  LogicalResult convertPointer(LLVM::GEPOp op) {
    if (op.getIndices().size() != 1)
      return op.emitOpError("needs one index");
    LLVM::GEPIndicesAdaptor<ValueRange> indices = op.getIndices();
    auto constant = dyn_cast<IntegerAttr>(indices[0]);
    Value index = constant ? m.integer(constant.getInt()) : value(cast<Value>(indices[0]));
    if (auto place = places.find(op.getBase()); place != places.end()) {
      places[op] = {place->second.array, b.create<spirv::IAddOp>(loc(), place->second.index, index)};
      return success();
    }
    Value offset = index;
    if (int64_t bytes = m.bytesOf(typeOf(op.getElemType())); bytes != 1)
      offset = b.create<spirv::IMulOp>(loc(), index, m.integer(bytes));
    values[op] = b.create<spirv::IAddOp>(loc(), value(op.getBase()), offset);
    return success();
  }

  /// A place as a pointer of the spirv dialect.
  LogicalResult convertCast(UnrealizedConversionCastOp op) {
    auto place = op.getNumOperands() == 1 && op.getNumResults() == 1 ? places.find(op.getOperand(0)) : places.end();
    if (place == places.end())
      return op.emitOpError("is not supported in a shader");
    values[op.getResult(0)] = m.element(place->second.array, place->second.index);
    return success();
  }

  //===- Arithmetic ---===//

  template <typename Op> Value make(Operation &op) {
    return b.create<Op>(loc(), typeOf(op.getResult(0)), convertedOperands(op));
  }
  SmallVector<Value> convertedOperands(Operation &op) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(value(operand));
    return operands;
  }
  Value x(Operation &op) { return value(op.getOperand(0)); }
  Value y(Operation &op) { return value(op.getOperand(1)); }
  static bool isBoolean(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(1); }

  /// Null for an op that is not known.
  Value convertScalar(Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      return m.constant(constant.getValue());
    if (isa<arith::CmpIOp, arith::CmpFOp>(op))
      return convertComparison(op);
    if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp>(op))
      return convertInteger(op);
    if (isa<math::MathDialect>(op.getDialect()))
      return convertMath(op);
    if (isa<vector::VectorDialect>(op.getDialect()))
      return convertVector(op);
    if (op.getNumOperands() && isBoolean(op.getOperand(0)) && !isa<arith::SelectOp>(op))
      return convertBoolean(op);
    return convertArith(op);
  }

  Value convertArith(Operation &op) {
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](arith::AddIOp) { return make<spirv::IAddOp>(op); })
        .Case([&](arith::SubIOp) { return make<spirv::ISubOp>(op); })
        .Case([&](arith::MulIOp) { return make<spirv::IMulOp>(op); })
        .Case([&](arith::DivSIOp) { return make<spirv::SDivOp>(op); })
        .Case([&](arith::DivUIOp) { return make<spirv::UDivOp>(op); })
        .Case([&](arith::RemUIOp) { return make<spirv::UModOp>(op); })
        .Case([&](arith::RemSIOp) { // OpSRem of negative numbers is undefined in Vulkan
          Value quotient = make<spirv::SDivOp>(op);
          return b.create<spirv::ISubOp>(loc(), x(op), b.create<spirv::IMulOp>(loc(), quotient, y(op)));
        })
        .Case([&](arith::AndIOp) { return make<spirv::BitwiseAndOp>(op); })
        .Case([&](arith::OrIOp) { return make<spirv::BitwiseOrOp>(op); })
        .Case([&](arith::XOrIOp) { return make<spirv::BitwiseXorOp>(op); })
        .Case([&](arith::ShLIOp) { return make<spirv::ShiftLeftLogicalOp>(op); })
        .Case([&](arith::ShRSIOp) { return make<spirv::ShiftRightArithmeticOp>(op); })
        .Case([&](arith::ShRUIOp) { return make<spirv::ShiftRightLogicalOp>(op); })
        .Case([&](arith::AddFOp) { return make<spirv::FAddOp>(op); })
        .Case([&](arith::SubFOp) { return make<spirv::FSubOp>(op); })
        .Case([&](arith::MulFOp) { return make<spirv::FMulOp>(op); })
        .Case([&](arith::DivFOp) { return make<spirv::FDivOp>(op); })
        .Case([&](arith::NegFOp) { return make<spirv::FNegateOp>(op); })
        .Case([&](arith::MaxSIOp) { return larger<spirv::SGreaterThanOp>(x(op), y(op)); })
        .Case([&](arith::MinSIOp) { return larger<spirv::SLessThanOp>(x(op), y(op)); })
        .Case([&](arith::MaxUIOp) { return larger<spirv::UGreaterThanOp>(x(op), y(op)); })
        .Case([&](arith::MinUIOp) { return larger<spirv::ULessThanOp>(x(op), y(op)); })
        .Case([&](arith::MaximumFOp) { return nanOr(x(op), y(op), larger<spirv::FOrdGreaterThanOp>(x(op), y(op))); })
        .Case([&](arith::MinimumFOp) { return nanOr(x(op), y(op), larger<spirv::FOrdLessThanOp>(x(op), y(op))); })
        .Case([&](arith::MaxNumFOp) { return numberOr(x(op), y(op), larger<spirv::FOrdGreaterThanOp>(x(op), y(op))); })
        .Case([&](arith::MinNumFOp) { return numberOr(x(op), y(op), larger<spirv::FOrdLessThanOp>(x(op), y(op))); })
        .Case([&](arith::SelectOp) { return make<spirv::SelectOp>(op); })
        .Case([&](arith::ExtFOp) { return make<spirv::FConvertOp>(op); })
        .Case([&](arith::TruncFOp) { return make<spirv::FConvertOp>(op); })
        .Case([&](arith::SIToFPOp) { return make<spirv::ConvertSToFOp>(op); })
        .Case([&](arith::UIToFPOp) { return make<spirv::ConvertUToFOp>(op); })
        .Case([&](arith::FPToSIOp) { return make<spirv::ConvertFToSOp>(op); })
        .Case([&](arith::FPToUIOp) { return make<spirv::ConvertFToUOp>(op); })
        .Case([&](arith::BitcastOp) { return m.bitcast(x(op), typeOf(op.getResult(0))); })
        .Default([](Operation *) { return Value(); });
  }

  /// The operand for which the comparison holds, else the second one.
  template <typename Comparison> Value larger(Value first, Value second) {
    Value holds = b.create<Comparison>(loc(), first, second);
    return b.create<spirv::SelectOp>(loc(), holds, first, second);
  }
  Value isNan(Value number) { return b.create<spirv::FUnordNotEqualOp>(loc(), number, number); }
  /// The first NaN of both, else `result`.
  Value nanOr(Value first, Value second, Value result) {
    result = b.create<spirv::SelectOp>(loc(), isNan(second), second, result);
    return b.create<spirv::SelectOp>(loc(), isNan(first), first, result);
  }
  /// The other one where one is NaN, else `result`.
  Value numberOr(Value first, Value second, Value result) {
    result = b.create<spirv::SelectOp>(loc(), isNan(second), first, result);
    return b.create<spirv::SelectOp>(loc(), isNan(first), second, result);
  }

  /// Booleans are no integers in SPIR-V.
  Value convertBoolean(Operation &op) {
    return TypeSwitch<Operation *, Value>(&op)
        .Case<arith::AndIOp, arith::MulIOp, arith::MinUIOp, arith::MaxSIOp>(
            [&](auto) { return make<spirv::LogicalAndOp>(op); })
        .Case<arith::OrIOp, arith::MaxUIOp, arith::MinSIOp>([&](auto) { return make<spirv::LogicalOrOp>(op); })
        .Case<arith::XOrIOp, arith::AddIOp, arith::SubIOp>([&](auto) { return make<spirv::LogicalNotEqualOp>(op); })
        .Case([&](arith::UIToFPOp) {
          Type type = typeOf(op.getResult(0));
          return m.select(x(op), m.number(type, 1), m.number(type, 0));
        })
        .Case([&](arith::SIToFPOp) {
          Type type = typeOf(op.getResult(0));
          return m.select(x(op), m.number(type, -1), m.number(type, 0));
        })
        .Case([&](arith::BitcastOp) { return x(op); })
        .Default([](Operation *) { return Value(); });
  }

  /// Between integers of any widths and index.
  Value convertInteger(Operation &op) {
    Type to = typeOf(op.getResult(0));
    Value from = x(op);
    bool isSigned = isa<arith::ExtSIOp, arith::IndexCastOp>(op);
    if (from.getType() == to)
      return from;
    if (from.getType().isInteger(1))
      return m.select(from, m.integer(isSigned ? -1 : 1, to), m.integer(0, to));
    if (to.isInteger(1)) {
      Value low = b.create<spirv::BitwiseAndOp>(loc(), from, m.integer(1, from.getType()));
      return b.create<spirv::INotEqualOp>(loc(), low, m.integer(0, from.getType()));
    }
    return m.resize(from, to, isSigned);
  }

  Value convertComparison(Operation &op) {
    if (auto integers = dyn_cast<arith::CmpIOp>(op))
      return isBoolean(integers.getLhs()) ? compareBooleans(integers) : compareIntegers(integers);
    return compareFloats(cast<arith::CmpFOp>(op));
  }

  Value compareBooleans(arith::CmpIOp op) {
    Value first = x(*op), second = y(*op);
    auto both = [&](Value a, bool negate, Value c, bool negateSecond) {
      auto side = [&](Value v, bool negated) { return negated ? b.create<spirv::LogicalNotOp>(loc(), v) : v; };
      return b.create<spirv::LogicalAndOp>(loc(), side(a, negate), side(c, negateSecond)).getResult();
    };
    auto negated = [&](Value v) { return b.create<spirv::LogicalNotOp>(loc(), v).getResult(); };
    // As signed numbers, true is -1.
    switch (op.getPredicate()) {
    case arith::CmpIPredicate::eq:
      return make<spirv::LogicalEqualOp>(*op);
    case arith::CmpIPredicate::ne:
      return make<spirv::LogicalNotEqualOp>(*op);
    case arith::CmpIPredicate::ult:
    case arith::CmpIPredicate::sgt:
      return both(first, true, second, false);
    case arith::CmpIPredicate::ugt:
    case arith::CmpIPredicate::slt:
      return both(first, false, second, true);
    case arith::CmpIPredicate::ule:
    case arith::CmpIPredicate::sge:
      return negated(both(first, false, second, true));
    case arith::CmpIPredicate::uge:
    case arith::CmpIPredicate::sle:
      return negated(both(first, true, second, false));
    }
    return {};
  }

  Value compareIntegers(arith::CmpIOp op) {
    switch (op.getPredicate()) {
    case arith::CmpIPredicate::eq:
      return make<spirv::IEqualOp>(*op);
    case arith::CmpIPredicate::ne:
      return make<spirv::INotEqualOp>(*op);
    case arith::CmpIPredicate::slt:
      return make<spirv::SLessThanOp>(*op);
    case arith::CmpIPredicate::sle:
      return make<spirv::SLessThanEqualOp>(*op);
    case arith::CmpIPredicate::sgt:
      return make<spirv::SGreaterThanOp>(*op);
    case arith::CmpIPredicate::sge:
      return make<spirv::SGreaterThanEqualOp>(*op);
    case arith::CmpIPredicate::ult:
      return make<spirv::ULessThanOp>(*op);
    case arith::CmpIPredicate::ule:
      return make<spirv::ULessThanEqualOp>(*op);
    case arith::CmpIPredicate::ugt:
      return make<spirv::UGreaterThanOp>(*op);
    case arith::CmpIPredicate::uge:
      return make<spirv::UGreaterThanEqualOp>(*op);
    }
    return {};
  }

  Value compareFloats(arith::CmpFOp op) {
    using Predicate = arith::CmpFPredicate;
    switch (op.getPredicate()) {
    case Predicate::AlwaysFalse:
      return m.boolean(false);
    case Predicate::AlwaysTrue:
      return m.boolean(true);
    case Predicate::OEQ:
      return make<spirv::FOrdEqualOp>(*op);
    case Predicate::OGT:
      return make<spirv::FOrdGreaterThanOp>(*op);
    case Predicate::OGE:
      return make<spirv::FOrdGreaterThanEqualOp>(*op);
    case Predicate::OLT:
      return make<spirv::FOrdLessThanOp>(*op);
    case Predicate::OLE:
      return make<spirv::FOrdLessThanEqualOp>(*op);
    case Predicate::ONE:
      return make<spirv::FOrdNotEqualOp>(*op);
    case Predicate::UEQ:
      return make<spirv::FUnordEqualOp>(*op);
    case Predicate::UGT:
      return make<spirv::FUnordGreaterThanOp>(*op);
    case Predicate::UGE:
      return make<spirv::FUnordGreaterThanEqualOp>(*op);
    case Predicate::ULT:
      return make<spirv::FUnordLessThanOp>(*op);
    case Predicate::ULE:
      return make<spirv::FUnordLessThanEqualOp>(*op);
    case Predicate::UNE:
      return make<spirv::FUnordNotEqualOp>(*op);
    case Predicate::ORD:
    case Predicate::UNO: {
      Value unordered = b.create<spirv::LogicalOrOp>(loc(), isNan(x(*op)), isNan(y(*op)));
      if (op.getPredicate() == Predicate::UNO)
        return unordered;
      return b.create<spirv::LogicalNotOp>(loc(), unordered);
    }
    }
    return {};
  }

  /// A scalar in all components, and a component.
  Value convertVector(Operation &op) {
    if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
      auto type = cast<VectorType>(broadcast.getType());
      return b.create<spirv::CompositeConstructOp>(loc(), type, SmallVector<Value>(type.getNumElements(), x(op)));
    }
    if (auto extract = dyn_cast<vector::ExtractOp>(op); extract && !extract.hasDynamicPosition())
      return b.create<spirv::CompositeExtractOp>(
          loc(), x(op), ArrayRef<int32_t>{static_cast<int32_t>(extract.getStaticPosition().front())});
    return {};
  }

  Value convertMath(Operation &op) {
    return TypeSwitch<Operation *, Value>(&op)
        .Case([&](math::SqrtOp) { return make<spirv::GLSqrtOp>(op); })
        .Case([&](math::AbsFOp) { return make<spirv::GLFAbsOp>(op); })
        .Case([&](math::FmaOp) { return make<spirv::GLFmaOp>(op); })
        .Case([&](math::FloorOp) { return make<spirv::GLFloorOp>(op); })
        .Case([&](math::CeilOp) { return make<spirv::GLCeilOp>(op); })
        .Case([&](math::TruncOp) {
          Value negative = b.create<spirv::FOrdLessThanOp>(loc(), x(op), m.number(typeOf(op.getResult(0)), 0));
          Value up = make<spirv::GLCeilOp>(op);
          return m.select(negative, up, make<spirv::GLFloorOp>(op));
        })
        .Case([&](math::RoundEvenOp) { return make<spirv::GLRoundEvenOp>(op); })
        .Case([&](math::AbsIOp) {
          Value zero = m.integer(0, x(op).getType()), negated = b.create<spirv::ISubOp>(loc(), zero, x(op));
          return m.select(b.create<spirv::SLessThanOp>(loc(), x(op), zero), negated, x(op));
        })
        .Case([&](math::CopySignOp) { return copySign(x(op), y(op)); })
        .Case([&](math::CtPopOp) { return countBits(x(op)); })
        .Default([](Operation *) { return Value(); });
  }

  Value copySign(Value magnitude, Value sign) {
    Type type = magnitude.getType();
    unsigned width = type.getIntOrFloatBitWidth();
    Type bits = m.typeOf(b.getIntegerType(width));
    Value signBit = m.constant(b.getIntegerAttr(bits, APInt::getSignMask(width)));
    Value others = m.constant(b.getIntegerAttr(bits, APInt::getSignedMaxValue(width)));
    Value low = b.create<spirv::BitwiseAndOp>(loc(), m.bitcast(magnitude, bits), others);
    Value high = b.create<spirv::BitwiseAndOp>(loc(), m.bitcast(sign, bits), signBit);
    return m.bitcast(b.create<spirv::BitwiseOrOp>(loc(), low, high), type);
  }

  /// OpBitCount takes 32 bits only.
  Value countBits(Value number) {
    Type type = number.getType(), i32 = b.getI32Type();
    auto count = [&](Value word) -> Value { return b.create<spirv::BitCountOp>(loc(), i32, word); };
    unsigned width = type.getIntOrFloatBitWidth();
    if (width == 32)
      return count(number);
    if (width < 32)
      return b.create<spirv::UConvertOp>(loc(), type, count(b.create<spirv::UConvertOp>(loc(), i32, number)));
    Value high = b.create<spirv::ShiftRightLogicalOp>(loc(), number, m.integer(32, type));
    Value both = b.create<spirv::IAddOp>(loc(), count(b.create<spirv::UConvertOp>(loc(), i32, number)),
                                         count(b.create<spirv::UConvertOp>(loc(), i32, high)));
    return b.create<spirv::UConvertOp>(loc(), type, both);
  }

  ShaderModule &m;
  OpBuilder &b;
  func::FuncOp function;
  llvm::DenseMap<Value, Value> values;
  llvm::DenseMap<Value, Place> places;
  llvm::DenseMap<Value, Value> exchanged; // by the result of an atomic exchange: whether it took place
};

} // namespace

FailureOr<spirv::ModuleOp> vulkan::convertToSpirv(func::FuncOp function, int64_t groupSize, OpBuilder &target) {
  auto found = [](spirv::KHRCooperativeMatrixMulAddOp) { return WalkResult::interrupt(); };
  const bool usesMatrices = function.walk(found).wasInterrupted();
  ShaderModule module(target, function.getLoc(), groupSize, usesMatrices);
  LogicalResult converted = Converter(module, function).run();
  spirv::ModuleOp result = module.finish();
  if (failed(converted))
    return failure();
  return result;
}
