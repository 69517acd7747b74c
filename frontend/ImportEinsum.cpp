//===- ImportEinsum.cpp - sums of products by the names of axes ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands are combined from left to right: what only one side has and nobody needs later is summed first, the rest is
// a matrix product over shared batch axes.

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Names of axes: letters, and for the axes of an ellipsis -1 (the last of them), -2, …
using Names = SmallVector<int>;

struct Term {
  Value value;
  Names names;
};

class Einsum {
public:
  explicit Einsum(NodeImport &node) : node(node), element(node.elementOf(node.input(0))) {}
  LogicalResult run();

private:
  LogicalResult parse(StringRef equation);
  FailureOr<Names> parseTerm(StringRef text, std::optional<int64_t> rank);
  void takeDiagonals(Term &term);
  void sumOut(Term &term, llvm::function_ref<bool(int)> isKept);
  void reorder(Term &term, const Names &order);
  Term contract(Term left, Term right, llvm::function_ref<bool(int)> isKept);

  Value product(Value sizes) { return node.reduce(sizes, ReduceKind::Prod, {0}, /*keepdims=*/true); }
  Value joined(ArrayRef<Value> parts) { return node.make<ConcatOp>(node.i64(), ValueRange(parts), uint64_t(0)); }

  NodeImport &node;
  Type element;
  std::vector<Term> terms;
  Names output;
};

FailureOr<Names> Einsum::parseTerm(StringRef text, std::optional<int64_t> rank) {
  Names names;
  size_t ellipsis = text.find("...");
  int64_t letters = static_cast<int64_t>(text.size()) - (ellipsis == StringRef::npos ? 0 : 3);
  int64_t more = rank ? *rank - letters : 0;
  if (more < 0 || (rank && ellipsis == StringRef::npos && more != 0))
    return node.invalid("has the term " + quoted(text) + " for an input of " + Twine(*rank) + " axes");
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == ellipsis) {
      for (int64_t axis = -more; axis < 0; ++axis)
        names.push_back(static_cast<int>(axis));
      i += 2;
    } else if (llvm::isAlpha(text[i])) {
      names.push_back(text[i]);
    } else {
      return node.invalid("has the character " + quoted(text.substr(i, 1)) + " in its equation");
    }
  }
  return names;
}

LogicalResult Einsum::parse(StringRef equation) {
  std::string text;
  for (char c : equation)
    if (c != ' ')
      text += c;
  auto [inputs, result] = StringRef(text).split("->");
  bool isExplicit = StringRef(text).contains("->");
  SmallVector<StringRef> parts;
  inputs.split(parts, ',');
  if (parts.size() != node.inputCount())
    return node.invalid("has an equation of " + Twine(parts.size()) + " terms for " + Twine(node.inputCount()) +
                        " inputs");
  int ellipsis = 0;
  std::map<int, int> uses;
  for (auto [index, part] : llvm::enumerate(parts)) {
    std::optional<int64_t> rank = node.rank(node.input(index));
    if (!rank)
      return node.unsupported("Einsum of an input of unknown rank");
    FailureOr<Names> names = parseTerm(part, rank);
    if (failed(names))
      return failure();
    for (int name : *names) {
      ellipsis = std::max(ellipsis, -name);
      ++uses[name];
    }
    terms.push_back({node.input(index), *names});
  }
  if (isExplicit) {
    bool hasEllipsis = result.contains("...");
    FailureOr<Names> names = parseTerm(result, hasEllipsis ? static_cast<int64_t>(result.size()) - 3 + ellipsis
                                                           : static_cast<int64_t>(result.size()));
    if (failed(names))
      return failure();
    output = *names;
  } else {
    // The ellipsis, then what occurs once, in the order of the alphabet.
    for (int axis = -ellipsis; axis < 0; ++axis)
      output.push_back(axis);
    for (auto [name, count] : uses)
      if (name > 0 && count == 1)
        output.push_back(name);
  }
  for (auto [i, name] : llvm::enumerate(output))
    if (!uses.count(name) || llvm::is_contained(ArrayRef(output).take_front(i), name))
      return node.invalid("has a result whose axes are not among those of its inputs, or are named twice");
  return success();
}

void Einsum::reorder(Term &term, const Names &order) {
  if (term.names == order)
    return;
  SmallVector<int64_t> permutation;
  for (int name : order)
    permutation.push_back(llvm::find(term.names, name) - term.names.begin());
  term = {node.transpose(term.value, permutation), order};
}

