// Sessions in the C interface.

#include "runtime/capi/Handles.h"

using namespace transept;
using namespace transept::capi;

namespace {

/// Inputs of a caller's list; the views point into it.
Status readInputs(const transept_run_arguments &given, std::vector<ConstTensorView> &inputs) {
  if (given.input_count != 0 && !given.inputs)
    return nullArgument("inputs");
  const auto *next = reinterpret_cast<const char *>(given.inputs);
  for (size_t i = 0; i < given.input_count; ++i) {
    transept_tensor tensor;
    TRANSEPT_TRY(readTagged(reinterpret_cast<const transept_tensor *>(next), tensor));
    next += tensor.struct_size; // the caller's elements may be of another version
    if (!tensor.name)
      return nullArgument("an input's name");
    if ((tensor.rank != 0 && !tensor.dims) || (tensor.bytes != 0 && !tensor.data))
      return {Code::Usage, "input '" + printable(tensor.name) + "' has a null pointer"};
    inputs.push_back({tensor.name,
                      static_cast<DType>(tensor.dtype),
                      {tensor.dims, tensor.rank},
                      tensor.data,
                      static_cast<int64_t>(tensor.bytes)});
  }
  return {};
}

/// `view.name` must end with a zero byte, which names inside a manifest do.
Status writeTensor(const TensorView &view, transept_tensor *out) {
  transept_tensor tensor{};
  tensor.name = view.name.data();
  tensor.dtype = static_cast<transept_dtype>(view.dtype);
  tensor.rank = view.dims.size();
  tensor.dims = view.dims.data();
  tensor.data = view.data;
  tensor.bytes = static_cast<size_t>(view.bytes);
  return writeTagged(tensor, out);
}

} // namespace

transept_status transept_session_create(const transept_model *model, const transept_session_options *options,
                                        transept_session **session, transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!model || !session)
      return nullArgument(model ? "session" : "model");
    *session = nullptr;
    transept_session_options given;
    TRANSEPT_TRY(readTagged(options, given));
    SessionOptions creating;
    creating.threads = given.threads;
    TRANSEPT_TRY(readSymbols(given.symbols, given.symbol_count, creating.symbols));
    auto handle = std::make_unique<transept_session>();
    TRANSEPT_ASSIGN(handle->session, model->model->createSession(creating));
    *session = handle.release();
    return {};
  });
}

void transept_session_free(transept_session *session) { delete session; }

transept_status transept_session_run(transept_session *session, const char *entry,
                                     const transept_run_arguments *arguments, transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!session || !entry)
      return nullArgument(session ? "entry" : "session");
    transept_run_arguments given;
    TRANSEPT_TRY(readTagged(arguments, given));
    RunArguments running;
    TRANSEPT_TRY(readInputs(given, running.inputs));
    TRANSEPT_TRY(readSymbols(given.symbols, given.symbol_count, running.symbols));
    return session->session->run(entry, running);
  });
}

size_t transept_session_output_count(const transept_session *session) {
  return session ? session->session->outputs().size() : 0;
}

transept_status transept_session_output(const transept_session *session, size_t index, transept_tensor *output,
                                        transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!session || index >= session->session->outputs().size())
      return {Code::Usage, "there is no such output"};
    return writeTensor(session->session->outputs()[index], output);
  });
}

transept_status transept_session_state(const transept_session *session, const char *name, transept_tensor *state,
                                       transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!session || !name)
      return nullArgument(session ? "name" : "session");
    TensorView view = session->session->state(name);
    if (view.name.empty())
      return {Code::InvalidInput, "the model has no state '" + printable(name) + "'"};
    if (!view.data)
      return {Code::InvalidInput, "state '" + printable(name) + "' lies in memory of a device"};
    return writeTensor(view, state);
  });
}

void transept_session_cancel(transept_session *session, int32_t cancel) {
  if (!session)
    return;
  if (cancel)
    session->session->cancel();
  else
    session->session->clearCancel();
}

transept_status transept_session_memory(const transept_session *session, transept_memory *memory,
                                        transept_error *error) {
  return guarded(error, [&]() -> Status {
    if (!session)
      return nullArgument("session");
    MemoryUse use = session->session->memory();
    transept_memory out{};
    out.weights = use.weights;
    out.states = use.states;
    out.arena = use.arena;
    out.reserved = use.reserved;
    out.scratch = use.scratch;
    return writeTagged(out, memory);
  });
}
