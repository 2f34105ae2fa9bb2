// ds-run gradients: the loss of one micro-batch and the gradient of every parameter, by ONNX name.
#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/Options.h"

#include "runtime/core/Error.h"
#include "runtime/core/Session.h"
#include "runtime/io/Npz.h"
#include "runtime/training/Trainer.h"

#include <algorithm>
#include <cstdio>

namespace ds {

int gradientsCommand(const Options &options) {
  auto package = loadPackage(options.package, options);
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  Session session(package, sessionOptions);
  size_t index = trainingEntry(*package, "micro");
  const EntryInfo &entry = session.entry(index);
  Options given = options;
  given.inputs.push_back("loss_weight=1");
  for (const TensorInfo &input : entry.inputs)
    if (input.name == "first" || input.name == "last")
      given.inputs.push_back(input.name + "=true");
    else if (input.name == "random_seed")
      given.inputs.push_back("random_seed=" + std::to_string(static_cast<int64_t>(options.seed.value_or(0))));
    else if (input.name.rfind("layer_gate/", 0) == 0 || input.name.rfind("layer_first/", 0) == 0)
      given.inputs.push_back(input.name + "=true"); // all blocks run
    else if (input.name.rfind("layer_scale/", 0) == 0)
      given.inputs.push_back(input.name + "=1");
    else if (input.name == "random_step" || input.name == "random_micro")
      given.inputs.push_back(input.name + "=0");
  // Of the parameters as they are, unless the widths are given.
  for (const TensorInfo &input : entry.inputs)
    if (input.name.rfind("quantize_", 0) == 0 &&
        std::none_of(options.inputs.begin(), options.inputs.end(),
                     [&](const std::string &item) { return item.rfind(input.name + "=", 0) == 0; }))
      given.inputs.push_back(input.name + "=0");
  std::vector<std::string> madeUp;
  Pins pins = parsePins(options.dims);
  std::vector<Tensor> inputs = gatherInputs(entry, given, pins, 0, &madeUp), outputs;
  checkLabels(*package, entry.inputs, viewsOf(inputs), [](int64_t row) { return concat("sample ", row); });
  restoreStates(session, options, 0);
  session.run(index, viewsOf(inputs), pins, outputs);
  noteRandomInputs(madeUp, options);
  session.withStates([&](StateStore &states) {
    const std::string suffix = "/gradient";
    std::vector<NamedView> named = {{"loss", outputs[0].view()}};
    for (NamedView &state : states.views())
      if (state.name.size() > suffix.size() &&
          state.name.compare(state.name.size() - suffix.size(), suffix.size(), suffix) == 0)
        named.push_back({state.name.substr(0, state.name.size() - suffix.size()), state.view});
    if (options.output.empty())
      std::printf("loss: %.9g\n%zu gradients; --output=G.npz writes them\n",
                  loadDouble(outputs[0].getType(), outputs[0].data(), 0), named.size() - 1);
    else
      writeNpz(options.output, named);
  });
  return 0;
}

} // namespace ds
