// ds-run checkpoint: what is in one, is it whole, how do two differ, and the trained model as a file for others.
#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"
#include "runtime/training/CheckpointTools.h"
#include "tools/ds-run/Messages.h"
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
    printMessage("error: ", fault);
  if (faults.empty())
    std::printf("%s: whole\n", checkpointPath(folder, tag).c_str());
  return faults.empty() ? 0 : 1;
}

int compare(const TrainOptions &options) {
  if (options.other.empty())
    fail(ErrorCode::InvalidArgument, "diff: expected two checkpoints, found one");
  CheckpointDifference difference = compareCheckpoints(open(options.path), open(options.other));
  std::printf("%s", options.run.asJson ? (differenceJson(difference).dump(1) + "\n").c_str()
                                       : differenceText(difference).c_str());
  return difference.isNone() ? 0 : 1;
}

// What evaluations read: codes of 4 and 8 bits where they can be, else what is rounded as floats.
void exportQuantized(Trainer &trainer, const QuantizationSettings &settings, std::vector<NamedView> tensors,
                     const std::string &path) {
  const BitSchedule *widths = trainer.widths();
  if (!widths)
    fail(ErrorCode::InvalidArgument, "export: --quantized: expected a package that trains with quantize_training");
  if (!widths->hasBegun())
    fail(ErrorCode::InvalidArgument, "export: --quantized: found no weight rounded after ", widths->updates(),
         " updates, expected at least ", widths->firstRounding(), ", as schedule_offset says");
  for (size_t block = 0; block < widths->blocks(); ++block)
    if (double share = widths->share(block); share > 0)
      fail(ErrorCode::InvalidArgument, "export: --quantized: found ", share,
           " of the weights themselves mixed in, expected 0, as after ", widths->updatesToTarget(), " more updates");
  std::map<std::string, int64_t> bits;
  for (const QuantizedParameter &parameter : trainer.package().manifest().training->quantized)
    bits[parameter.name] = widths->bits(static_cast<size_t>(parameter.block));
  std::vector<std::pair<std::string, Tensor>> images = trainer.images();
  std::map<std::string, Codes> codes;
  for (const auto &[name, image] : images)
    for (NamedView &tensor : tensors) {
      if (tensor.name != name)
        continue;
      std::string refusal;
      Codes own = codesOf(tensor.view, image.view(), settings, bits[name], refusal);
      tensor.view = image.view();
      if (refusal.empty())
        codes[name] = std::move(own);
      else
        printMessage("note: '", name, "' is stored as floats: ", refusal);
    }
  if (codes.empty())
    fail(ErrorCode::InvalidArgument, "export: --quantized: no weight has codes of at most 8 bits");
  exportOnnx(trainer.package(), tensors, path, codes);
}

// Parameters and running statistics alone, under their ONNX names.
int exportTensors(const TrainOptions &options) {
  Checkpoint checkpoint = open(options.path);
  bool isOnnx = endsWith(options.output, ".onnx");
  if (!isOnnx && !endsWith(options.output, ".safetensors"))
    fail(ErrorCode::InvalidArgument, "export: -o: found '", options.output, "', expected OUT.onnx or OUT.safetensors");
  std::vector<NamedView> tensors;
  for (size_t i = 0; i < checkpoint.items().size(); ++i)
    if (const CheckpointTensor &tensor = checkpoint.tensor(i); tensor.isIn("parameters") || tensor.isIn("statistics"))
      tensors.push_back({tensor.name, checkpoint.view(i)});
  if (options.isQuantized && !isOnnx)
    fail(ErrorCode::InvalidArgument, "export: --quantized: expected -o OUT.onnx, found '", options.output, "'");
  if (!isOnnx) {
    writeSafetensors(options.output, tensors, {{"format", "pt"}});
    return 0;
  }
  if (options.run.package.empty())
    fail(ErrorCode::InvalidArgument, "export to ONNX: expected --package=M.dsp, which has the model's graph");
  auto package = loadPackage(options.run.package, options.run);
  if (!options.isQuantized) {
    exportOnnx(*package, tensors, options.output);
    return 0;
  }
  Trainer trainer(package, {});
  trainer.restoreParameters(checkpoint);
  exportQuantized(trainer, configOf(*package, options, RunRanks()).quantization, tensors, options.output);
  return 0;
}

} // namespace

int checkpointCommand(const TrainOptions &options) {
  if (options.action != "diff" && !options.other.empty())
    fail(ErrorCode::InvalidArgument, options.action, ": expected one checkpoint, found two");
  if (options.isQuantized && options.action != "export")
    fail(ErrorCode::InvalidArgument, options.action, ": --quantized is about exports");
  if (options.action == "verify")
    return verify(options);
  if (options.action == "diff")
    return compare(options);
  if (options.action == "export")
    return exportTensors(options);
  Checkpoint checkpoint = open(options.path);
  std::printf("%s", options.run.asJson ? (inspectCheckpointJson(checkpoint).dump(1) + "\n").c_str()
                                       : inspectCheckpoint(checkpoint).c_str());
  return 0;
}

} // namespace ds
