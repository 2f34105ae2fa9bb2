// Runs a package as one of two equal ranks over a transport that copies nothing when a collective starts: it reads the
// source when it is waited for, as one that works in the background may. usage: PACKAGE IN.npz STATES.npz OUT.npz
// OUT.npz gets outputs and states. The sum over both ranks is twice the value; f32 only.
#include "runtime/core/Error.h"
#include "runtime/core/Session.h"
#include "runtime/io/Npz.h"

#include <cstdio>
#include <map>

using namespace ds;

namespace {

class LateTransport : public Communicator {
public:
  unsigned rank() const override { return 0; }
  unsigned world() const override { return 2; }
  uint64_t start(const CollectiveRequest &request) override {
    open[++tickets] = request;
    return tickets;
  }
  void wait(uint64_t ticket) override {
    CollectiveRequest request = open.at(ticket);
    open.erase(ticket);
    for (const CollectivePart &part : request.parts)
      for (const Segment &segment : part.whole)
        for (int64_t i = 0; i < segment.count && request.reduction == Reduction::Sum; ++i)
          static_cast<float *>(segment.data)[i] *= 2;
  }
  void leave(const std::string &) override {}
  void setStep(int64_t) override {}
  std::vector<CollectiveCounters> counters() const override { return {}; }

private:
  std::map<uint64_t, CollectiveRequest> open;
  uint64_t tickets = 0;
};

void run(char **arguments) {
  auto package = Package::load(arguments[1]);
  SessionOptions options;
  options.threads = 2;
  options.communicator = std::make_shared<LateTransport>();
  Session session(package, options);
  std::vector<NamedTensor> given = readNpz(arguments[2]);
  NpzReader states(arguments[3]);
  session.withStates([&](StateStore &store) { store.restore(states); });
  std::vector<TensorView> inputs;
  for (const TensorInfo &info : session.entry(0).inputs)
    for (const NamedTensor &tensor : given)
      if (tensor.name == info.name)
        inputs.push_back(tensor.tensor.view());
  std::vector<Tensor> outputs;
  session.run(0, inputs, {}, outputs);
  std::vector<NamedView> result;
  for (size_t i = 0; i < outputs.size(); ++i)
    result.push_back({session.entry(0).outputs[i].name, outputs[i].view()});
  session.withStates([&](StateStore &store) {
    for (const NamedView &state : store.views())
      result.push_back(state);
    writeNpz(arguments[4], result);
  });
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  try {
    run(argv);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
