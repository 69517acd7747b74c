// Compiles kernel.func ops given as text, for a level that this processor has, and runs them in this process.
#ifndef TRANSEPT_TESTS_UNIT_COMPILER_CODEGENHARNESS_H
#define TRANSEPT_TESTS_UNIT_COMPILER_CODEGENHARNESS_H

#include "codegen/Codegen.h"
#include "ir/Kernel.h"
#include "transept/abi.h"
#include <random>
#include <string>
#include <vector>

namespace codegen_test {

/// Memory with the alignment and the slack of abi.h; the slack holds NaN bits, and writing to it is noticed.
class Bytes {
public:
  explicit Bytes(size_t size);
  ~Bytes();
  Bytes(Bytes &&other) : base(other.base), size(other.size) { other.base = nullptr; }
  Bytes(const Bytes &) = delete;
  void *data() const { return base; }

private:
  char *base;
  size_t size;
};

template <typename T> class Array : public Bytes {
public:
  explicit Array(size_t count) : Bytes(count * sizeof(T)), count(count) {}
  Array(size_t count, T value) : Array(count) { std::fill(begin(), end(), value); }
  Array(const std::vector<T> &values) : Array(values.size()) { std::copy(values.begin(), values.end(), begin()); }
  size_t size() const { return count; }
  T *begin() const { return static_cast<T *>(data()); }
  T *end() const { return begin() + count; }
  T &operator[](size_t i) const { return begin()[i]; }

private:
  size_t count;
};

/// Uniform in [-bound, bound].
Array<float> randomFloats(size_t count, unsigned seed, float bound = 1);

/// The scheduled module of a text.
mlir::OwningOpRef<mlir::ModuleOp> parseKernels(const std::string &text, mlir::MLIRContext &context);

/// The kernels of a text, compiled for one level.
class Kernels {
public:
  Kernels(const std::string &text, llvm::StringRef level);
  ~Kernels();

  /// The items of kernel `index` for these sizes, in `parts` calls from the last part to the first.
  void run(unsigned index, std::vector<void *> buffers, std::vector<int64_t> sizes, int parts = 1);
  /// One of those calls.
  void runPart(unsigned index, std::vector<void *> buffers, std::vector<int64_t> sizes, int part, int parts);
  const std::string &object() const { return bytes; }
  mlir::transept::DimAttr items(unsigned index) const { return kernels.at(index).items; }

  transept_error_word error = {};

private:
  struct Kernel {
    std::vector<std::string> symbols;
    mlir::transept::DimAttr items, scratch;
  };
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Kernel> kernels;
  std::string bytes;
  int file = -1; // open as long as the library is: dlopen knows libraries by their path, which has its number
  void *library = nullptr;
  const transept_kernel_table *table = nullptr;
};

/// Names of the levels that this processor can run and artifacts of a precision have, best first.
std::vector<std::string> runnableLevels(llvm::StringRef precision = "fp32");
/// Those that have fused multiply-adds.
std::vector<std::string> fusedLevels();

} // namespace codegen_test

#endif
