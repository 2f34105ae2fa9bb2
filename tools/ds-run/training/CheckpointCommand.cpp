// ds-run checkpoint: what is in one, is it whole, how do two differ, and the trained model as a file for others.
#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"
#include "runtime/training/CheckpointTools.h"
#include "tools/ds-run/training/ExportOnnx.h"
#include "tools/ds-run/training/Setup.h"

#include <cstdio>

namespace ds {
namespace {

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Checkpoint open(const std::string &path) {
  auto [folder, tag] = splitCheckpoint(path);
  return {folder, tag};
}

int verify(const TrainOptions &options) {
  auto [folder, tag] = splitCheckpoint(options.path);
  std::vector<std::string> faults = verifyCheckpoint(folder, tag);
  for (const std::string &fault : faults)
    std::fprintf(stderr, "ds-run: error: %s\n", fault.c_str());
  if (faults.empty())
    std::printf("%s: whole\n", checkpointPath(folder, tag).c_str());
  return faults.empty() ? 0 : 1;
}

int compare(const TrainOptions &options) {
  if (options.other.empty())
    fail(ErrorCode::InvalidArgument, "diff: expected two checkpoints, found one");
  CheckpointDifference difference = compareCheckpoints(open(options.path), open(options.other));
  std::printf("%s\n",
              options.run.asJson ? differenceJson(difference).dump(1).c_str() : differenceText(difference).c_str());
  return difference.isNone() ? 0 : 1;
}

// Parameters and running statistics alone, under their ONNX names.
int exportTensors(const TrainOptions &options) {
  Checkpoint checkpoint = open(options.path);
  bool isOnnx = endsWith(options.output, ".onnx");
  if (!isOnnx && !endsWith(options.output, ".safetensors"))
    fail(ErrorCode::InvalidArgument, "export: -o: found '", options.output, "', expected OUT.onnx or OUT.safetensors");
  std::vector<NamedView> tensors;
  for (size_t i = 0; i < checkpoint.items().size(); ++i)
    if (const CheckpointTensor &tensor = checkpoint.tensor(i);
        tensor.file.rfind("parameters", 0) == 0 || tensor.file.rfind("statistics", 0) == 0)
      tensors.push_back({tensor.name, checkpoint.view(i)});
  if (!isOnnx) {
    writeSafetensors(options.output, tensors, {{"format", "pt"}});
    return 0;
  }
  if (options.run.package.empty())
    fail(ErrorCode::InvalidArgument, "export to ONNX: expected --package=M.dsp, which has the model's graph");
  exportOnnx(*loadPackage(options.run.package, options.run), tensors, options.output);
  return 0;
}

} // namespace

int checkpointCommand(const TrainOptions &options) {
  if (options.action != "diff" && !options.other.empty())
    fail(ErrorCode::InvalidArgument, options.action, ": expected one checkpoint, found two");
  if (options.action == "verify")
    return verify(options);
  if (options.action == "diff")
    return compare(options);
  if (options.action == "export")
    return exportTensors(options);
  Checkpoint checkpoint = open(options.path);
  std::printf("%s\n", options.run.asJson ? inspectCheckpointJson(checkpoint).dump(1).c_str()
                                         : inspectCheckpoint(checkpoint).c_str());
  return 0;
}

} // namespace ds
