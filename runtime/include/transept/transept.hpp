// The C interface for C++17: handles that free themselves, and exceptions.
#ifndef TRANSEPT_TRANSEPT_HPP
#define TRANSEPT_TRANSEPT_HPP

#include "transept/transept.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {
// Apart from the runtime's own classes, which may have the same names.
inline namespace api {

/// What a failed call throws.
class Error : public std::runtime_error {
public:
  explicit Error(const transept_error &error) : std::runtime_error(error.message), status_(error.status) {}
  transept_status status() const { return status_; }

private:
  transept_status status_;
};

namespace detail {
template <typename Call> void check(Call call) {
  transept_error error{};
  error.struct_size = sizeof error;
  if (call(&error) != TRANSEPT_OK)
    throw Error(error);
}
template <typename T> T tagged() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}
template <typename T> constexpr transept_dtype dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return TRANSEPT_F32;
  else if constexpr (std::is_same_v<T, double>)
    return TRANSEPT_F64;
  else if constexpr (std::is_same_v<T, int8_t>)
    return TRANSEPT_I8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return TRANSEPT_I16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return TRANSEPT_I32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return TRANSEPT_I64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return TRANSEPT_U8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return TRANSEPT_U16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return TRANSEPT_U32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return TRANSEPT_U64;
  else {
    static_assert(std::is_same_v<T, bool>, "no tensor has elements of this type");
    return TRANSEPT_BOOL;
  }
}
} // namespace detail

/// An output or state; points into its session.
class TensorRef {
public:
  explicit TensorRef(const transept_tensor &tensor) : tensor_(tensor) {}
  std::string name() const { return tensor_.name; }
  transept_dtype dtype() const { return tensor_.dtype; }
  std::vector<int64_t> dims() const { return {tensor_.dims, tensor_.dims + tensor_.rank}; }
  size_t size() const { return bytes() / elementBytes(); }
  size_t bytes() const { return tensor_.bytes; }
  void *data() const { return tensor_.data; }

  /// The elements; throws std::invalid_argument where they are of another type.
  template <typename T> T *as() const {
    if (tensor_.dtype != detail::dtypeOf<std::remove_const_t<T>>())
      throw std::invalid_argument("tensor '" + name() + "' has another element type");
    return static_cast<T *>(tensor_.data);
  }

private:
  size_t elementBytes() const {
    switch (tensor_.dtype) {
    case TRANSEPT_F16:
    case TRANSEPT_BF16:
    case TRANSEPT_I16:
    case TRANSEPT_U16:
      return 2;
    case TRANSEPT_F64:
    case TRANSEPT_I64:
    case TRANSEPT_U64:
      return 8;
    case TRANSEPT_F32:
    case TRANSEPT_I32:
    case TRANSEPT_U32:
      return 4;
    default:
      return 1;
    }
  }
  transept_tensor tensor_;
};

/// An input; the elements are the caller's and are only read during the run.
struct Input {
  template <typename T>
  Input(std::string inputName, std::vector<int64_t> inputDims, const T *elements, size_t count)
      : name(std::move(inputName)), dims(std::move(inputDims)), dtype(detail::dtypeOf<T>()), data(elements),
        bytes(count * sizeof(T)) {}
  template <typename T>
  Input(std::string inputName, std::vector<int64_t> inputDims, const std::vector<T> &elements)
      : Input(std::move(inputName), std::move(inputDims), elements.data(), elements.size()) {}

  std::string name;
  std::vector<int64_t> dims;
  transept_dtype dtype;
  const void *data;
  size_t bytes;
};

class Model {
public:
  explicit Model(const std::string &path) { load(path, nullptr); }
  Model(const std::string &path, const transept_model_options &options) { load(path, &options); }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < transept_model_entry_count(get()); ++i)
      names.emplace_back(transept_model_entry_name(get(), i));
    return names;
  }
  std::vector<transept_tensor_info> inputs(const std::string &entry) const {
    return infos(entry, transept_model_input_count(get(), entry.c_str()), transept_model_input);
  }
  std::vector<transept_tensor_info> outputs(const std::string &entry) const {
    return infos(entry, transept_model_output_count(get(), entry.c_str()), transept_model_output);
  }
  std::string level() const { return transept_model_level(get()); }
  std::string device() const { return transept_model_device(get()); }
  transept_model *get() const { return handle_.get(); }

