// A small program with kernels in plain C++, for tests of the runtime.
#ifndef TRANSEPT_TESTS_TINYMODEL_H
#define TRANSEPT_TESTS_TINYMODEL_H

#include "runtime/ArtifactWriter.h"
#include "runtime/Model.h"
#include "runtime/program.pb.h"

#include <memory>
#include <string>
#include <vector>

namespace transept::tests {

/// An expression from postfix words: numbers, names of `symbols`, + * / % min max.
program::Expr postfix(const std::string &words, const std::vector<std::string> &symbols = {});

/// Two plain entries and a step, over kernels in the order of tinyKernels():
///   main(x f32 [n, 4], factor f32 [1] = 2, ids i64 [n]): y f32 [n, 4] = x * factor + bias[ids], with bias
///       f32 [3, 4] a constant; an id outside [0, 2] is an error; at most 1000 rows, and n must not be 13
///   encode(source_ids i64 [batch, source]): state memory f32 [batch, source] = the ids
///   step(): state sum f32 [rows] += state token i64 [rows], for rows below state live i32 [1]
program::Manifest tinyManifest();

/// The weights of tinyManifest(): bias[i][j] = 10 i + j.
std::string tinyWeights();

const transept_kernel_table &tinyKernels();

std::vector<ArtifactSection> tinySections(const program::Manifest &manifest);

/// As loaded from a file, with tinyKernels(). Fails the test where that is impossible.
std::shared_ptr<const Model> tinyModel(const program::Manifest &manifest = tinyManifest());

/// A folder for the running test, removed at its end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string &name) const { return folder_ + "/" + name; }
  const std::string &folder() const { return folder_; }
  std::vector<std::string> listing() const;

private:
  std::string folder_;
};

std::string readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &content);

template <typename T>
ConstTensorView view(std::string_view name, const std::vector<int64_t> &dims, const std::vector<T> &values) {
  return {name, dtypeOf<T>(), dims, values.data(), static_cast<int64_t>(values.size() * sizeof(T))};
}

} // namespace transept::tests

#endif
