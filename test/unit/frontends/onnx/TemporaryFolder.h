// What the tests of the reader share: a folder that goes away, and models written into it.

#ifndef TEST_UNIT_FRONTENDS_ONNX_TEMPORARYFOLDER_H
#define TEST_UNIT_FRONTENDS_ONNX_TEMPORARYFOLDER_H

#include "frontends/onnx/reader/Import.h"
#include "frontends/onnx/reader/ModelFile.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdlib.h>

namespace deepstride::onnx {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = testing::TempDir() + "ds-onnx-XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(folder); }

  std::string operator/(const std::string &name) const { return (folder / name).string(); }

  std::string write(const std::string &name, const std::string &bytes) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return *this / name;
  }

  std::string write(const std::string &name, const ::onnx::ModelProto &model) const {
    return write(name, model.SerializeAsString());
  }

  std::filesystem::path folder;
};

/// A model of IR version 10 and opset 21 whose node `y = Identity(w)` uses an initializer `w`.
inline ::onnx::ModelProto modelWithInitializer(int type, std::vector<int64_t> dims) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  ::onnx::GraphProto &graph = *model.mutable_graph();
  ::onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(type);
  for (int64_t dim : dims)
    tensor.add_dims(dim);
  ::onnx::NodeProto &node = *graph.add_node();
  node.set_op_type("Identity");
  node.add_input("w");
  node.add_output("y");
  graph.add_output()->set_name("y");
  return model;
}

inline ::onnx::TensorProto &initializerOf(::onnx::ModelProto &model) {
  return *model.mutable_graph()->mutable_initializer(0);
}

/// Where the reader finds the elements of the first initializer; its message where it does not.
struct Located {
  TensorData data;
  std::string error;
};

inline Located locate(const std::string &path) {
  ImportLimits limits;
  auto file = ModelFile::load(path, limits);
  if (!file)
    return {{}, llvm::toString(file.takeError())};
  auto data = (*file)->locate((*file)->model().graph().initializer(0));
  if (!data)
    return {{}, llvm::toString(data.takeError())};
  return {std::move(*data), ""};
}

/// Imports a model. Empty where that works, else the only diagnostic, which is one line.
inline std::string importError(const std::string &path, const ImportLimits &limits = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::vector<std::string> messages;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    messages.push_back(describeLocation(diagnostic.getLocation()) + ": " + diagnostic.str());
    return mlir::success();
  });
  bool failed = mlir::failed(importOnnx(path, context, limits));
  EXPECT_EQ(messages.size(), failed ? 1u : 0u);
  std::string message = messages.empty() ? "" : messages.front();
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

inline void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "found: " << text << "\nexpected: " << part;
}

} // namespace deepstride::onnx

#endif // TEST_UNIT_FRONTENDS_ONNX_TEMPORARYFOLDER_H
