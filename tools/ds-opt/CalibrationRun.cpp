#include "tools/ds-opt/CalibrationRun.h"

#include "runtime/core/Error.h"
#include "runtime/core/Session.h"
#include "runtime/io/Npz.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace deepstride {

namespace {

using ::ds::ErrorCode;
using ::ds::fail;

/// Which arrays of a file are the inputs of which call.
class Calls {
public:
  Calls(const ::ds::NpzReader &file, const ::ds::EntryInfo &entry) : file(file), entry(entry) {
    std::vector<std::string> legal;
    for (const ::ds::TensorInfo &input : entry.inputs)
      legal.push_back(input.name);
    std::set<int64_t> numbered;
    for (size_t item = 0; item < file.items().size(); ++item) {
      const std::string &name = file.items()[item].name;
      int64_t call = everyCall;
      size_t input = inputOf(name, call);
      if (input == entry.inputs.size())
        fail(ErrorCode::BadFile, "no input '", name, "', expected N/NAME or NAME, where N is the number of a call and ",
             "NAME one of ", ::ds::listText(legal));
      if (call != everyCall)
        numbered.insert(call);
      auto [place, isFirst] = places.try_emplace({call, input}, item);
      if (!isFirst)
        fail(ErrorCode::BadFile, "'", name, "' is what '", file.items()[place->second].name,
             "' is, expected one array for an input of a call");
    }
    count = std::max<int64_t>(static_cast<int64_t>(numbered.size()), 1);
    if (!numbered.empty() && *numbered.rbegin() >= count)
      fail(ErrorCode::BadFile, "call ", *numbered.rbegin(), " has arrays, but of the calls from 0 on only ",
           numbered.size(), " have, expected arrays for each");
    for (const auto &[place, item] : places)
      if (place.first == everyCall && isOfEachCall(place.second))
        fail(ErrorCode::BadFile, "'", file.items()[item].name, "' is of no call, as each has one of its own, expected ",
             "one array for an input of a call");
  }

  int64_t size() const { return count; }

  std::vector<::ds::Tensor> inputsOf(int64_t call) const {
    std::vector<::ds::Tensor> inputs;
    for (size_t input = 0; input < entry.inputs.size(); ++input) {
      auto place = places.find({call, input});
      if (place == places.end())
        place = places.find({everyCall, input});
      if (place == places.end())
        fail(ErrorCode::BadFile, "call ", call, " has no input '", entry.inputs[input].name, "', expected an array '",
             call, "/", entry.inputs[input].name, "', or '", entry.inputs[input].name, "' for all calls");
      inputs.push_back(read(place->second, entry.inputs[input]));
    }
    return inputs;
  }

private:
  static constexpr int64_t everyCall = -1;

  bool isOfEachCall(size_t input) const {
    int64_t call = 0;
    while (call < count && places.count({call, input}))
      ++call;
    return call == count;
  }

  /// The input that an array is for, and the call; the number of inputs where there is none.
  size_t inputOf(const std::string &name, int64_t &call) const {
    auto find = [&](const std::string &wanted) {
      auto found = llvm::find_if(entry.inputs, [&](const auto &input) { return input.name == wanted; });
      return static_cast<size_t>(found - entry.inputs.begin());
    };
    size_t whole = find(name), slash = name.find('/');
    constexpr size_t mostDigits = 9;
    bool isNumber =
        slash != std::string::npos && slash > 0 && slash <= mostDigits && name.find_first_not_of("0123456789") == slash;
    if (whole < entry.inputs.size() || !isNumber)
      return whole;
    call = std::stoll(name.substr(0, slash));
    return find(name.substr(slash + 1));
  }

  ::ds::Tensor read(size_t item, const ::ds::TensorInfo &info) const {
    const auto &found = file.items()[item];
    if (found.type != info.type && found.type != ::ds::npyType(info.type))
      fail(ErrorCode::BadFile, "'", found.name, "': expected ", ::ds::typeName(info.type), ", found ",
           ::ds::typeName(found.type));
    ::ds::Tensor tensor(info.type, found.shape);
    file.read(item, info.type, tensor.data());
    for (int64_t i = 0; ::ds::isFloat(info.type) && i < tensor.count(); ++i)
      if (std::isnan(::ds::loadDouble(info.type, tensor.data(), static_cast<size_t>(i))))
        fail(ErrorCode::BadFile, "'", found.name, "': element ", i, " is not a number");
    return tensor;
  }

  const ::ds::NpzReader &file;
  const ::ds::EntryInfo &entry;
  std::map<std::pair<int64_t, size_t>, size_t> places;
  int64_t count = 0;
};

void run(const std::string &path, const std::string &filePath, const UseSums &use, int64_t &calls) {
  auto package = ::ds::Package::load(path);
  if (size_t entries = package->variant().groups.size(); entries != 1)
    fail(ErrorCode::InvalidArgument, "expected a program of one entry, found ", entries);
  ::ds::Session session(package);
  ::ds::NpzReader file(filePath);
  ::ds::annotated(filePath, [&] {
    Calls all(file, session.entry(0));
    calls = all.size();
    std::vector<::ds::Tensor> outputs;
    for (int64_t call = 0; call < calls; ++call) {
      std::vector<::ds::Tensor> inputs = all.inputsOf(call);
      std::vector<::ds::TensorView> views;
      for (const ::ds::Tensor &input : inputs)
        views.push_back(input.view());
      ::ds::annotated("call " + std::to_string(call), [&] { session.run(0, views, {}, outputs); });
    }
  });
  session.withStates([&](::ds::StateStore &states) {
    for (const ::ds::NamedView &state : states.views()) {
      if (state.view.type != ::ds::ElementType::F64 || state.view.shape.size() != 2)
        continue;
      std::string wrong = use(state.name, static_cast<const double *>(state.view.data), state.view.shape[0]);
      if (!wrong.empty())
        fail(ErrorCode::Execution, wrong);
    }
  });
}

} // namespace

std::string runCalibration(const std::string &package, const std::string &file, const UseSums &use, int64_t &calls) {
  try {
    run(package, file, use, calls);
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

} // namespace deepstride
