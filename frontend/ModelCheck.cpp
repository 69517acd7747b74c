//===- ModelCheck.cpp - what must hold before a model is imported ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/OnnxFile.h"
#include "frontend/TensorData.h"
#include "onnx/checker.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <google/protobuf/message.h>
#include <new>

using namespace mlir::transept;

namespace {
/// Calls `visit` for every tensor of the graphs, attributes and functions of a model, until it returns a failure.
template <typename Visit> class TensorWalk {
public:
  explicit TensorWalk(Visit &visit) : visit(visit) {}

  std::optional<Failure> model(onnx::ModelProto &model) {
    if (std::optional<Failure> failure = graph(*model.mutable_graph()))
      return failure;
    for (onnx::FunctionProto &function : *model.mutable_functions()) {
      for (onnx::NodeProto &node : *function.mutable_node())
        if (std::optional<Failure> failure = attributes(*node.mutable_attribute()))
          return failure;
      if (std::optional<Failure> failure = attributes(*function.mutable_attribute_proto()))
        return failure;
    }
    return std::nullopt;
  }

private:
  std::optional<Failure> graph(onnx::GraphProto &graph) {
    if (graph.name().empty())
      graph.set_name("graph"); // some exporters leave it out; the checker insists
    // Declared shapes of results are not used; the checker insists on them too.
    for (onnx::ValueInfoProto &output : *graph.mutable_output())
      if (output.type().has_tensor_type())
        output.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (onnx::TensorProto &tensor : *graph.mutable_initializer())
      if (std::optional<Failure> failure = visit(tensor))
        return failure;
    for (onnx::NodeProto &node : *graph.mutable_node())
      if (std::optional<Failure> failure = attributes(*node.mutable_attribute()))
        return failure;
    return std::nullopt;
  }

  template <typename Attributes> std::optional<Failure> attributes(Attributes &list) {
    for (onnx::AttributeProto &attribute : list) {
      if (attribute.has_t())
        if (std::optional<Failure> failure = visit(*attribute.mutable_t()))
          return failure;
      for (onnx::TensorProto &tensor : *attribute.mutable_tensors())
        if (std::optional<Failure> failure = visit(tensor))
          return failure;
      if (attribute.has_g())
        if (std::optional<Failure> failure = graph(*attribute.mutable_g()))
          return failure;
      for (onnx::GraphProto &inner : *attribute.mutable_graphs())
        if (std::optional<Failure> failure = graph(inner))
          return failure;
    }
    return std::nullopt;
  }

  Visit &visit;
};

template <typename Visit> std::optional<Failure> walkTensors(onnx::ModelProto &model, Visit visit) {
  return TensorWalk<Visit>(visit).model(model);
}

/// Names go into diagnostics, dumps and the artifact, all of which are UTF-8. What only documents the model is not
/// read.
std::optional<Failure> checkNames(const google::protobuf::Message &message, const std::string &path) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection &reflection = *message.GetReflection();
  std::vector<const Field *> fields;
  reflection.ListFields(message, &fields);
  for (const Field *field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    if (field->type() == Field::TYPE_MESSAGE) {
      for (int i = 0; i < count; ++i)
        if (std::optional<Failure> failure =
                checkNames(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                : reflection.GetMessage(message, field),
                           path))
          return failure;
    } else if (field->type() == Field::TYPE_STRING && field->name() != "doc_string") {
      std::string buffer;
      for (int i = 0; i < count; ++i) {
        const std::string &text = field->is_repeated()
                                      ? reflection.GetRepeatedStringReference(message, field, i, &buffer)
                                      : reflection.GetStringReference(message, field, &buffer);
        if (!llvm::json::isUTF8(text))
          return Failure{ExitInvalidModel,
                         printable(path) + ": " + message.GetTypeName() + "." + std::string(field->name()) + " " +
                             quoted(text) + " is not UTF-8",
                         {}};
      }
    }
  }
  return std::nullopt;
}

/// The checker's text on one line, most specific part first.
std::string oneLine(llvm::StringRef text) {
  std::string out;
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    line = line.trim();
    bool context = line.consume_front("==> Context: ");
    if (line.empty())
      continue;
    if (!out.empty())
      out += context ? "; " : " ";
    out += line;
  }
  while (!out.empty() && (out.back() == '.' || out.back() == ' '))
    out.pop_back();
  return printable(out, 600);
}

std::optional<Failure> runChecker(const OnnxFile &file) {
  try {
    onnx::checker::check_model(*file.model, /*full_check=*/false, /*skip_opset_compatibility_check=*/true);
  } catch (const std::bad_alloc &) {
    return Failure{ExitMemory, printable(file.path) + ": not enough memory to check the model", {}};
  } catch (const std::exception &error) {
    return Failure{ExitInvalidModel, printable(file.path) + ": " + oneLine(error.what()), {}};
  }
  return std::nullopt;
}
} // namespace

std::optional<Failure> mlir::transept::checkModel(OnnxFile &file) {
  onnx::ModelProto &model = *file.model;
  if (std::optional<Failure> failure = checkNames(model, file.path))
    return failure;
  if (model.graph().sparse_initializer_size() > 0)
    return Failure{ExitUnsupported,
                   printable(file.path) + ": sparse weights are not supported (" +
                       quoted(model.graph().sparse_initializer(0).values().name()) + "); store them densely",
                   {}};
  // The checker multiplies sizes without looking, and opens external files under rules of its own: before it runs,
  // sizes are checked and external tensors look as if they had data.
  if (std::optional<Failure> failure =
          walkTensors(model, [&](onnx::TensorProto &tensor) { return checkTensorHeader(tensor, file); }))
    return failure;
  auto external = [](const onnx::TensorProto &tensor) { return tensor.external_data_size() > 0; };
  (void)walkTensors(model, [&](onnx::TensorProto &tensor) -> std::optional<Failure> {
    if (external(tensor)) {
      tensor.clear_data_location();
      if (llvm::none_of(tensor.dims(), [](int64_t size) { return size == 0; }))
        tensor.set_raw_data(std::string(1, '\0'));
    }
    return std::nullopt;
  });
  std::optional<Failure> failure = runChecker(file);
  (void)walkTensors(model, [&](onnx::TensorProto &tensor) -> std::optional<Failure> {
    if (external(tensor)) {
      tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      tensor.clear_raw_data();
    }
    return std::nullopt;
  });
  return failure;
}
