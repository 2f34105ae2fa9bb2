#include "frontends/onnx/dialect/StatedTypes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace deepstride::onnx {

bool contradict(Type stated, Type found) {
  auto left = dyn_cast<TensorType>(stated), right = dyn_cast<TensorType>(found);
  if (!left || !right)
    return false;
  if (left.getElementType() != right.getElementType())
    return true;
  if (!left.hasRank() || !right.hasRank())
    return false;
  return left.getRank() != right.getRank() ||
         llvm::any_of(llvm::zip_equal(left.getShape(), right.getShape()), [](auto sizes) {
           auto [a, b] = sizes;
           return a != b && !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b);
         });
}

std::string describeTensor(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor) {
    os << type;
    return text;
  }
  os << tensor.getElementType();
  if (!tensor.hasRank())
    return text;
  os << "[";
  llvm::interleaveComma(tensor.getShape(), os, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      os << "?";
    else
      os << size;
  });
  os << "]";
  return text;
}

} // namespace deepstride::onnx
