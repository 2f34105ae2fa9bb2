// ds-pin-dimensions: gives dimensions a fixed size, or has two dimensions be one. It takes name=value and name=name
// pairs and writes the numbers and names into the sizes of entry arguments and of every op. ds-fold-shapes then turns
// what depended on them into constants.
//
//   func.func @main(%x: tensor<?x4xf32> {ds.dims = ["batch", 4]})
//     => dims=batch=2 =>   func.func @main(%x: tensor<2x4xf32> {ds.dims = [2, 4]})
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Guards.h"
#include "dialects/ds/SameDimensions.h"
#include "passes/Report.h"
#include "passes/graph/Passes.h"
#include "passes/graph/ShapeArithmetic.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_PINDIMENSIONS
#include "passes/graph/Passes.h.inc"

static std::optional<SizeVector> parseSizes(ArrayAttr list, const llvm::StringMap<SizeExpr> &bindings) {
  SizeVector sizes;
  for (Attribute attribute : list) {
    auto text = dyn_cast<StringAttr>(attribute);
    auto size = text ? SizeExpr::parse(text.getValue(), &bindings) : sizeFromAttribute(attribute);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

namespace {
struct PinDimensions : impl::PinDimensionsBase<PinDimensions>, PassReport {
  using PinDimensionsBase::PinDimensionsBase;

  void runOnOperation() override {
    llvm::StringMap<SizeExpr> bindings;
    if (failed(parse(bindings)) || failed(checkNames(bindings)))
      return signalPassFailure();
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!pinGuards(function, bindings))
        function.erase(); // no call can meet its guards any more
      else if (failed(pin(function, bindings)))
        return signalPassFailure();
    count("dimensions pinned", bindings.size());
  }

  LogicalResult parse(llvm::StringMap<SizeExpr> &bindings) {
    SameDimensions same;
    for (StringRef text : dims) {
      // From the right: names of dimensions may hold any character.
      auto [name, number] = text.rsplit('=');
      int64_t value;
      bool isNumber = !number.getAsInteger(10, value);
      if (name.empty() || number.empty() || (isNumber && value < 0))
        return getOperation().emitError()
               << "ds-pin-dimensions expects name=value or name=name, found '" << text << "'";
      if (isNumber)
        bindings[name] = SizeExpr(value);
      else
        same.join(name, number);
    }
    for (const auto &names : same.classes()) {
      StringRef sized, whole = names.back();
      for (StringRef name : names) {
        if (!bindings.contains(name))
          continue;
        if (!sized.empty() && bindings[name] != bindings[sized])
          return getOperation().emitError()
                 << "'" << sized << "' and '" << name << "' are one dimension with two sizes, "
                 << bindings[sized].brief() << " and " << bindings[name].brief();
        sized = name;
      }
      SizeExpr size = sized.empty() ? SizeExpr::symbol(whole) : bindings[sized];
      for (StringRef name : names)
        bindings[name] = size; // what stands for the others is bound to itself, so that it is looked up, too
    }
    return success();
  }

  LogicalResult checkNames(const llvm::StringMap<SizeExpr> &bindings) {
    std::vector<std::string> legal;
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (auto list = function.getArgAttrOfType<ArrayAttr>(i, ds::dimsAttr))
          if (auto sizes = sizesFromAttribute(list))
            for (const SizeExpr &size : *sizes)
              for (const SizeAtom &symbol : size.symbols())
                if (symbol.kind() == SizeAtom::Kind::Symbol && !llvm::is_contained(legal, symbol.name()))
                  legal.push_back(symbol.name().str());
    for (const auto &binding : bindings) {
      if (llvm::is_contained(legal, binding.getKey()))
        continue;
      auto error = getOperation().emitError()
                   << "no input has a dimension named '" << binding.getKey() << "', so it cannot be pinned";
      std::string names;
      for (const std::string &name : legal)
        names += (names.empty() ? "" : ", ") + name;
      error.attachNote() << "dimensions of the inputs: " << (names.empty() ? "none, all are fixed" : names);
      return error;
    }
    return success();
  }

  /// False where a guard never holds. What always holds is no guard.
  static bool pinGuards(func::FuncOp function, const llvm::StringMap<SizeExpr> &bindings) {
    auto guards = function->getAttrOfType<ArrayAttr>(ds::guardsAttr);
    if (!guards)
      return true;
    Builder builder(function.getContext());
    SmallVector<Attribute> open;
    for (Attribute guard : guards) {
      auto fields = dyn_cast<DictionaryAttr>(guard);
      auto text = fields ? fields.getAs<StringAttr>(ds::conditionKey) : StringAttr();
      auto holds = fields ? fields.getAs<BoolAttr>(ds::holdsKey) : BoolAttr();
      auto condition = text ? SizeExpr::parse(text.getValue(), &bindings) : std::nullopt;
      auto known = condition ? condition->constant() : std::nullopt;
      if (known && holds && (*known != 0) != holds.getValue())
        return false;
      if (known && holds)
        continue;
      if (condition) {
        NamedAttrList changed(fields);
        changed.set(ds::conditionKey, builder.getStringAttr(condition->str()));
        guard = changed.getDictionary(function.getContext());
      }
      open.push_back(guard);
    }
    function->setAttr(ds::guardsAttr, builder.getArrayAttr(open));
    return true;
  }

  LogicalResult pin(func::FuncOp function, const llvm::StringMap<SizeExpr> &bindings) {
    SmallVector<Type> types;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      Type type = function.getArgument(i).getType();
      if (auto list = function.getArgAttrOfType<ArrayAttr>(i, ds::dimsAttr)) {
        auto sizes = parseSizes(list, bindings);
        if (!sizes)
          return function.emitOpError("argument ") << i << ": '" << ds::dimsAttr << "' holds an illegal size";
        TensorFacts facts{cast<RankedTensorType>(type).getElementType(), *sizes, {}};
        function.setArgAttr(i, ds::dimsAttr, toAttribute(&getContext(), facts.sizes));
        type = facts.type();
        if (!function.isExternal())
          function.getArgument(i).setType(type);
      }
      types.push_back(type);
    }
    function.setType(FunctionType::get(&getContext(), types, function.getResultTypes()));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto list = function.getResultAttrOfType<ArrayAttr>(i, ds::dimsAttr))
        if (auto sizes = parseSizes(list, bindings))
          function.setResultAttr(i, ds::dimsAttr, toAttribute(&getContext(), *sizes));
    WalkResult walk = function.walk([&](Operation *op) {
      return failed(rewriteSizes(op, bindings)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }
};
} // namespace

} // namespace deepstride
