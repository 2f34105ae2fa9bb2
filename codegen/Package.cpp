// The order of work: plan entries, store constants, compile, describe; checksums last.
#include "codegen/Package.h"

#include "codegen/Checksums.h"
#include "codegen/EntryCode.h"
#include "codegen/Pipeline.h"
#include "codegen/cpu/Object.h"
#include "dialects/ds/Provenance.h"
#include "dialects/ds/Quantized.h"
#include "dialects/ds/RecipeEvaluator.h"
#include "dialects/ds/UnitAttrs.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "runtime/abi/ds_abi.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace deepstride {

PackageWriter::PackageWriter(std::string destination, PackageOptions options)
    : destination(std::move(destination)), options(std::move(options)) {}

LogicalResult PackageWriter::prepareFolder(Location where) {
  if (!folder.path().empty())
    return success();
  if (std::error_code code = folder.create(destination))
    return emitError(where) << "cannot write '" << destination << "': " << code.message();
  return success();
}

static std::string recipeText(ds::RecipeOp recipe) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Operation &op : recipe.getBody().front())
    op.print(stream, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs(1 << 20));
  return text;
}

static std::string layoutOf(ds::RecipeOp recipe) {
  auto pack = recipe.getYielded().getDefiningOp<ds::PackOp>();
  if (!pack)
    return "dense";
  std::string interleaved = pack.getInterleave() > 1 ? " by " + std::to_string(pack.getInterleave()) : "";
  bool isHalfByte = cast<RankedTensorType>(pack.getInput().getType()).getElementType().isInteger(4);
  return "panels(" + std::to_string(pack.getPanel()) + interleaved + (isHalfByte ? ", 4 bits)" : ")");
}

/// The manifest is JSON, whose text is UTF-8; MLIR's strings are bytes.
static LogicalResult verifyUtf8(ModuleOp program) {
  auto verify = [](Operation *op, StringRef text) {
    if (llvm::json::isUTF8(text))
      return WalkResult::advance();
    std::string found;
    llvm::raw_string_ostream os(found);
    llvm::printEscapedString(text, os);
    op->emitOpError("expected names in UTF-8, found '") << found << "'";
    return WalkResult::interrupt();
  };
  WalkResult result = program.walk([&](Operation *op) {
    if (WalkResult site = verify(op, siteOf(op->getLoc())); site.wasInterrupted())
      return site;
    return op->getAttrDictionary().walk([&](StringAttr attribute) { return verify(op, attribute.getValue()); });
  });
  return failure(result.wasInterrupted());
}

LogicalResult PackageWriter::storeConstants(ModuleOp program, std::vector<StoredConstant> &constants,
                                            llvm::StringMap<unsigned> &ids) {
  std::string path = folder.path() + "/weights.bin";
  std::error_code code;
  llvm::raw_fd_ostream file(path, code, llvm::sys::fs::CD_OpenAlways, llvm::sys::fs::FA_Write,
                            llvm::sys::fs::OF_Append);
  if (code)
    return emitError(program.getLoc()) << "cannot write '" << path << "': " << code.message();
  RecipeEvaluator evaluator;
  for (auto recipe : program.getOps<ds::RecipeOp>()) {
    StoredConstant &range = stored[recipeText(recipe)];
    if (range.name.empty()) {
      auto value = evaluator.evaluate(recipe);
      if (failed(value))
        return failure();
      // 64-byte alignment; the padding belongs to the range before it, so that checksums cover every byte.
      uint64_t aligned = llvm::alignTo(weightBytes, 64);
      file.write_zeros(static_cast<unsigned>(aligned - weightBytes));
      uint64_t bytes = static_cast<uint64_t>(value->bytes());
      file.write(value->data, bytes);
      weightBytes = aligned + bytes;
      range = {recipe.getSymName().str(),
               manifestType(value->element),
               layoutOf(recipe),
               aligned,
               bytes,
               std::vector<int64_t>(value->shape.begin(), value->shape.end())};
    }
    ids[recipe.getSymName()] = static_cast<unsigned>(constants.size());
    constants.push_back(range);
  }
  file.close();
  if (file.has_error()) {
    std::string reason = file.error().message();
    file.clear_error();
    return emitError(program.getLoc()) << "cannot write '" << path << "': " << reason;
  }
  return success();
}