private:
  void load(const std::string &path, const transept_model_options *options) {
    transept_model *model = nullptr;
    detail::check([&](transept_error *error) { return transept_model_load(path.c_str(), options, &model, error); });
    handle_.reset(model, transept_model_free);
  }
  template <typename Query>
  std::vector<transept_tensor_info> infos(const std::string &entry, size_t count, Query query) const {
    std::vector<transept_tensor_info> out(count, detail::tagged<transept_tensor_info>());
    for (size_t i = 0; i < count; ++i)
      detail::check([&](transept_error *error) { return query(get(), entry.c_str(), i, &out[i], error); });
    return out;
  }
  std::shared_ptr<transept_model> handle_;
};

class Session {
public:
  using Symbols = std::vector<std::pair<std::string, int64_t>>;

  explicit Session(const Model &model, int threads = 0, const Symbols &symbols = {}) {
    std::vector<transept_symbol> list = pointers(symbols);
    auto options = detail::tagged<transept_session_options>();
    options.threads = threads;
    options.symbols = list.data();
    options.symbol_count = list.size();
    transept_session *session = nullptr;
    detail::check(
        [&](transept_error *error) { return transept_session_create(model.get(), &options, &session, error); });
    handle_.reset(session);
  }

  /// Outputs in the model's order; they point into the session and are valid until its next run.
  std::vector<TensorRef> run(const std::string &entry, const std::vector<Input> &inputs = {},
                             const Symbols &symbols = {}) {
    std::vector<transept_tensor> tensors;
    for (const Input &input : inputs)
      tensors.push_back({sizeof(transept_tensor), input.name.c_str(), input.dtype, input.dims.size(), input.dims.data(),
                         const_cast<void *>(input.data), input.bytes});
    std::vector<transept_symbol> list = pointers(symbols);
    auto arguments = detail::tagged<transept_run_arguments>();
    arguments.inputs = tensors.data();
    arguments.input_count = tensors.size();
    arguments.symbols = list.data();
    arguments.symbol_count = list.size();
    detail::check([&](transept_error *error) { return transept_session_run(get(), entry.c_str(), &arguments, error); });
    std::vector<TensorRef> outputs;
    for (size_t i = 0; i < transept_session_output_count(get()); ++i) {
      auto output = detail::tagged<transept_tensor>();
      detail::check([&](transept_error *error) { return transept_session_output(get(), i, &output, error); });
      outputs.emplace_back(output);
    }
    return outputs;
  }

  TensorRef state(const std::string &name) const {
    auto tensor = detail::tagged<transept_tensor>();
    detail::check([&](transept_error *error) { return transept_session_state(get(), name.c_str(), &tensor, error); });
    return TensorRef(tensor);
  }

  transept_memory memory() const {
    auto memory = detail::tagged<transept_memory>();
    detail::check([&](transept_error *error) { return transept_session_memory(get(), &memory, error); });
    return memory;
  }

  void cancel(bool cancel = true) { transept_session_cancel(get(), cancel); }
  transept_session *get() const { return handle_.get(); }

private:
  static std::vector<transept_symbol> pointers(const Symbols &symbols) {
    std::vector<transept_symbol> list;
    for (const auto &[name, value] : symbols)
      list.push_back({name.c_str(), value});
    return list;
  }
  struct Free {
    void operator()(transept_session *session) const { transept_session_free(session); }
  };
  std::unique_ptr<transept_session, Free> handle_;
};

/// Requests and answers as JSON text; see transept_generator_run().
class Generator {
public:
  /// A tokenizer is taken over.
  explicit Generator(const Model &model, int threads = 0, const transept_tokenizer *tokenizer = nullptr) {
    auto options = detail::tagged<transept_generator_options>();
    options.threads = threads;
    options.tokenizer = tokenizer;
    transept_generator *generator = nullptr;
    detail::check(
        [&](transept_error *error) { return transept_generator_create(model.get(), &options, &generator, error); });
    handle_.reset(generator);
  }

  std::string run(const std::string &requests) {
    const char *answers = nullptr;
    detail::check(
        [&](transept_error *error) { return transept_generator_run(get(), requests.c_str(), &answers, error); });
    return answers;
  }

  void cancel(bool cancel = true) { transept_generator_cancel(get(), cancel); }
  transept_generator *get() const { return handle_.get(); }

private:
  struct Free {
    void operator()(transept_generator *generator) const { transept_generator_free(generator); }
  };
  std::unique_ptr<transept_generator, Free> handle_;
};

} // namespace api
} // namespace transept

#endif
