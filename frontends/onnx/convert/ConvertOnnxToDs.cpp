// The pass around convertOnnxToDs: parses its options.
#include "frontends/onnx/convert/Passes.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace deepstride::onnx {
#define GEN_PASS_DEF_CONVERTONNXTODS
#include "frontends/onnx/convert/Passes.h.inc"

namespace {
struct ConvertOnnxToDs : impl::ConvertOnnxToDsBase<ConvertOnnxToDs> {
  using ConvertOnnxToDsBase::ConvertOnnxToDsBase;

  void runOnOperation() override {
    ConversionOptions options;
    options.refusedOp = refusedOp;
    for (const std::string &pin : dims) {
      auto [name, text] = StringRef(pin).rsplit('=');
      int64_t value;
      bool isNumber = !text.getAsInteger(10, value);
      if (name.empty() || text.empty() || (isNumber && value < 0)) {
        emitError(getOperation().getLoc())
            << "option 'dim': expected NAME=VALUE with a value of at least 0, or NAME=NAME, found '" << pin << "'";
        return signalPassFailure();
      }
      if (isNumber)
        options.dims[name] = value;
      else
        options.same.join(name, text);
    }
    StringRef input; // the option is a list at commas: what has no name belongs to the input before
    for (const std::string &entry : shapes) {
      auto [name, size] =
          StringRef(entry).contains('=') ? StringRef(entry).rsplit('=') : std::pair(input, StringRef(entry));
      input = name;
      if (input.empty()) {
        emitError(getOperation().getLoc()) << "option 'shape': expected NAME=SIZE,SIZE,..., found '" << entry << "'";
        return signalPassFailure();
      }
      std::vector<std::string> &shape = options.shapes[input];
      if (!size.empty())
        shape.push_back(size.str());
    }
    if (failed(convertOnnxToDs(getOperation(), options)))
      signalPassFailure();
  }
};
} // namespace
} // namespace deepstride::onnx