LogicalResult PackageWriter::compile(ModuleOp program, const CpuTarget &target, bool reference,
                                     ArrayRef<std::pair<func::FuncOp, EntryPlan>> entries, StringRef codeFile) {
  // Entry functions are tensors and launches: they become LLVM IR directly, so only kernels are translated.
  OwningOpRef<ModuleOp> kernels(ModuleOp::create(program.getLoc()));
  for (auto function : llvm::to_vector(program.getOps<LLVM::LLVMFuncOp>()))
    function->moveBefore(kernels->getBody(), kernels->getBody()->end());
  registerBuiltinDialectTranslation(*program.getContext());
  registerLLVMDialectTranslation(*program.getContext());
  llvm::LLVMContext context;
  auto module = translateModuleToLLVMIR(*kernels, context, "deepstride");
  if (!module)
    return failure();
  for (llvm::Function &function : *module)
    if (!function.isDeclaration())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  SmallVector<std::pair<std::string, llvm::Function *>> points;
  for (const auto &[function, plan] : entries) {
    auto entry = emitEntry(*module, function, plan);
    if (failed(entry))
      return failure();
    points.push_back({plan.name, *entry});
  }
  emitPackageQuery(*module, points);

  std::string error, object = folder.path() + "/" + codeFile.str() + ".o";
  bool written = prepareModule(*module, target, error) && emitObject(*module, target, !reference, object, error) &&
                 linkShared({object}, target, folder.path() + "/" + codeFile.str(), error);
  (void)llvm::sys::fs::remove(object);
  if (!written)
    return emitError(program.getLoc()) << error;
  return success();
}

/// What lowering recorded on the functions that were kernels.
static KernelTable kernelTable(ModuleOp kernels) {
  KernelTable table;
  for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr("ds.grid"))
      continue;
    KernelFacts &facts = table[function.getSymName()];
    facts.grid = *sizeFromAttribute(function->getAttr("ds.grid"));
    facts.grain = function->getAttrOfType<IntegerAttr>("ds.grain").getInt();
    facts.flops = *sizeFromAttribute(function->getAttr("ds.flops"));
    if (auto arithmetic = function->getAttrOfType<StringAttr>("ds.arithmetic"))
      facts.arithmetic = arithmetic.str();
    if (auto isElementwise = function->getAttrOfType<DenseBoolArrayAttr>("ds.elementwise"))
      facts.isElementwise.assign(isElementwise.asArrayRef().begin(), isElementwise.asArrayRef().end());
    if (Attribute scratch = function->getAttr("ds.scratch"))
      facts.scratch = *sizeFromAttribute(scratch);
    for (auto [name, list] : {std::pair("ds.reads", &facts.reads), std::pair("ds.writes", &facts.writes)})
      if (auto bytes = function->getAttrOfType<ArrayAttr>(name))
        for (Attribute part : bytes) // a unit stands for all of it
          list->push_back(sizeFromAttribute(part));
  }
  return table;
}

/// Sizes of one state that entries may name each in its own way; what is not known here is compared when they are
/// called.
static bool mayAgree(const SizeVector &a, const SizeVector &b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip_equal(a, b), [](const auto &pair) {
           const auto &[left, right] = pair;
           return !left.constant() || !right.constant() || left == right;
         });
}

