// How often loops are said to run, for LLVM's register allocator.
#ifndef DEEPSTRIDE_CODEGEN_CPU_LOOPWEIGHTS_H
#define DEEPSTRIDE_CODEGEN_CPU_LOOPWEIGHTS_H

#include "llvm/IR/PassManager.h"

namespace deepstride {

/// In functions with tiles of products, says of all other loops that they run a few times, by the branch weights of
/// their latches. LLVM guesses from nesting alone, so that a gather five loops deep looks hotter than the tile four
/// loops deep that it feeds: constants of the one keep registers that the other needs, whose sums are spilled.
void weighLoops(llvm::Module &module, llvm::FunctionAnalysisManager &functions);

} // namespace deepstride

#endif
