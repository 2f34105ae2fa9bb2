// What the module says of parameters that training quantizes.
#ifndef DEEPSTRIDE_DIALECTS_DS_QUANTIZED_H
#define DEEPSTRIDE_DIALECTS_DS_QUANTIZED_H

#include "llvm/ADT/StringRef.h"

namespace deepstride::ds {
// Of the module: by parameter, the number of its block, whose width calls are given.
inline constexpr llvm::StringLiteral quantizedAttr = "ds.quantized";
} // namespace deepstride::ds

#endif
