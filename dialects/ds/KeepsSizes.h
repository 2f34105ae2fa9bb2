// Traits by which ops outside the ds dialect say what the size analysis may know of their values.
#ifndef DEEPSTRIDE_DIALECTS_DS_KEEPSSIZES_H
#define DEEPSTRIDE_DIALECTS_DS_KEEPSSIZES_H

#include "mlir/IR/OpDefinition.h"

namespace deepstride::ds {

/// Ops that hand on one tensor: the first result has the facts of the first operand. The start and the wait of a
/// collective carry it.
template <typename ConcreteType> class KeepsSizes : public mlir::OpTrait::TraitBase<ConcreteType, KeepsSizes> {};

/// Ops with one block whose arguments are the operands. There is one result for each of the first operands, of its type
/// and sizes, and the arguments of these vary: they have the operands' sizes, not their elements. Gradients carry it.
template <typename ConcreteType> class BindsOperands : public mlir::OpTrait::TraitBase<ConcreteType, BindsOperands> {};

} // namespace deepstride::ds

#endif
