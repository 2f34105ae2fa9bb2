// Outputs of a call that go into memory of the caller's.
#ifndef DEEPSTRIDE_RUNTIME_API_CALLERBUFFERS_H
#define DEEPSTRIDE_RUNTIME_API_CALLERBUFFERS_H

#include "runtime/api/Internal.h"

namespace ds::api {

class CallerBuffers {
public:
  // Throws Error(InvalidArgument) for buffers that name no output or the same one twice, Error(ShapeMismatch) for wrong
  // types. `where` begins messages.
  CallerBuffers(const std::string &where, const std::vector<TensorInfo> &outputs, const ds_tensor *buffers,
                size_t count);

  bool areAll() const; // a buffer for each output

  // Throws Error(InvalidArgument) where a buffer overlaps an input, another buffer, or a tensor that the outputs own.
  void requireApart(const std::vector<TensorView> &inputs, const std::vector<TensorInfo> &infos,
                    const ds_outputs &outputs) const;

  // Before the call: puts the buffers into the set, or memory that is aligned in the place of those that are not.
  void lend(OutputSet &set) const;
  // After it: copies what is not there yet, and makes the set's tensors those of the caller.
  void fill(OutputSet &set) const;

private:
  struct Buffer {
    bool isGiven = false;
    TensorView view;
    void *data = nullptr; // of the view, to be written
  };

  std::string text(size_t output) const; // "entry 'main': the buffer of output 'y'"

  const std::string &where;
  const std::vector<TensorInfo> &outputs;
  std::vector<Buffer> buffers; // one per output
};

} // namespace ds::api

#endif
