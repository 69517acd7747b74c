#include "runtime/search/Source.h"

#include "runtime/Expr.h"

#include <algorithm>
#include <cstring>

namespace transept::search {

namespace {

Status refuse(const std::string &sentence) { return {Code::InvalidInput, sentence}; }

std::string quoted(const std::string &name) { return "'" + printable(name, 80) + "'"; }

/// Writes integers as the input's own type.
Status fillIntegers(std::vector<uint8_t> &bytes, const std::string &name, DType dtype,
                    const std::vector<int64_t> &values) {
  int64_t size = dtypeSize(dtype);
  bytes.resize(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    uint8_t *to = bytes.data() + i * size;
    switch (dtype) {
    case program::I64:
      std::memcpy(to, &values[i], 8);
      break;
    case program::I32: {
      int32_t narrow = static_cast<int32_t>(values[i]);
      std::memcpy(to, &narrow, 4);
      break;
    }
    case program::F32: {
      float number = static_cast<float>(values[i]);
      std::memcpy(to, &number, 4);
      break;
    }
    case program::BOOL:
    case program::U8:
    case program::I8:
      *to = static_cast<uint8_t>(values[i]);
      break;
    default:
      return refuse("the encoder's input " + quoted(name) + " is of type " + dtypeName(dtype) +
                    "; give it with 'inputs'");
    }
  }
  return Status::success();
}

int64_t constantOf(const program::Expr &expr) {
  if (!isConstant(expr))
    return 0;
  Result<int64_t> value = evaluateExpr(expr, {});
  return value.ok() ? *value : 0;
}

std::string shapeText(const std::vector<int64_t> &dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

} // namespace

Result<EncoderInputs> EncoderInputs::create(const program::Manifest &manifest) {
  EncoderInputs inputs;
  inputs.generation_ = &manifest.generation();
  if (manifest.generation().encode().empty() && manifest.generation().kind() == "decoder")
    return inputs;
  for (const program::Entry &entry : manifest.entries())
    if (entry.name() == manifest.generation().encode())
      inputs.entry_ = &entry;
  if (!inputs.entry_)
    return Status(Code::ArtifactRefused, "the artifact has no entry " + quoted(manifest.generation().encode()));
  inputs.main_ = inputs.find(manifest.generation().encoder_input());
  if (!inputs.main_ || inputs.main_->dims_size() < 1)
    return Status(Code::ArtifactRefused, "the encoder has no input " + quoted(manifest.generation().encoder_input()));
  inputs.mask_ = inputs.find(manifest.generation().encoder_mask());
  inputs.lengths_ = inputs.find(manifest.generation().encoder_lengths());
  inputs.fixedBatch_ = constantOf(inputs.main_->dims(0));
  if (inputs.takesIds())
    inputs.fixedLength_ = constantOf(inputs.main_->dims(1));
  return inputs;
}

const program::Buffer *EncoderInputs::find(std::string_view name) const {
  for (const program::Buffer &buffer : entry_->buffers())
    if (buffer.storage() == program::INPUT && buffer.name() == name && !name.empty())
      return &buffer;
  return nullptr;
}

bool EncoderInputs::takesIds() const {
  return main_ && main_->dims_size() == 2 && (main_->dtype() == program::I64 || main_->dtype() == program::I32);
}

int64_t EncoderInputs::length(const Source &source) const {
  if (!any())
    return 0;
  if (source.tensors.empty())
    return static_cast<int64_t>(source.ids.size());
  for (const SourceTensor &tensor : source.tensors)
    if (const program::Buffer *buffer = find(tensor.name))
      for (int d = 0; d < buffer->dims_size() && d < static_cast<int>(tensor.dims.size()); ++d)
        if (int64_t symbol = plainSymbol(buffer->dims(d)); symbol >= 0 && entry_->symbols(symbol).name() == "source")
          return tensor.dims[d];
  return 0;
}

int64_t EncoderInputs::tokens(const Source &source) const {
  for (const SourceTensor &tensor : source.tensors) {
    if (!mask_ || tensor.name != mask_->name() || dtypeSize(tensor.dtype) < 1)
      continue;
    int64_t shown = 0, size = dtypeSize(tensor.dtype);
    for (size_t at = 0; at + static_cast<size_t>(size) <= tensor.bytes.size(); at += static_cast<size_t>(size)) {
      bool set = std::any_of(tensor.bytes.begin() + at, tensor.bytes.begin() + at + size, [](uint8_t b) { return b; });
      shown += set != generation_->encoder_mask_marks_padding();
    }
    return shown;
  }
  return length(source);
}

std::string EncoderInputs::shapeKey(const Source &source) const {
  if (!any())
    return {};
  if (source.tensors.empty())
    return pads() || fixedLength_ ? "ids" : "ids " + std::to_string(source.ids.size());
  std::string key;
  for (const SourceTensor &tensor : source.tensors)
    key += tensor.name + " " + shapeText(tensor.dims) + ";";
  return key;
}

Status EncoderInputs::check(const Source &source) const {
  std::string name = quoted(main_->name());
  if (source.tensors.empty()) {
    if (!takesIds())
      return refuse("the encoder takes " + name + " of type " + dtypeName(main_->dtype()) + " and rank " +
                    std::to_string(main_->dims_size()) + ", not token ids; give an .npz file with 'inputs'");
    if (source.ids.empty())
      return refuse("'input_ids' is empty");
    int64_t length = static_cast<int64_t>(source.ids.size());
    if (fixedLength_ && (length > fixedLength_ || (length < fixedLength_ && !pads())))
      return {Code::LimitExceeded, "the input has " + std::to_string(length) + " tokens, the model was exported for " +
                                       (pads() ? "at most " : "exactly ") + std::to_string(fixedLength_)};
    for (const program::Buffer &buffer : entry_->buffers())
      if (buffer.storage() == program::INPUT && &buffer != main_ && &buffer != mask_ && &buffer != lengths_ &&
          !buffer.has_default())
        return refuse("the encoder needs " + quoted(buffer.name()) + " too; give an .npz file with 'inputs'");
    return Status::success();
  }
  bool hasMain = false;
  for (const SourceTensor &tensor : source.tensors) {
    const program::Buffer *buffer = find(tensor.name);
    if (!buffer)
      return refuse("the encoder has no input " + quoted(tensor.name) + "; its main input is " + name);
    hasMain = hasMain || buffer == main_;
    if (tensor.dtype != buffer->dtype())
      return refuse("input " + quoted(tensor.name) + " is of type " + dtypeName(tensor.dtype) + ", the encoder takes " +
                    dtypeName(buffer->dtype()));
    bool fits =
        static_cast<int>(tensor.dims.size()) == buffer->dims_size() && !tensor.dims.empty() && tensor.dims[0] == 1;
    if (!fits)
      return refuse("input " + quoted(tensor.name) + " has shape " + shapeText(tensor.dims) +
                    "; a request holds one source, shape [1, ...] of rank " + std::to_string(buffer->dims_size()));
  }
  return hasMain ? Status::success() : refuse("'inputs' lacks the encoder's main input " + name);
}

void EncoderInputs::fillMask(std::vector<uint8_t> &bytes, Span<const Source *const> sources, int64_t batch,
                             int64_t length) const {
  std::vector<int64_t> marks(batch * length);
  for (int64_t slot = 0; slot < batch; ++slot) {
    const Source &source = *sources[slot < static_cast<int64_t>(sources.size()) ? slot : 0];
    int64_t real = source.tensors.empty() ? static_cast<int64_t>(source.ids.size()) : length;
    for (int64_t i = 0; i < length; ++i)
      marks[slot * length + i] = (i < real) != generation_->encoder_mask_marks_padding();
  }
  // Types without a mark were refused before.
  (void)fillIntegers(bytes, mask_->name(), mask_->dtype(), marks);
}

Result<RunArguments> EncoderInputs::assemble(Span<const Source *const> sources, int64_t batch, int64_t length) {
  if (!any())
    return RunArguments();
  const Source &first = *sources[0];
  inputs_.clear();
  auto slotOf = [&](int64_t slot) -> const Source & {
    return *sources[slot < static_cast<int64_t>(sources.size()) ? slot : 0];
  };
  if (first.tensors.empty()) {
    std::vector<int64_t> ids(batch * length, generation_->encoder_pad_id());
    for (int64_t slot = 0; slot < batch; ++slot)
      std::copy(slotOf(slot).ids.begin(), slotOf(slot).ids.end(), ids.begin() + slot * length);
    Input &input = inputs_.emplace_back(Input{main_->name(), main_->dtype(), {batch, length}, {}});
    TRANSEPT_TRY(fillIntegers(input.bytes, input.name, input.dtype, ids));
  } else {
    for (size_t i = 0; i < first.tensors.size(); ++i) {
      Input &input =
          inputs_.emplace_back(Input{first.tensors[i].name, first.tensors[i].dtype, first.tensors[i].dims, {}});
      input.dims[0] = batch;
      for (int64_t slot = 0; slot < batch; ++slot) {
        const std::vector<uint8_t> &bytes = slotOf(slot).tensors[i].bytes;
        input.bytes.insert(input.bytes.end(), bytes.begin(), bytes.end());
      }
    }
    length = this->length(first);
  }
  auto given = [&](const program::Buffer *buffer) {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const Input &input) { return buffer && input.name == buffer->name(); });
  };
  if (lengths_ && !given(lengths_)) {
    std::vector<int64_t> lengths;
    for (int64_t slot = 0; slot < batch; ++slot)
      lengths.push_back(first.tensors.empty() ? static_cast<int64_t>(slotOf(slot).ids.size()) : length);
    Input &input = inputs_.emplace_back(Input{lengths_->name(), lengths_->dtype(), {batch}, {}});
    TRANSEPT_TRY(fillIntegers(input.bytes, input.name, input.dtype, lengths));
  }
  if (mask_ && !given(mask_)) {
    Input &input = inputs_.emplace_back(Input{mask_->name(), mask_->dtype(), {batch, length}, {}});
    const std::vector<int64_t> probe(1); // refuses a type without marks
    TRANSEPT_TRY(fillIntegers(input.bytes, input.name, input.dtype, probe));
    fillMask(input.bytes, sources, batch, length);
  }
  RunArguments arguments;
  for (const Input &input : inputs_)
    arguments.inputs.push_back(
        {input.name, input.dtype, input.dims, input.bytes.data(), static_cast<int64_t>(input.bytes.size())});
  return arguments;
}

} // namespace transept::search