/// Axes of one name become one: they are flattened as the last ones, and every (size + 1)-th element is kept.
void Einsum::takeDiagonals(Term &term) {
  for (size_t first = 0; first < term.names.size(); ++first)
    for (size_t second = first + 1; second < term.names.size();) {
      if (term.names[second] != term.names[first]) {
        ++second;
        continue;
      }
      SmallVector<int64_t> order;
      Names rest;
      for (size_t axis = 0; axis < term.names.size(); ++axis)
        if (axis != first && axis != second) {
          order.push_back(static_cast<int64_t>(axis));
          rest.push_back(term.names[axis]);
        }
      order.append({static_cast<int64_t>(first), static_cast<int64_t>(second)});
      Value last = node.transpose(term.value, order);
      auto others = static_cast<int64_t>(rest.size());
      Value size = node.reshape(node.sizes(last, others, others + 1), ArrayRef<int64_t>{});
      Value flat = node.reshape(last, joined({node.sizes(last, 0, others), node.constant({-1})}));
      Value steps = node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), size, node.scalar(int64_t(1)), DimAttr(),
                                       IntegerAttr());
      steps = node.make<MulOp>(node.i64(), steps, node.make<AddOp>(node.i64(), size, node.scalar(int64_t(1))));
      rest.push_back(term.names[first]);
      term = {node.make<GatherOp>(element, flat, steps, static_cast<uint64_t>(others)), rest};
      second = first + 1;
    }
}

void Einsum::sumOut(Term &term, llvm::function_ref<bool(int)> isKept) {
  SmallVector<int64_t> axes;
  Names rest;
  for (auto [axis, name] : llvm::enumerate(term.names))
    if (isKept(name))
      rest.push_back(name);
    else
      axes.push_back(static_cast<int64_t>(axis));
  if (!axes.empty())
    term = {node.reduce(term.value, ReduceKind::Sum, axes, /*keepdims=*/false), rest};
}

Term Einsum::contract(Term left, Term right, llvm::function_ref<bool(int)> isKept) {
  auto has = [](const Term &term, int name) { return llvm::is_contained(term.names, name); };
  sumOut(left, [&](int name) { return has(right, name) || isKept(name); });
  sumOut(right, [&](int name) { return has(left, name) || isKept(name); });
  // Sizes of ellipsis axes may be 1 on one side: they are batch axes, which broadcast.
  Names batch, rows, columns, inner;
  for (int name : left.names)
    (!has(right, name) ? rows : isKept(name) || name < 0 ? batch : inner).push_back(name);
  for (int name : right.names)
    if (!has(left, name))
      columns.push_back(name);
  auto append = [](Names a, const Names &b) {
    a.append(b);
    return a;
  };
  reorder(left, append(append(batch, rows), inner));
  reorder(right, append(append(batch, inner), columns));
  auto b = static_cast<int64_t>(batch.size()), r = static_cast<int64_t>(rows.size()),
       k = static_cast<int64_t>(inner.size()), c = static_cast<int64_t>(columns.size());
  Value rowSizes = node.sizes(left.value, b, b + r), innerSizes = node.sizes(left.value, b + r, b + r + k),
        columnSizes = node.sizes(right.value, b + k, b + k + c);
  auto matrix = [&](Value value, Value first, int64_t firstCount, Value second, int64_t secondCount) {
    if (firstCount == 1 && secondCount == 1)
      return value;
    return node.reshape(value, joined({node.sizes(value, 0, b), product(first), product(second)}));
  };
  Value product = node.make<MatMulOp>(element, matrix(left.value, rowSizes, r, innerSizes, k),
                                      matrix(right.value, innerSizes, k, columnSizes, c));
  if (r != 1 || c != 1)
    product = node.reshape(product, joined({node.sizes(product, 0, b), rowSizes, columnSizes}));
  return {product, append(append(batch, rows), columns)};
}

LogicalResult Einsum::run() {
  if (failed(parse(node.text("equation", ""))))
    return failure();
  for (Term &term : terms)
    takeDiagonals(term);
  Term result = terms.front();
  for (size_t next = 1; next < terms.size(); ++next)
    result = contract(result, terms[next], [&](int name) {
      return llvm::is_contained(output, name) ||
             llvm::any_of(ArrayRef(terms).drop_front(next + 1),
                          [&](const Term &later) { return llvm::is_contained(later.names, name); });
    });
  sumOut(result, [&](int name) { return llvm::is_contained(output, name); });
  reorder(result, output);
  return node.result(result.value);
}

LogicalResult importEinsum(NodeImport &node) { return Einsum(node).run(); }
} // namespace

void mlir::transept::addEinsumImports(ImportTable &table) { table.add("Einsum", importEinsum); }
