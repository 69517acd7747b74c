// Runs a graph-level function twice: op by op (ir/Interpreter.h), and formed, planned, compiled and packed.
#ifndef TRANSEPT_TESTS_UNIT_COMPILER_FORMHARNESS_H
#define TRANSEPT_TESTS_UNIT_COMPILER_FORMHARNESS_H

#include "ir/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include <string>
#include <vector>

namespace form_test {

using Tensors = std::vector<mlir::transept::HostTensor>;

class Program {
public:
  /// Parses a module; several dialects of graph and kernels may be used.
  explicit Program(const std::string &text);

  mlir::MLIRContext &mlirContext() { return context; }
  mlir::ModuleOp moduleOp() { return *module; }

  /// Form, or form and plan. The first error's text, or an empty string.
  std::string form();
  std::string plan();
  /// The module as text.
  std::string print();
  /// Number of ops of a name in the module.
  int count(llvm::StringRef opName);

  /// Results of @main by the interpreter. Before form.
  Tensors interpret(const Tensors &inputs);
  /// Results of entry "main" of the compiled artifact. After plan; for the best level of this processor.
  /// The status' message, where a run fails, is in `lastError`.
  Tensors run(const Tensors &inputs, int threads = 2);
  std::string lastError;

  /// A tensor of random values for an argument type such as "tensor<2x3xf32>": floats in [-2, 2], integers in
  /// [0, below).
  mlir::transept::HostTensor random(const std::string &type, unsigned seed, int64_t below = 10);
  mlir::transept::HostTensor ints(const std::string &type, const std::vector<int64_t> &values);

private:
  std::string runPass(std::unique_ptr<mlir::Pass> pass);
  std::string compile();

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string artifact; // path
};

/// Expects that interpreter and compiled program agree: integers in every bit, floats to `tolerance` of the larger one
/// or of 1.
void expectSame(const std::string &text, const std::function<Tensors(Program &)> &inputs, double tolerance = 2e-6);
/// The same for one function that takes its random inputs from their types, in order.
void expectSame(const std::string &text, const std::vector<std::string> &types, double tolerance = 2e-6);

} // namespace form_test

#endif
