// Models in the C interface.

#include "runtime/DType.h"
#include "runtime/Expr.h"
#include "runtime/capi/Handles.h"

using namespace transept;
using namespace transept::capi;

namespace {

TranseptDeclaration declare(const program::Entry &entry, const program::Buffer &buffer) {
  TranseptDeclaration declaration;
  declaration.name = buffer.name();
  declaration.dtype = static_cast<transept_dtype>(buffer.dtype());
  declaration.optional = buffer.has_default();
  std::vector<std::string> symbols;
  for (const program::Symbol &symbol : entry.symbols())
    symbols.push_back(symbol.name());
  for (const program::Expr &dim : buffer.dims()) {
    Result<int64_t> value = isConstant(dim) ? evaluateExpr(dim, {}) : Result<int64_t>(-1);
    declaration.dims.push_back(value.ok() ? *value : -1);
    declaration.texts.push_back(printExpr(dim, symbols));
  }
  return declaration;
}

/// Pointers into the texts, once those no longer move.
void point(std::vector<TranseptDeclaration> &declarations) {
  for (TranseptDeclaration &declaration : declarations)
    for (const std::string &text : declaration.texts)
      declaration.textPointers.push_back(text.c_str());
}

std::unique_ptr<transept_model> wrap(std::shared_ptr<const Model> model) {
  auto handle = std::make_unique<transept_model>();
  for (const program::Entry &entry : model->manifest().entries()) {
    transept_model::Entry &out = handle->entries.emplace_back();
    out.name = entry.name();
    for (const program::Buffer &buffer : entry.buffers())
      if (buffer.storage() == program::INPUT || buffer.storage() == program::OUTPUT)
        (buffer.storage() == program::INPUT ? out.inputs : out.outputs).push_back(declare(entry, buffer));
    point(out.inputs);
    point(out.outputs);
  }
  handle->device = model->device().name();
  handle->model = std::move(model);
  return handle;
}

using Declarations = std::vector<TranseptDeclaration> transept_model::Entry::*;

const std::vector<TranseptDeclaration> *find(const transept_model *model, const char *entry, Declarations which) {
  if (!model || !entry)
    return nullptr;
  for (const transept_model::Entry &candidate : model->entries)
    if (candidate.name == entry)
      return &(candidate.*which);
  return nullptr;
}

transept_status query(const transept_model *model, const char *entry, size_t index, Declarations which,
                      transept_tensor_info *info, transept_error *error) {
  return guarded(error, [&]() -> Status {
    const std::vector<TranseptDeclaration> *declarations = find(model, entry, which);
    if (!declarations || index >= declarations->size())
      return {Code::Usage, "there is no such entry, input or output"};
    const TranseptDeclaration &declaration = (*declarations)[index];
    transept_tensor_info out{};
    out.name = declaration.name.c_str();
    out.dtype = declaration.dtype;
    out.rank = declaration.dims.size();
    out.dims = declaration.dims.data();
    out.dim_texts = declaration.textPointers.data();
    out.optional = declaration.optional;
    return writeTagged(out, info);
  });
}

} // namespace

const char *transept_version(void) { return TRANSEPT_VERSION; }

const char *transept_status_name(transept_status status) {
  switch (status) {
  case TRANSEPT_OK:
    return "ok";
  case TRANSEPT_USAGE:
    return "usage";
  case TRANSEPT_UNSUPPORTED:
    return "unsupported";
  case TRANSEPT_LIMIT_EXCEEDED:
    return "limit exceeded";
  case TRANSEPT_FILE_ERROR:
    return "file error";
  case TRANSEPT_ARTIFACT_REFUSED:
    return "artifact refused";
  case TRANSEPT_INVALID_INPUT:
    return "invalid input";
  case TRANSEPT_OUT_OF_MEMORY:
    return "out of memory";
  case TRANSEPT_DEVICE_ERROR:
    return "device error";
  case TRANSEPT_BUSY:
    return "busy";
  case TRANSEPT_INTERNAL:
    return "internal error";
  case TRANSEPT_CANCELLED:
    return "cancelled";
  }
  return "unknown";
}

transept_status transept_model_load(const char *path, const transept_model_options *options, transept_model **model,
                                    transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!path || !model)
      return nullArgument(path ? "model" : "path");
    *model = nullptr;
    transept_model_options given;
    TRANSEPT_TRY(readTagged(options, given));
    ModelOptions loading;
    loading.threads = given.threads;
    loading.cpu = given.cpu ? given.cpu : "";
    loading.mapWeights = given.map_weights != 0;
    loading.device = given.device ? given.device : "";
    loading.vulkan.cacheFolder = given.cache_folder ? given.cache_folder : "";
    TRANSEPT_ASSIGN(std::shared_ptr<const Model> loaded, Model::load(path, loading));
    std::unique_ptr<transept_model> handle = wrap(std::move(loaded));
    if (given.log) {
      std::string line = printable(path) + ": " + std::to_string(handle->model->artifact().weightBytes()) +
                         " bytes of weights, " + (handle->device == "cpu" ? "CPU" : "device " + handle->device + ",") +
                         " level " + handle->model->level();
      given.log(given.log_user, line.c_str());
    }
    *model = handle.release();
    return {};
  });
}

void transept_model_free(transept_model *model) { delete model; }

const char *transept_model_level(const transept_model *model) { return model ? model->model->level().c_str() : ""; }

const char *transept_model_device(const transept_model *model) { return model ? model->device.c_str() : ""; }

size_t transept_model_entry_count(const transept_model *model) { return model ? model->entries.size() : 0; }

const char *transept_model_entry_name(const transept_model *model, size_t index) {
  return model && index < model->entries.size() ? model->entries[index].name.c_str() : nullptr;
}

size_t transept_model_input_count(const transept_model *model, const char *entry) {
  const auto *declarations = find(model, entry, &transept_model::Entry::inputs);
  return declarations ? declarations->size() : 0;
}

size_t transept_model_output_count(const transept_model *model, const char *entry) {
  const auto *declarations = find(model, entry, &transept_model::Entry::outputs);
  return declarations ? declarations->size() : 0;
}

transept_status transept_model_input(const transept_model *model, const char *entry, size_t index,
                                     transept_tensor_info *info, transept_error *error) {
  return query(model, entry, index, &transept_model::Entry::inputs, info, error);
}

transept_status transept_model_output(const transept_model *model, const char *entry, size_t index,
                                      transept_tensor_info *info, transept_error *error) {
  return query(model, entry, index, &transept_model::Entry::outputs, info, error);
}
