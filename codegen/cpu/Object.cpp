// LLVM's passes and code generator, and lld as a subprocess.
#include "codegen/cpu/Object.h"

#include "codegen/cpu/LoopWeights.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"

namespace deepstride {

/// LLVM's machine combiner adds up products before it adds them to a sum of integers, to shorten the chain. Tiles have
/// as many chains as the units need, and no register left for such sums: these would be spilled, and half of the time
/// with them.
static void leaveChains() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (llvm::cl::Option *combiner = llvm::cl::getRegisteredOptions().lookup("x86-machine-combiner"))
      combiner->addOccurrence(0, combiner->ArgStr, "false");
  });
}

static std::unique_ptr<llvm::TargetMachine> machineFor(const CpuTarget &target, bool optimize, std::string &error) {
  leaveChains();
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, target.level, target.extensions, options, llvm::Reloc::PIC_, std::nullopt,
                                 optimize ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::Less));
}

bool prepareModule(llvm::Module &module, const CpuTarget &target, std::string &error) {
  auto machine = machineFor(target, true, error);
  if (!machine)
    return false;
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", target.level);
      if (!target.extensions.empty())
        function.addFnAttr("target-features", target.extensions);
      function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
      // Registers are spilled to whole lines; the allocator decides too late that it would need that.
      if (target.vectorBits > 128)
        function.addFnAttr("stackrealign");
      function.addFnAttr(llvm::Attribute::NoUnwind);
      if (target.sanitize)
        function.addFnAttr(llvm::Attribute::SanitizeAddress);
      // A function of libm is called, not replaced by another one with other bits: constants were folded by the same.
      for (llvm::Instruction &instruction : llvm::instructions(function))
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
          if (llvm::Function *called = call->getCalledFunction();
              called && called->isDeclaration() && !called->isIntrinsic())
            call->addFnAttr(llvm::Attribute::NoBuiltin);
    }
  return true;
}

/// The lane that a mask of constants selects, where it selects exactly one.
static std::optional<unsigned> onlyLane(llvm::Value *mask) {
  auto *lanes = llvm::dyn_cast<llvm::Constant>(mask);
  auto *type = llvm::cast<llvm::FixedVectorType>(mask->getType());
  std::optional<unsigned> only;
  for (unsigned i = 0; lanes && i < type->getNumElements(); ++i) {
    llvm::Constant *lane = lanes->getAggregateElement(i);
    if (lane && lane->isZeroValue())
      continue;
    if (!lane || !lane->isOneValue() || only)
      return std::nullopt;
    only = i;
  }
  return only;
}

/// Masked stores of one known lane become scalar stores. LLVM 22 does the same later, but takes a truncated vector for
/// the wider one that it was (in combineMaskedStore, for AVX-512's truncating stores): i16 is stored as i32, over its
/// neighbour.
static void storeOnlyLanes(llvm::Module &module) {
  llvm::SmallVector<llvm::IntrinsicInst *> stores;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
          call && call->getIntrinsicID() == llvm::Intrinsic::masked_store)
        stores.push_back(call);
  for (llvm::IntrinsicInst *call : stores)
    if (auto lane = onlyLane(call->getArgOperand(2))) {
      llvm::IRBuilder<> b(call);
      llvm::Value *vector = call->getArgOperand(0);
      llvm::Type *element = vector->getType()->getScalarType();
      llvm::Value *place = b.CreateConstInBoundsGEP1_64(element, call->getArgOperand(1), *lane);
      b.CreateAlignedStore(b.CreateExtractElement(vector, *lane), place,
                           llvm::Align(element->getScalarSizeInBits() / 8));
      call->eraseFromParent();
    }
}

/// Kernels arrive as loops over vectors, unrolled and inlined where that pays (ConvertDsToLinalg, micro-kernels): what
/// is left for LLVM are values computed twice and what loops repeat. Its default pipeline takes three times as long,
/// most of it for bounds of loops that it then neither unrolls nor vectorizes.
constexpr llvm::StringLiteral kernelPasses =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-simplifycfg,licm,loop-rotate,licm),simplifycfg,instcombine<no-verify-fixpoint>,gvn,dse,"
    "loop-mssa(licm),instcombine<no-verify-fixpoint>,simplifycfg,loop-sink,div-rem-pairs)";

bool emitObject(llvm::Module &module, const CpuTarget &target, bool optimize, const std::string &path,
                std::string &error) {
  auto machine = machineFor(target, optimize, error);
  if (!machine)
    return false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager pipeline;
  llvm::cantFail(builder.parsePassPipeline(pipeline, kernelPasses));
  if (target.sanitize)
    pipeline.addPass(llvm::AddressSanitizerPass(llvm::AddressSanitizerOptions()));
  pipeline.run(module, modules);
  storeOnlyLanes(module);
  weighLoops(module, functions);

  std::error_code code;
  llvm::raw_fd_ostream stream(path, code, llvm::sys::fs::OF_None);
  if (code) {
    error = "cannot write '" + path + "': " + code.message();
    return false;
  }
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "LLVM cannot emit object files for this target";
    return false;
  }
  emission.run(module);
  stream.close();
  if (stream.has_error()) {
    error = "cannot write '" + path + "': " + stream.error().message();
    stream.clear_error();
    return false;
  }
  return true;
}

std::string findLinker() {
  // An installation that brings its linker along, such as the Python wheel, uses it.
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  llvm::SmallString<256> own(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(own, "ld.lld");
  if (llvm::sys::fs::can_execute(own))
    return std::string(own);
  auto linker = llvm::sys::findProgramByName("ld.lld", {"/usr/lib/llvm-22/bin"});
  if (!linker)
    linker = llvm::sys::findProgramByName("ld.lld-22");
  return linker ? *linker : "";
}

bool linkShared(const std::vector<std::string> &objects, const CpuTarget &target, const std::string &path,
                std::string &error) {
  std::string linker = findLinker();
  if (linker.empty()) {
    error = "cannot find ld.lld (Debian package lld-22)";
    return false;
  }
  std::vector<std::string> arguments = {linker,
                                        "-shared",
                                        "-z",
                                        target.sanitize ? "undefs" : "defs",
                                        "--build-id=none",
                                        "--hash-style=gnu",
                                        "-O1",
                                        "--gc-sections",
                                        "-s",
                                        "-o",
                                        path};
  arguments.insert(arguments.end(), objects.begin(), objects.end());
  arguments.insert(arguments.end(), {"-L/lib/x86_64-linux-gnu", "-L/usr/lib/x86_64-linux-gnu", "-L/lib64",
                                     "-L/usr/lib64", "-l:libm.so.6", "-l:libc.so.6"});
  std::vector<llvm::StringRef> views(arguments.begin(), arguments.end());
  std::string log = path + ".log"; // beside the result: one folder to remove, whatever happens
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  int result = llvm::sys::ExecuteAndWait(linker, views, std::nullopt, redirects, 0, 0, &error);
  if (result != 0) {
    if (auto text = llvm::MemoryBuffer::getFile(log))
      error = "linking failed: " + (*text)->getBuffer().take_until([](char c) { return c == '\n'; }).str();
  }
  (void)llvm::sys::fs::remove(log);
  return result == 0;
}

} // namespace deepstride
