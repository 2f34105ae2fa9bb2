// Writes a trained model as ONNX: the graph that its package keeps, with the tensors of a checkpoint.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_EXPORTONNX_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_EXPORTONNX_H

#include "runtime/core/Package.h"
#include "runtime/core/Tensor.h"
#include "tools/ds-run/training/CodesOnnx.h"

#include <string>
#include <vector>

namespace ds {

// Tensors are found by name and converted to the graph's types. Models of more than 2 GiB get a file OUT.onnx.data
// beside them. Complete under its name or not there at all. Throws Error where the package keeps no graph, or a tensor
// that the graph lacks data for is not given or has another shape. Tensors that have codes are stored as these.
void exportOnnx(const Package &package, const std::vector<NamedView> &tensors, const std::string &path,
                const std::map<std::string, Codes> &quantized = {});

// The operator of a node of the package's graph, by the name that its kernels know it by; empty without such a node.
std::string operatorOf(const Package &package, const std::string &node);

} // namespace ds
#endif
