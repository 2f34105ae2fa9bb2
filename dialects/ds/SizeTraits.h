// Traits by which ops outside the ds dialect say what the size analysis may know of their values.
#ifndef DEEPSTRIDE_DIALECTS_DS_SIZETRAITS_H
#define DEEPSTRIDE_DIALECTS_DS_SIZETRAITS_H

#include "mlir/IR/OpDefinition.h"

namespace deepstride::ds {

/// Ops that state the sizes of their results in `result_sizes`, a list for each. Where it is absent, the one result has
/// the sizes of the first operand of the op that defines the first operand: the wait of a collective, and its start.
template <typename ConcreteType> class StatesSizes : public mlir::OpTrait::TraitBase<ConcreteType, StatesSizes> {};

/// Ops with one block whose arguments are the operands. There is one result for each of the first operands, of its type
/// and sizes, and the arguments of these vary: they have the operands' sizes, not their elements. Gradients carry it.
template <typename ConcreteType> class BindsOperands : public mlir::OpTrait::TraitBase<ConcreteType, BindsOperands> {};

} // namespace deepstride::ds

#endif
