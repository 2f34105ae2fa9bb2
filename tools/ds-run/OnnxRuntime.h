// The same model in ONNX Runtime, in a Python of the user's: a child process, so that ds-run needs neither.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_ONNXRUNTIME_H
#define DEEPSTRIDE_TOOLS_DS_RUN_ONNXRUNTIME_H

#include "runtime/core/Tensor.h"

#include <string>
#include <vector>

namespace ds {

// The outputs of a model, and these values of it, for inputs by name. DS_PYTHON names the Python, else it is python3.
// Throws Error with one line: what is missing, or what ONNX Runtime says. For processes of one thread. Leaves no files.
std::vector<NamedTensor> runOnnxRuntime(const std::string &model, const std::vector<NamedView> &inputs,
                                        const std::vector<std::string> &values);

} // namespace ds
#endif
