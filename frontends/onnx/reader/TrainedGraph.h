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

/// A weight that training changes, by the importer's name.
struct LearnedTensor {
  std::string name;
  std::string of; // the parameter that it is, after ties: its own name, or that of another weight
  bool isTransposed = false;
};

struct KeptGraph {
  std::string bytes;  // of a ModelProto; empty where it is too large
  std::string excess; // what is too large for one
};

/// The model of a file without the data of these tensors, which say by `parameterKey` whose data they are to get;
/// the data of other tensors in external files is inside. Fails where an exported model could not hold what is learned:
/// where a name belongs to no tensor of the file or to several, and where one tensor has several values.
llvm::Expected<KeptGraph> graphWithout(const std::string &path, const std::vector<LearnedTensor> &learned,
                                       const AddedHead &head = {});

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_TRAINEDGRAPH_H
