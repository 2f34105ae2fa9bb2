#include "tools/ds-opt/Calibration.h"

#include "dialects/ds/DsDialect.h"
#include "passes/optimization/Calibration.h"
#include "tools/ds-opt/CalibrationRun.h"
#include "tools/ds-opt/Triangle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace deepstride {

Calibration::Calibration(std::string file) : inputs(std::move(file)), workspace("ds-calibrate-", {"observe.dsp"}) {}

std::string Calibration::write(const Triangle &triangle, const std::vector<double> &numbers) {
  std::error_code code;
  llvm::raw_fd_ostream stream(triangle.file, code);
  std::vector<float> row(static_cast<size_t>(triangle.size));
  for (int64_t first = 0; !code && first < triangle.size * triangle.size; first += triangle.size) {
    std::copy_n(numbers.begin() + first, triangle.size, row.begin());
    stream.write(reinterpret_cast<const char *>(row.data()), row.size() * sizeof(float));
  }
  if (!code) {
    stream.flush();
    code = stream.error();
    stream.clear_error();
  }
  return code ? "cannot write '" + triangle.file + "': " + code.message() : "";
}

std::string Calibration::add(DictionaryAttr observed) {
  // A weight whose products read several values has the sum of their sums. Those that read the same share a file.
  struct Sums {
    std::vector<double> numbers;
    std::vector<std::string> weights;
    size_t missing = 0;
  };
  std::map<std::vector<std::string>, Sums> wanted;
  for (NamedAttribute weight : observed) {
    std::vector<std::string> states;
    for (Attribute state : cast<ArrayAttr>(weight.getValue()))
      states.push_back(cast<StringAttr>(state).str());
    Sums &sums = wanted[states];
    sums.weights.push_back(weight.getName().str());
    sums.missing = states.size();
  }
  auto use = [&](const std::string &state, const double *numbers, int64_t size) -> std::string {
    for (auto &[states, sums] : wanted) {
      if (!llvm::is_contained(states, state))
        continue;
      size_t count = static_cast<size_t>(size * size);
      sums.numbers.resize(count);
      for (size_t i = 0; i < count; ++i)
        sums.numbers[i] += numbers[i];
      if (--sums.missing > 0)
        continue;
      bool isZero = llvm::all_of(sums.numbers, [](double number) { return number == 0; });
      if (!makeTriangle(sums.numbers, size))
        return inputs + ": what weight '" + sums.weights.front() +
               "' is multiplied by is not finite, or its squares are not";
      if (isZero) // no rows, or none that says anything of the weight
        continue;
      Triangle triangle{workspace.path("triangle-" + llvm::Twine(fileCount++)), size};
      if (std::string wrong = write(triangle, sums.numbers); !wrong.empty())
        return wrong;
      sums.numbers = {};
      for (const std::string &weight : sums.weights)
        triangles[weight] = triangle;
    }
    return "";
  };
  return runCalibration(package(), inputs, use, callCount);
}

void Calibration::annotate(ModuleOp module) const {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  std::map<std::string, FlatSymbolRefAttr> byFile;
  NamedAttrList list;
  SymbolTable symbols(module);
  for (const auto &[weight, triangle] : triangles) {
    FlatSymbolRefAttr &name = byFile[triangle.file];
    if (!name) {
      auto recipe = ds::RecipeOp::create(builder, module.getLoc(), "triangle");
      OpBuilder body(module.getContext());
      body.setInsertionPointToStart(&recipe.getBody().emplaceBlock());
      auto type = RankedTensorType::get({triangle.size, triangle.size}, body.getF32Type());
      auto source = ds::SourceOp::create(body, module.getLoc(), type, triangle.file, 0,
                                         triangle.size * triangle.size * static_cast<int64_t>(sizeof(float)));
      ds::YieldOp::create(body, module.getLoc(), source.getResult());
      recipe->remove();
      symbols.insert(recipe, module.getBody()->end());
      name = FlatSymbolRefAttr::get(recipe.getSymNameAttr());
    }
    list.set(weight, name);
  }
  module->setAttr(trianglesAttr, list.getDictionary(module.getContext()));
}

} // namespace deepstride
