//===- DimExprText.cpp - size expressions as text ---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// expression := term (('+' | '-') term)*      term := factor ('*' factor)*
// factor := integer | name | "quoted name" | ('floordiv' | 'mod' | 'min' | 'max') '(' expression (',' expression)* ')'
//           | '(' expression ')'

#include "ir/DimExpr.h"
#include "ir/Transept.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

bool isFunctionName(StringRef name) {
  return name == "floordiv" || name == "mod" || name == "min" || name == "max" || name == "x";
}

/// Names that are keywords of the MLIR lexer print bare, all others (dim_param is free text) in quotes.
bool printsBare(StringRef name) {
  if (name.empty() || isFunctionName(name) || !(isalpha(name.front()) || name.front() == '_'))
    return false;
  return llvm::all_of(name, [](char c) { return isalnum(c) || c == '_' || c == '.'; });
}

void print(raw_ostream &os, DimAttr dim) {
  auto list = [&](StringRef function) {
    os << function << '(';
    llvm::interleaveComma(dim.getOperands(), os, [&](Attribute inner) { print(os, cast<DimAttr>(inner)); });
    os << ')';
  };
  switch (static_cast<DimKind>(dim.getKind())) {
  case DimKind::Constant:
    os << dim.getValue();
    return;
  case DimKind::Symbol:
    if (printsBare(dim.getName())) {
      os << dim.getName();
    } else {
      os << '"';
      llvm::printEscapedString(dim.getName(), os);
      os << '"';
    }
    return;
  case DimKind::Sum:
    for (auto [i, term] : llvm::enumerate(dim.getOperands())) {
      if (i)
        os << " + ";
      print(os, cast<DimAttr>(term));
    }
    return;
  case DimKind::Product:
    if (dim.getValue() != 1)
      os << dim.getValue() << " * ";
    llvm::interleave(dim.getOperands(), os, [&](Attribute atom) { print(os, cast<DimAttr>(atom)); }, " * ");
    return;
  case DimKind::FloorDiv:
    return list("floordiv");
  case DimKind::Mod:
    return list("mod");
  case DimKind::Min:
    return list("min");
  case DimKind::Max:
    return list("max");
  }
}

FailureOr<DimAttr> parseSum(AsmParser &parser);

FailureOr<DimAttr> parseFactor(AsmParser &parser) {
  MLIRContext *context = parser.getContext();
  int64_t value;
  OptionalParseResult integer = parser.parseOptionalInteger(value);
  if (integer.has_value()) {
    if (failed(*integer))
      return failure();
    return dimConstant(context, value);
  }
  std::string text;
  if (succeeded(parser.parseOptionalString(&text)))
    return dimSymbol(context, text);
  if (succeeded(parser.parseOptionalLParen())) {
    FailureOr<DimAttr> inner = parseSum(parser);
    if (failed(inner) || parser.parseRParen())
      return failure();
    return inner;
  }
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  if (!isFunctionName(name))
    return dimSymbol(context, name);
  SmallVector<DimAttr> arguments;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
        FailureOr<DimAttr> argument = parseSum(parser);
        if (failed(argument))
          return failure();
        arguments.push_back(*argument);
        return success();
      }))
    return failure();
  auto combine = llvm::StringSwitch<DimAttr (*)(DimAttr, DimAttr)>(name)
                     .Case("floordiv", dimFloorDiv)
                     .Case("mod", dimMod)
                     .Case("min", dimMin)
                     .Default(dimMax);
  bool binary = name == "floordiv" || name == "mod";
  if (arguments.empty() || (binary && arguments.size() != 2)) {
    parser.emitError(loc) << "'" << name << "' has " << arguments.size() << " operands";
    return failure();
  }
  DimAttr result = arguments.front();
  for (DimAttr next : ArrayRef(arguments).drop_front())
    result = combine(result, next);
  return result;
}

FailureOr<DimAttr> parseProduct(AsmParser &parser) {
  FailureOr<DimAttr> result = parseFactor(parser);
  while (succeeded(result) && succeeded(parser.parseOptionalStar())) {
    FailureOr<DimAttr> next = parseFactor(parser);
    if (failed(next))
      return failure();
    result = dimMul(*result, *next);
  }
  return result;
}

FailureOr<DimAttr> parseSum(AsmParser &parser) {
  FailureOr<DimAttr> result = parseProduct(parser);
  while (succeeded(result) && succeeded(parser.parseOptionalPlus())) {
    FailureOr<DimAttr> next = parseProduct(parser);
    if (failed(next))
      return failure();
    result = dimAdd(*result, *next);
  }
  return result;
}

} // namespace

std::string transept::toString(DimAttr dim) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ::print(os, dim);
  return text;
}

void DimAttr::print(AsmPrinter &printer) const {
  printer << "<";
  ::print(printer.getStream(), *this);
  printer << ">";
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimAttr> dim = parseSum(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

void DimsAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer, [&](DimAttr dim) { ::print(printer.getStream(), dim); });
  printer << "]>";
}

Attribute DimsAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimAttr> dims;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&]() -> ParseResult {
                                       FailureOr<DimAttr> dim = parseSum(parser);
                                       if (failed(dim))
                                         return failure();
                                       dims.push_back(*dim);
                                       return success();
                                     }) ||
      parser.parseGreater())
    return {};
  return DimsAttr::get(parser.getContext(), dims);
}
