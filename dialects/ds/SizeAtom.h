// What an atom of a size expression holds. Only the files that implement expressions see it.
#ifndef DEEPSTRIDE_DIALECTS_DS_SIZEATOM_H
#define DEEPSTRIDE_DIALECTS_DS_SIZEATOM_H

#include "dialects/ds/SizeExpr.h"

namespace deepstride {

struct SizeAtom::Node {
  Kind kind;
  std::string name;
  int64_t index;
  std::vector<SizeExpr> arguments;
  std::string text;
  SizeRange range;
  bool isNonNegative, isOverElements, mayFail;
  unsigned depth; // of nested calls
};

} // namespace deepstride

#endif
