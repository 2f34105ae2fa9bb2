#include "passes/training/ReduceGradients.h"

#include "dialects/ds/Provenance.h"
#include "passes/training/Communication.h"

using namespace mlir;

namespace deepstride {

namespace {

class GradientReducer {
public:
  GradientReducer(DsBuilder &b, Signature &signature, const MicroGradients &gradients, const SharingSettings &sharing)
      : b(b), signature(signature), gradients(gradients), sharing(sharing), rest(gradients.units.size()),
        body(b.getBuilder().getInsertionBlock()) {}
  LogicalResult run();

private:
  struct Message {
    Bucket bucket;
    size_t unit = 0;
    Operation *complete = nullptr; // after which all of it is there; null: from the beginning on
  };
  /// What is there of a unit of stages 2 and 3.
  struct Sum {
    std::optional<Pending> open;
    Value done;
  };

  void findMessages();
  void startInPlace(const Message &message);
  void start(const Message &message);
  void finishInPlace(const Bucket &bucket, const Pending &pending);
  bool finish(size_t unit);

  DsBuilder &b;
  Signature &signature;
  const MicroGradients &gradients;
  const SharingSettings &sharing;
  SmallVector<Message> messages;
  SmallVector<std::pair<Bucket, Pending>> inPlace; // under way
  llvm::DenseMap<size_t, Sum> sums;
  SmallVector<size_t> rest; // messages of a unit that have not started
  std::optional<size_t> opened;
  Block *body;
};

void GradientReducer::findMessages() {
  for (auto [number, unit] : llvm::enumerate(gradients.units))
    for (Bucket &bucket : cutUnit(unit, sharing.bucket)) {
      Message &message = messages.emplace_back();
      message.unit = number;
      for (unsigned parameter : bucket.parameters())
        if (Operation *op = gradients.values[parameter].getDefiningOp();
            op && (!message.complete || message.complete->isBeforeInBlock(op)))
          message.complete = op;
      message.bucket = std::move(bucket);
      ++rest[number];
    }
  llvm::sort(messages, [](const Message &x, const Message &y) {
    if (x.complete == y.complete)
      return x.unit != y.unit ? x.unit < y.unit : x.bucket.first > y.bucket.first;
    return !x.complete || (y.complete && x.complete->isBeforeInBlock(y.complete));
  });
}

void GradientReducer::finishInPlace(const Bucket &bucket, const Pending &pending) {
  for (auto [number, value] : llvm::zip_equal(bucket.parameters(), pending.finish(b)))
    signature.newState(value, gradients.parameters[number].stateName("gradient"));
}

void GradientReducer::startInPlace(const Message &message) {
  const Bucket &bucket = message.bucket;
  auto values = llvm::map_to_vector(bucket.parameters(), [&](unsigned number) { return gradients.values[number]; });
  std::string site = "gradients/" + bucket.name;
  Communication communication(b, sharing.wire);
  Pending pending = sharing.areStatesShared() ? communication.reduceInPlace(bucket, values, site, gradients.isLast)
                                              : communication.allReduce(dist::Reduction::sum, values, site,
                                                                        gradients.isLast, bucket.unit->isSparse);
  if (sharing.overlaps)
    inPlace.emplace_back(bucket, pending);
  else
    finishInPlace(bucket, pending);
}

void GradientReducer::start(const Message &message) {
  Sum &sum = sums[message.unit];
  auto values =
      llvm::map_to_vector(message.bucket.parameters(), [&](unsigned number) { return gradients.values[number]; });
  Pending pending = Communication(b, sharing.wire)
                        .reduceScatter(message.bucket, values, "gradients/" + message.bucket.name, sum.done);
  if (!sharing.overlaps)
    sum.done = pending.finish(b).front();
  else if (sum.open)
    sum.open->join(pending);
  else
    sum.open = pending;
}

/// The sum of this micro-batch is added to that of those before it.
bool GradientReducer::finish(size_t number) {
  const Unit &unit = gradients.units[number];
  const Sum &own = sums[number];
  Value sum = own.open ? own.open->finish(b).front() : own.done;
  Type kept = sharing.gradientOf(unit.element);
  TensorFacts facts{kept, {unit.shard()}, std::nullopt};
  std::string name = unit.stateName("gradient");
  Value before = signature.state(name, facts.elementType, facts.sizes);
  b.getAnalysis().set(before, facts);
  Value next = sum;
  if (gradients.isFirst) {
    sum = b.cast(sum, unit.element);
    next = b.cast(b.select(gradients.isFirst, sum, b.add(b.cast(before, unit.element), sum)), kept);
  }
  signature.newState(next, name);
  return static_cast<bool>(next);
}

LogicalResult GradientReducer::run() {
  OpBuilder &builder = b.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  Operation *end = body->getTerminator(), *previous = nullptr;
  findMessages();
  builder.setInsertionPointToStart(body);
  for (const Message &message : messages) {
    if (message.complete != previous) // those of one branch are complete together: one goes after the other
      builder.setInsertionPointAfter(message.complete);
    previous = message.complete;
    const Parameter &first = gradients.parameters[message.bucket.parameters().front()];
    b.setLocation(withParameter(body->getParentOp()->getLoc(), WorkRole::Backward, first.name.getValue()));
    if (!sharing.areGradientsShared()) {
      startInPlace(message);
      continue;
    }
    bool isWhole = --rest[message.unit] == 0;
    if (isWhole && opened && !finish(*std::exchange(opened, std::nullopt)))
      return failure();
    start(message);
    if (isWhole && sharing.overlaps)
      opened = message.unit;
    else if (isWhole && !finish(message.unit))
      return failure();
  }
  builder.setInsertionPoint(end);
  for (const auto &[bucket, pending] : inPlace)
    finishInPlace(bucket, pending);
  return success(!opened || finish(*opened));
}

} // namespace

LogicalResult reduceGradients(DsBuilder &b, Signature &signature, const MicroGradients &gradients,
                              const SharingSettings &sharing) {
  return GradientReducer(b, signature, gradients, sharing).run();
}

} // namespace deepstride
