#include "runtime/api/CallerBuffers.h"

namespace ds::api {
namespace {

bool isAligned(const void *data) { return reinterpret_cast<uintptr_t>(data) % 64 == 0; }

bool overlap(const void *a, size_t aBytes, const void *b, size_t bBytes) {
  auto aBegin = reinterpret_cast<uintptr_t>(a), bBegin = reinterpret_cast<uintptr_t>(b);
  return aBytes != 0 && bBytes != 0 && aBegin < bBegin + bBytes && bBegin < aBegin + aBytes;
}

} // namespace

CallerBuffers::CallerBuffers(const std::string &where, const std::vector<TensorInfo> &outputs, const ds_tensor *given,
                             size_t count)
    : where(where), outputs(outputs), buffers(outputs.size()) {
  std::vector<std::string> names;
  for (const TensorInfo &info : outputs)
    names.push_back(info.name);
  for (size_t i = 0; i < count; ++i) {
    TensorView view = annotated(where, [&] { return viewOf(given[i], concat("buffer ", i)); });
    size_t at = i;
    if (given[i].name)
      at = static_cast<size_t>(std::find(names.begin(), names.end(), given[i].name) - names.begin());
    if (at >= outputs.size())
      fail(ErrorCode::InvalidArgument, where, ": buffer ", i, ": no output '", given[i].name ? given[i].name : "",
           "', expected one of ", listText(names), ", or null to go by position");
    if (buffers[at].isGiven)
      fail(ErrorCode::InvalidArgument, text(at), " is given twice");
    if (view.type != outputs[at].type)
      fail(ErrorCode::ShapeMismatch, text(at), ": wrong type, found ", typeName(view.type), ", expected ",
           typeName(outputs[at].type));
    size_t bytes = annotated(text(at), [&] { return view.bytes(); });
    if (!view.data && bytes != 0)
      fail(ErrorCode::InvalidArgument, text(at), ": data is null");
    buffers[at] = {true, std::move(view), given[i].data};
  }
}

std::string CallerBuffers::text(size_t output) const {
  return where + ": the buffer of output '" + outputs[output].name + "'";
}

bool CallerBuffers::areAll() const {
  return std::all_of(buffers.begin(), buffers.end(), [](const Buffer &buffer) { return buffer.isGiven; });
}

void CallerBuffers::requireApart(const std::vector<TensorView> &inputs, const std::vector<TensorInfo> &infos,
                                 const ds_outputs &kept) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].isGiven)
      continue;
    auto require = [&](const void *data, size_t bytes, const std::string &what) {
      if (overlap(buffers[i].data, buffers[i].view.bytes(), data, bytes))
        fail(ErrorCode::InvalidArgument, text(i), " overlaps ", what);
    };
    for (size_t k = 0; k < inputs.size(); ++k) {
      std::string name = k < infos.size() ? infos[k].name : concat(k);
      require(inputs[k].data, annotated("input '" + name + "'", [&] { return inputs[k].bytes(); }),
              "input '" + name + "'");
    }
    for (size_t k = i + 1; k < buffers.size(); ++k)
      if (buffers[k].isGiven)
        require(buffers[k].data, buffers[k].view.bytes(), "that of output '" + outputs[k].name + "'");
    for (const OutputSet *set : {&kept.current, &kept.spare})
      for (const Tensor &tensor : set->tensors)
        if (!tensor.isBorrowed())
          require(tensor.data(), tensor.bytes(), "outputs of an earlier call");
  }
}

void CallerBuffers::lend(OutputSet &set) const {
  set.views.clear();
  set.tensors.resize(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    if (buffer.isGiven && !isAligned(buffer.data)) {
      auto aligned = std::make_shared<AlignedBuffer>(buffer.view.bytes());
      set.tensors[i] = Tensor::over(buffer.view.type, buffer.view.shape, aligned->data(), aligned);
    } else if (buffer.isGiven) {
      set.tensors[i] = Tensor::over(buffer.view.type, buffer.view.shape, buffer.data);
    } else if (set.tensors[i].isBorrowed()) { // of an earlier call, whose caller may have freed it
      set.tensors[i] = Tensor();
    }
  }
}

void CallerBuffers::fill(OutputSet &set) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    if (!buffer.isGiven)
      continue;
    if (set.tensors[i].data() != buffer.data && set.tensors[i].bytes() != 0)
      std::memcpy(buffer.data, set.tensors[i].data(), set.tensors[i].bytes());
    set.tensors[i] = Tensor::over(buffer.view.type, buffer.view.shape, buffer.data);
  }
}

} // namespace ds::api
