// The graph of a model without the tensors that training changes: what a package keeps so that a trained model can be
// written as ONNX again, with its names and layouts.
#ifndef FRONTENDS_ONNX_READER_TRAINEDGRAPH_H
#define FRONTENDS_ONNX_READER_TRAINEDGRAPH_H

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace deepstride::onnx {

/// A linear layer that the model gets: output `head` = OUTPUT x head.weight + head.bias.
struct AddedHead {
  std::string output; // empty: none
  int64_t classes = 0, features = 0;
};

/// The model of a file as a ModelProto in which the tensors of these names (initializers, or values of Constant nodes,
/// of the main graph) have no data; that of other tensors in external files is inside. Fails where a name is none of
/// these, where a file cannot be read, or where what is left exceeds 2 GiB.
llvm::Expected<std::string> graphWithout(const std::string &path, const std::vector<std::string> &names,
                                         const AddedHead &head = {});

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_TRAINEDGRAPH_H