/// States of one name are one state, in whichever entry: of one type, of sizes that may be the same in all of them, and
/// of one first value.
static LogicalResult checkStates(ModuleOp program, ArrayRef<std::pair<func::FuncOp, EntryPlan>> entries) {
  auto firstValue = [&](const EntryPlan::Tensor &state) {
    auto recipe = state.initial.empty() ? ds::RecipeOp() : program.lookupSymbol<ds::RecipeOp>(state.initial);
    return recipe ? recipeText(recipe) : std::string();
  };
  auto describe = [](const EntryPlan::Tensor &state) {
    return state.type + brief(state.shape) + (state.initial.empty() ? "" : " that begins with '" + state.initial + "'");
  };
  using Known = std::pair<const EntryPlan *, const EntryPlan::Tensor *>;
  llvm::StringMap<SmallVector<Known>> known;
  for (const auto &[function, plan] : entries)
    for (const EntryPlan::Tensor &state : plan.states) {
      for (auto [entry, other] : known[state.name])
        if (other->type != state.type || !mayAgree(other->shape, state.shape) ||
            firstValue(*other) != firstValue(state))
          return emitError(func::FuncOp(function).getLoc())
                 << "state '" << state.name << "' of entry '" << plan.name << "': expected " << describe(*other)
                 << ", as in entry '" << entry->name << "', found " << describe(state);
      known[state.name].push_back({&plan, &state});
    }
  return success();
}

LogicalResult PackageWriter::addVariant(ModuleOp program, const CpuTarget &target, bool reference,
                                        llvm::function_ref<void(ModuleOp)> lowered) {
  if (failed(prepareFolder(program.getLoc())))
    return failure();
  SmallVector<func::FuncOp> functions;
  for (auto function : program.getOps<func::FuncOp>())
    if (function->hasAttr(ds::entryAttr))
      functions.push_back(function);
  if (functions.empty())
    return emitError(program.getLoc()) << "expected a function marked ds.entry";
  if (failed(verifyUtf8(program)))
    return failure();
  if (auto judged = program->getAttrOfType<DictionaryAttr>(ds::trainingAttr)) {
    training = llvm::json::Object{{"labels", judged.getAs<StringAttr>("labels").getValue()},
                                  {"ignored_label", judged.getAs<IntegerAttr>("ignored_label").getInt()},
                                  {"shifts_labels", judged.getAs<BoolAttr>("shifts_labels").getValue()}};
    if (auto classes = judged.getAs<IntegerAttr>("classes"))
      training["classes"] = classes.getInt();
  }
  if (auto tied = program->getAttrOfType<DictionaryAttr>(ds::tiedAttr)) {
    llvm::json::Array list;
    for (NamedAttribute entry : tied) {
      auto to = cast<DictionaryAttr>(entry.getValue());
      list.push_back(llvm::json::Object{{"name", entry.getName().getValue()},
                                        {"of", to.getAs<StringAttr>("of").getValue()},
                                        {"transposed", to.getAs<BoolAttr>("transposed").getValue()}});
    }
    training["tied"] = std::move(list);
  }
  if (auto layers = program->getAttrOfType<ArrayAttr>("ds.layers")) {
    llvm::json::Array names;
    for (StringRef name : layers.getAsValueRange<StringAttr>())
      names.push_back(name);
    training["layers"] = std::move(names);
  }
  if (auto quantized = program->getAttrOfType<DictionaryAttr>(ds::quantizedAttr)) {
    llvm::json::Array list;
    for (NamedAttribute entry : quantized)
      list.push_back(llvm::json::Object{{"name", entry.getName().getValue()},
                                        {"block", cast<IntegerAttr>(entry.getValue()).getInt()}});
    training["quantized"] = std::move(list);
  }
  if (auto listed = program->getAttrOfType<DictionaryAttr>(parametersAttr)) {
    parameters.clear(); // variants have the same
    for (NamedAttribute entry : listed) {
      auto fields = cast<DictionaryAttr>(entry.getValue());
      parameters.push_back(llvm::json::Object{{"name", entry.getName().getValue()},
                                              {"elements", fields.getAs<IntegerAttr>("elements").getInt()},
                                              {"node", fields.getAs<StringAttr>("node").getValue()}});
    }
  }
  // Kernels are lowered in a module of their own: the conversions must not see the program around them.
  OwningOpRef<ModuleOp> kernels(ModuleOp::create(program.getLoc()));
  for (auto kernel : llvm::to_vector(program.getOps<ds::KernelOp>()))
    OpBuilder::atBlockEnd(kernels->getBody()).clone(*kernel);
  CodegenOptions codegen;
  codegen.lanes = target.lanes;
  codegen.reference = reference;
  codegen.manyRows = options.manyRows;
  codegen.farLoads = target.farLoads;
  codegen.roundsBfloats = target.bfloatDot;
  PassManager pm(program.getContext());
  buildCodegenPipeline(pm, codegen);
  if ((options.prepare && failed(options.prepare(pm))) || failed(pm.run(*kernels)))
    return failure();
  KernelTable table = kernelTable(*kernels);
  if (lowered)
    lowered(*kernels);

  std::vector<std::pair<func::FuncOp, EntryPlan>> entries;
  for (func::FuncOp function : functions) {
    auto plan = planEntry(function, table);
    if (failed(plan))
      return failure();
    hasGuards |= !plan->guards.empty();
    entries.push_back({function, std::move(*plan)});
  }
  if (failed(checkStates(program, entries)))
    return failure();
  std::vector<StoredConstant> constants;
  llvm::StringMap<unsigned> ids;
  std::string codeFile = "code-" + target.name + ".so";
  if (failed(storeConstants(program, constants, ids)) ||
      failed(compile(*kernels, target, reference, entries, codeFile)))
    return failure();
  llvm::json::Array list, units;
  llvm::StringMap<unsigned> unitIds;
  for (func::FuncOp function : functions)
    if (auto own = function->getAttrOfType<ArrayAttr>(ds::unitsAttr))
      units = unitsManifest(own, ids, unitIds);
  for (const auto &[function, plan] : entries)
    list.push_back(entryManifest(plan, ids, unitIds, reference ? "scalar" : "f32"));
  variants.push_back(variantManifest(target, codeFile, constants, std::move(units), std::move(list)));
  codeFiles.push_back(codeFile);
  return success();
}

