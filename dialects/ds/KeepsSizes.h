// The trait of ops outside the ds dialect that hand on one tensor: their first result has the facts of their first
// operand. The start and the wait of a collective carry it.
#ifndef DEEPSTRIDE_DIALECTS_DS_KEEPSSIZES_H
#define DEEPSTRIDE_DIALECTS_DS_KEEPSSIZES_H

#include "mlir/IR/OpDefinition.h"

namespace deepstride::ds {

template <typename ConcreteType> class KeepsSizes : public mlir::OpTrait::TraitBase<ConcreteType, KeepsSizes> {};

} // namespace deepstride::ds

#endif
