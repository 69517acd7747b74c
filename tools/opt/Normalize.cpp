//===- Normalize.cpp - programs printed so that equal ones are equal text -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/opt/Normalize.h"
#include "ir/Guard.h"
#include "ir/Kernel.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

bool isCommutative(Operation *op) { return isa<AddOp, MulOp, MaxOp, MinOp, AndOp, OrOp, XorOp, EqualOp>(op); }

//===- Names out ----------------------------------------------------------------------------------------------===//

/// The attribute without what only says where something came from; null where nothing is left of it.
Attribute withoutNames(StringRef key, Attribute value) {
  Builder builder(value.getContext());
  if (key == "transept.name" || key == "sourceNodes" || key == "check" || key == "message")
    return {};
  if (auto dictionary = dyn_cast<DictionaryAttr>(value)) {
    SmallVector<NamedAttribute> kept;
    for (NamedAttribute entry : dictionary)
      if (Attribute rest = withoutNames(entry.getName(), entry.getValue()))
        kept.push_back(builder.getNamedAttr(entry.getName(), rest));
    return builder.getDictionaryAttr(kept);
  }
  if (auto array = dyn_cast<ArrayAttr>(value)) {
    SmallVector<Attribute> kept;
    for (Attribute element : array)
      if (Attribute rest = withoutNames("", element))
        kept.push_back(rest);
    return builder.getArrayAttr(kept);
  }
  return value;
}

std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

void removeNames(Operation *root) {
  root->walk([](Operation *op) {
    op->setLoc(UnknownLoc::get(op->getContext()));
    if (auto weight = dyn_cast<WeightOp>(op))
      weight.removeNameAttr();
    if (auto bounded = dyn_cast<kernel::BoundedOp>(op))
      bounded.setCheck("");
    if (auto function = dyn_cast<kernel::FuncOp>(op))
      function.setSourceNodes("");
    for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs())) {
      Attribute rest = withoutNames(attribute.getName(), attribute.getValue());
      // Guards are a set.
      if (auto list = dyn_cast_or_null<ArrayAttr>(rest); list && attribute.getName() == guardsAttrName) {
        SmallVector<Attribute> sorted(list.begin(), list.end());
        llvm::sort(sorted, [](Attribute lhs, Attribute rhs) { return textOf(lhs) < textOf(rhs); });
        sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
        rest = Builder(op->getContext()).getArrayAttr(sorted);
      }
      if (rest)
        op->setDiscardableAttr(attribute.getName(), rest);
      else
        op->removeDiscardableAttr(attribute.getName());
    }
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        function.removeArgAttr(i, "transept.name");
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        function.removeResultAttr(i, StringAttr::get(op->getContext(), "transept.name"));
    }
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(UnknownLoc::get(op->getContext()));
  });
}

//===- Order --------------------------------------------------------------------------------------------------===//

/// Orders the ops of a block and of the regions inside.
class Orderer {
public:
  void order(Block &block) {
    for (auto [index, argument] : llvm::enumerate(block.getArguments()))
      digests[argument] = digest("argument " + std::to_string(depth) + " " + std::to_string(index));
    SmallVector<Operation *> ops;
    for (Operation &op : block) {
      ++depth;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          order(inner);
      --depth;
      describe(&op);
      ops.push_back(&op);
    }
    // Whatever has an effect is where a walk starts; equal ones stay in their order.
    SmallVector<Operation *> roots;
    for (Operation *op : ops)
      if (!isPure(op) || op->hasTrait<OpTrait::IsTerminator>() || op->use_empty())
        roots.push_back(op);
    llvm::stable_sort(roots, [&](Operation *lhs, Operation *rhs) {
      bool last = lhs->hasTrait<OpTrait::IsTerminator>(), otherLast = rhs->hasTrait<OpTrait::IsTerminator>();
      return std::make_tuple(last, StringRef(heads[lhs]), StringRef(digestsOfOps[lhs])) <
             std::make_tuple(otherLast, StringRef(heads[rhs]), StringRef(digestsOfOps[rhs]));
    });
    for (Operation *root : roots)
      place(root, block);
  }

private:
  static std::string digest(const std::string &text) {
    llvm::SHA256 hash;
    hash.update(text);
    return llvm::toHex(hash.final());
  }

  void describe(Operation *op) {
    SmallVector<std::pair<std::string, Value>> operands;
    for (Value operand : op->getOperands())
      operands.push_back({digests[operand], operand});
    if (isCommutative(op)) {
      llvm::stable_sort(operands, [](const auto &lhs, const auto &rhs) { return lhs.first < rhs.first; });
      for (auto [index, operand] : llvm::enumerate(operands))
        op->setOperand(index, operand.second);
    }
    heads[op] = op->getName().getStringRef().str() + " " + textOf(op->getAttrDictionary());
    std::string text = heads[op];
    for (const auto &operand : operands)
      text += " " + operand.first;
    llvm::raw_string_ostream out(text);
    for (Type type : op->getResultTypes())
      out << ' ' << type;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          out << ' ' << digestsOfOps[&inner];
    std::string id = digestsOfOps[op] = digest(text);
    for (auto [index, result] : llvm::enumerate(op->getResults()))
      digests[result] = id + "#" + std::to_string(index);
  }

  void place(Operation *op, Block &block) {
    // Without recursion: a chain of ops may be long.
    SmallVector<std::pair<Operation *, bool>> stack = {{op, false}};
    while (!stack.empty()) {
      auto [next, ready] = stack.pop_back_val();
      if (placed.contains(next))
        continue;
      if (ready) {
        placed.insert(next);
        next->moveBefore(&block, block.end());
        continue;
      }
      stack.push_back({next, true});
      SmallVector<Value> operands(next->getOperands());
      next->walk([&](Operation *inner) { llvm::append_range(operands, inner->getOperands()); });
      for (Value operand : llvm::reverse(operands))
        if (Operation *maker = operand.getDefiningOp(); maker && maker->getBlock() == &block)
          stack.push_back({maker, false});
    }
  }

  llvm::DenseMap<Value, std::string> digests;
  llvm::DenseMap<Operation *, std::string> heads, digestsOfOps;
  llvm::DenseSet<Operation *> placed;
  unsigned depth = 0;
};

} // namespace

void mlir::transept::printNormalized(ModuleOp module, raw_ostream &out) {
  removeNames(module);
  // Values that only their names told apart: weights that two files call differently.
  IRRewriter rewriter(module.getContext());
  DominanceInfo dominance(module);
  eliminateCommonSubExpressions(rewriter, dominance, module);
  SmallVector<Operation *> functions;
  for (Operation &op : *module.getBody())
    functions.push_back(&op);
  llvm::stable_sort(functions, [](Operation *lhs, Operation *rhs) {
    auto name = [](Operation *op) {
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      return symbol ? symbol.getName() : StringRef();
    };
    return name(lhs) < name(rhs);
  });
  for (Operation *function : functions) {
    for (Region &region : function->getRegions())
      // Blocks of lowered code are ordered by control flow.
      if (region.hasOneBlock())
        Orderer().order(region.front());
    function->print(out, OpPrintingFlags().useLocalScope());
    out << "\n\n";
  }
}