LogicalResult PackageWriter::addFile(StringRef name, StringRef contents, Location where) {
  std::string error;
  if (failed(prepareFolder(where)))
    return failure();
  if (!writeWhole(folder.path() + "/" + name.str(), contents, error))
    return emitError(where) << "cannot write '" << destination << "': " << error;
  otherFiles.push_back(name.str());
  return success();
}

LogicalResult PackageWriter::finish(Location where) {
  llvm::json::Object config;
  for (const PackageOptions::ConfigValue &entry : options.config)
    config[entry.key] = llvm::json::Object{{"value", llvm::json::fixUTF8(entry.value)}, {"origin", entry.origin}};
  // A runtime of before guards must not run the first entry of a group for every call.
  llvm::json::Object manifest{{"format", hasGuards ? 2 : 1},          {"abi", DS_ABI_VERSION},
                              {"compiler", "deepstride " DS_VERSION}, {"model", llvm::json::fixUTF8(options.model)},
                              {"config", std::move(config)},          {"variants", std::move(variants)}};
  if (!parameters.empty())
    manifest["parameters"] = std::move(parameters);
  if (!options.training.empty()) {
    llvm::Expected<llvm::json::Value> config = llvm::json::parse(options.training);
    if (!config)
      return emitError(where) << "the configuration of training is no JSON: " << llvm::toString(config.takeError());
    training["config"] = std::move(*config);
    manifest["training"] = std::move(training);
  }
  std::string error;
  std::string text = llvm::formatv("{0:1}\n", llvm::json::Value(std::move(manifest))).str();
  std::vector<std::string> files = codeFiles;
  files.insert(files.end(), otherFiles.begin(), otherFiles.end());
  files.push_back("manifest.json");
  bool isWritten =
      writeWhole(folder.path() + "/manifest.json", text, error) && writeChecksums(folder.path(), files, error);
  if (isWritten)
    error = folder.moveTo(destination); // a package that is there is replaced only now that this one is complete
  if (!error.empty())
    return emitError(where) << "cannot write '" << destination << "': " << error;
  return success();
}

} // namespace deepstride
