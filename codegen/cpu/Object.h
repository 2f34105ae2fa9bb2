// From LLVM IR to a shared object.
#ifndef DEEPSTRIDE_CODEGEN_CPU_OBJECT_H
#define DEEPSTRIDE_CODEGEN_CPU_OBJECT_H

#include "codegen/cpu/Target.h"
#include "llvm/IR/Module.h"

namespace deepstride {

/// Sets triple, data layout and per-function CPU attributes; call before optimizing.
bool prepareModule(llvm::Module &module, const CpuTarget &target, std::string &error);
/// Optimizes the module and writes it as an object file.
bool emitObject(llvm::Module &module, const CpuTarget &target, bool optimize, const std::string &path,
                std::string &error);
/// The path of ld.lld: the one beside this program, else Debian's; empty where there is none.
std::string findLinker();
/// Links objects into a shared object that exports ds_package_query and needs libc and libm only; for a target that
/// sanitizes, what the process offers, too.
bool linkShared(const std::vector<std::string> &objects, const CpuTarget &target, const std::string &path,
                std::string &error);

} // namespace deepstride

#endif
