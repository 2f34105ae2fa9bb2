#include "frontends/onnx/convert/Registry.h"
namespace deepstride::onnx {
void addSequences(PatternRegistry &) {}
} // namespace deepstride::onnx
