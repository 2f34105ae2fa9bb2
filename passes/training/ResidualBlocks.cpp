// A stream is a chain of residual sums, each of which adds to the one before; blocks are its longest part that repeats.
#include "passes/training/ResidualBlocks.h"

#include "dialects/ds/Norms.h"
#include "passes/training/ReverseSweep.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace deepstride {

namespace {

/// One residual sum: output = input + (what is computed of the input, and vectors such as a bias).
struct Residual {
  Value input, output;
  llvm::SetVector<Operation *> ops; // from the input to the output, sums included
  SmallVector<OpOperand *> added;
  bool addsOthers = false; // of the stream's sizes, not computed of it
  std::string signature;   // the ops and their types
};

/// What one stream has: blocks that are alike, or all of it as one.
struct Candidates {
  SmallVector<ResidualBlock> blocks;
  bool repeats = false, attends = false;
};

class BlockFinder {
public:
  BlockFinder(func::FuncOp entry, ValueRange judged);
  ResidualBlocks run();

private:
  bool addResiduals(ds::BinaryOp sum);
  std::optional<Residual> residualAt(ds::BinaryOp sum, SmallVectorImpl<Operation *> &sums) const;
  bool isInner(ds::BinaryOp sum) const;
  llvm::SetVector<Operation *> between(Value from, ArrayRef<OpOperand *> to, Operation *end) const;
  bool isReachedBySums(Value value, Value from) const;
  bool isPartOf(const Residual &residual);
  Operation *liveReader(Value value, const llvm::SetVector<Operation *> &inside) const;
  Operation *topLevel(Operation *op) const { return body.findAncestorOpInBlock(*op); }
  void findPostNorm();
  void addBlocks(ArrayRef<Residual> stream);
  void takeBlocks();
  ResidualBlock join(ArrayRef<Residual> residuals) const;
  void takeWhatOnlyItReads(ResidualBlock &block) const;

  Block &body;
  llvm::DenseSet<Value> judged;
  llvm::DenseSet<Operation *> live; // what is judged depends on these
  std::vector<Residual> residuals;  // in order
  llvm::DenseSet<Value> outputs;    // of residuals
  std::vector<Candidates> candidates;
  ResidualBlocks found;
};

ds::BinaryOp sumOf(Value value) {
  auto sum = value.getDefiningOp<ds::BinaryOp>();
  return sum && sum.getKind() == ds::BinaryKind::add && isa<FloatType>(getElementTypeOrSelf(value)) ? sum
                                                                                                    : ds::BinaryOp();
}

std::string nodeOf(Operation *op) {
  auto node = op->getLoc()->findInstanceOf<NameLoc>();
  return node ? node.getName().str() : std::string();
}

bool isConstant(Operation *op) { return isa<ds::ConstantOp, ds::WeightOp>(op); }

/// What a value has the elements of, but for some that a dropout leaves out.
Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ds::ReshapeOp, ds::TransposeOp, ds::CastOp, ds::DropoutOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// A norm, as one op or as those that take away one vector and multiply by another, and what it normalizes.
std::pair<Operation *, Value> normBehind(Value value) {
  Operation *norm = nullptr;
  bool shifts = false, scales = false;
  while (true) {
    value = sourceOf(value);
    Operation *op = value.getDefiningOp();
    if (ds::isNorm(op))
      return {op, sourceOf(op->getOperand(0))};
    auto binary = dyn_cast_if_present<ds::BinaryOp>(op);
    if (!binary || (binary.getLhs().getType() == value.getType()) == (binary.getRhs().getType() == value.getType()))
      return {shifts && scales ? norm : nullptr, value};
    bool isLeft = binary.getLhs().getType() == value.getType();
    Value other = isLeft ? binary.getRhs() : binary.getLhs();
    if (auto type = cast<RankedTensorType>(other.getType()); !type.hasStaticShape() || type.getNumElements() != 1) {
      norm = op;
      shifts |= binary.getKind() == ds::BinaryKind::add || binary.getKind() == ds::BinaryKind::sub;
      scales |= binary.getKind() == ds::BinaryKind::mul || binary.getKind() == ds::BinaryKind::div;
    }
    value = isLeft ? binary.getLhs() : binary.getRhs();
  }
}

} // namespace

BlockFinder::BlockFinder(func::FuncOp entry, ValueRange judged)
    : body(entry.getBody().front()), judged(judged.begin(), judged.end()) {
  SmallVector<Value> open(judged);
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    Operation *at = op ? topLevel(op) : nullptr;
    if (at && live.insert(at).second)
      llvm::append_range(open, valuesUsedBy(at));
  }
}

/// Whether another sum of the same sizes takes this one in, and nothing else reads it: (x + a) + b is one sum.
bool BlockFinder::isInner(ds::BinaryOp sum) const {
  Operation *reader = nullptr;
  for (Operation *user : sum->getUsers())
    if (live.contains(topLevel(user))) {
      if (reader && reader != user)
        return false;
      reader = user;
    }
  return reader && sumOf(reader->getResults().empty() ? Value() : reader->getResult(0)) &&
         reader->getBlock() == &body && reader->getResult(0).getType() == sum.getType() &&
         reader->getOperand(0) != reader->getOperand(1);
}

/// The ops of the body on the ways from a value to operands of sums, the last of which is `end`.
llvm::SetVector<Operation *> BlockFinder::between(Value from, ArrayRef<OpOperand *> to, Operation *end) const {
  llvm::DenseSet<Operation *> reached;
  SmallVector<Operation *> open;
  auto reach = [&](Value value) {
    for (Operation *user : value.getUsers())
      if (Operation *at = topLevel(user);
          at && live.contains(at) && at->isBeforeInBlock(end) && reached.insert(at).second)
        open.push_back(at);
  };
  reach(from);
  while (!open.empty())
    for (Value result : open.pop_back_val()->getResults())
      reach(result);
  llvm::SetVector<Operation *> way;
  auto enter = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && reached.contains(op) && way.insert(op))
      open.push_back(op);
  };
  for (OpOperand *operand : to)
    enter(operand->get());
  while (!open.empty())
    for (Value operand : valuesUsedBy(open.pop_back_val()))
      enter(operand);
  return way;
}

std::optional<Residual> BlockFinder::residualAt(ds::BinaryOp sum, SmallVectorImpl<Operation *> &sums) const {
  SmallVector<OpOperand *> leaves;
  sums.push_back(sum);
  for (unsigned i = 0; i < sums.size(); ++i)
    for (OpOperand &operand : sums[i]->getOpOperands()) {
      ds::BinaryOp inner = sumOf(operand.get());
      if (inner && inner->getBlock() == &body && inner.getType() == sum.getType() && isInner(inner))
        sums.push_back(inner);
      else
        leaves.push_back(&operand);
    }
  // The stream is what the others are computed of; where there are several, the first one.
  OpOperand *stream = nullptr;
  llvm::SetVector<Operation *> way;
  for (OpOperand *leaf : leaves) {
    if (leaf->get().getType() != sum.getType())
      continue;
    SmallVector<OpOperand *> others;
    llvm::copy_if(leaves, std::back_inserter(others), [&](OpOperand *other) { return other != leaf; });
    llvm::SetVector<Operation *> ops = between(leaf->get(), others, sum);
    if (ops.size() > way.size()) {
      stream = leaf;
      way = std::move(ops);
    }
  }
  if (!stream)
    return std::nullopt;
  Residual residual;
  for (OpOperand *leaf : leaves) {
    Operation *maker = leaf->get().getDefiningOp();
    if (leaf == stream)
      continue;
    // What adds up several places of a stream, as a skip connection does, or a mean of all layers, is none of its
    // blocks.
    if (leaf->get() == stream->get() || outputs.contains(leaf->get()))
      return std::nullopt;
    residual.addsOthers |=
        maker && !isConstant(maker) && !way.contains(maker) && leaf->get().getType() == sum.getType();
  }
  residual.input = stream->get();
  residual.output = sum.getResult();
  way.insert_range(ArrayRef<Operation *>(sums));
  SmallVector<Operation *> sorted = way.takeVector();
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  residual.ops.insert_range(sorted);
  for (OpOperand *leaf : leaves)
    if (leaf != stream)
      residual.added.push_back(leaf);
  llvm::raw_string_ostream text(residual.signature);
  for (Operation *op : sorted) {
    text << op->getName();
    if (Attribute kind = op->getAttr("kind"))
      text << " " << kind;
    for (Type type : op->getResultTypes())
      text << " " << type;
    text << "\n";
  }
  return residual;
}

/// One of this sum, or else those of the sums that it takes in; whether there are any.
bool BlockFinder::addResiduals(ds::BinaryOp sum) {
  SmallVector<Operation *> sums;
  auto residual = residualAt(sum, sums);
  bool hasAny = false;
  if (!residual || residual->addsOthers)
    for (Operation *inner : ArrayRef<Operation *>(sums).drop_front())
      if (inner == sum.getLhs().getDefiningOp() || inner == sum.getRhs().getDefiningOp())
        hasAny |= addResiduals(cast<ds::BinaryOp>(inner));
  if (hasAny || !residual)
    return hasAny;
  outputs.insert(residual->output);
  residuals.push_back(std::move(*residual));
  return true;
}

/// A reader that counts of what ops of a block compute, the last sum apart.
Operation *BlockFinder::liveReader(Value value, const llvm::SetVector<Operation *> &inside) const {
  for (Operation *user : value.getUsers())
    if (Operation *at = topLevel(user); live.contains(at) && !inside.contains(at))
      return at;
  return judged.contains(value) ? body.getTerminator() : nullptr;
}

/// Whether a value is another one, or that and what comes from elsewhere.
bool BlockFinder::isReachedBySums(Value value, Value from) const {
  llvm::SetVector<Value> open;
  open.insert(value);
  for (unsigned i = 0; i < open.size(); ++i) {
    if (open[i] == from)
      return true;
    if (ds::BinaryOp sum = outputs.contains(open[i]) ? ds::BinaryOp() : sumOf(open[i])) {
      open.insert(sum.getLhs());
      open.insert(sum.getRhs());
    }
  }
  return false;
}

/// Whether nothing that counts reads what the sum is made of; says what does, for a message.
bool BlockFinder::isPartOf(const Residual &residual) {
  for (Operation *op : residual.ops)
    for (Value result : op->getResults())
      if (Operation *reader = result == residual.output ? nullptr : liveReader(result, residual.ops)) {
        found.nearest = "what '" + nodeOf(op) + "' computes for the sum '" + nodeOf(residual.output.getDefiningOp()) +
                        "' is read by '" + nodeOf(reader) + "', too";
        return false;
      }
  return true;
}

/// A residual sum whose norm is what the next one adds to, and nothing else.
void BlockFinder::findPostNorm() {
  llvm::DenseSet<Value> sums;
  for (const Residual &residual : residuals)
    sums.insert(residual.output);
  for (const Residual &residual : residuals) {
    auto [norm, normalized] = normBehind(residual.input);
    if (norm && sums.contains(normalized) && !found.postNorm)
      found.postNorm = norm;
  }
}

ResidualBlocks BlockFinder::run() {
  for (Operation &op : body)
    if (ds::BinaryOp sum = op.getNumResults() == 1 ? sumOf(op.getResult(0)) : ds::BinaryOp();
        sum && live.contains(&op) && !isInner(sum))
      addResiduals(sum);
  llvm::sort(residuals, [](const Residual &a, const Residual &b) {
    return a.output.getDefiningOp()->isBeforeInBlock(b.output.getDefiningOp());
  });
  findPostNorm();
  if (found.postNorm)
    return found;
  llvm::DenseSet<Value> taken;
  for (size_t first = 0; first < residuals.size(); ++first) {
    if (taken.contains(residuals[first].output) || !isPartOf(residuals[first]))
      continue;
    std::vector<Residual> stream = {residuals[first]};
    taken.insert(stream.back().output);
    for (size_t next = first + 1; next < residuals.size(); ++next)
      if (isReachedBySums(residuals[next].input, stream.back().output) && isPartOf(residuals[next])) {
        stream.push_back(residuals[next]);
        taken.insert(stream.back().output);
      }
    addBlocks(stream);
  }
  takeBlocks();
  // Depth counts along the function, whichever stream a block belongs to.
  llvm::sort(found.blocks, [](const ResidualBlock &a, const ResidualBlock &b) {
    return a.output.getDefiningOp()->isBeforeInBlock(b.output.getDefiningOp());
  });
  llvm::StringMap<unsigned> named;
  for (const ResidualBlock &block : found.blocks)
    ++named[block.name];
  for (auto [number, block] : llvm::enumerate(found.blocks)) {
    std::string own = "block " + std::to_string(number);
    if (block.name.empty())
      block.name = own;
    else if (named.lookup(block.name) > 1) // nodes of one scope, which numbers no layers
      block.name += ", " + own;
  }
  if (found.blocks.empty() && found.nearest.empty())
    found.nearest = residuals.empty() ? "nothing is added to what it is computed of"
                                      : "no residual sums repeat along a stream, and none has an attention";
  return found;
}

/// The part of a stream that repeats most: `period` sums are a block.
void BlockFinder::addBlocks(ArrayRef<Residual> stream) {
  size_t begin = 0, period = 0, covered = 0;
  for (size_t length = 1; 2 * length <= stream.size(); ++length)
    for (size_t start = 0; start + 2 * length <= stream.size(); ++start) {
      size_t end = start + length;
      while (end < stream.size() && stream[end].signature == stream[end - length].signature)
        ++end;
      size_t whole = (end - start) / length * length;
      if (whole >= 2 * length && whole > covered) {
        begin = start;
        period = length;
        covered = whole;
      }
    }
  auto attends = [](const Residual &residual) { return residual.signature.find("ds.attention") != std::string::npos; };
  if (period == 0 && llvm::any_of(stream, attends))
    period = covered = stream.size();
  Candidates &own = candidates.emplace_back();
  own.repeats = covered > period;
  own.attends = llvm::any_of(stream.slice(begin, covered), attends);
  for (size_t at = 0; at < covered; at += period) {
    ResidualBlock block = join(stream.slice(begin + at, period));
    // What a sum within the block is read for elsewhere would be missing where the block is dropped.
    bool isWhole = llvm::all_of(block.ops, [&](Operation *op) {
      return llvm::all_of(op->getResults(),
                          [&](Value result) { return result == block.output || !liveReader(result, block.ops); });
    });
    if (isWhole)
      own.blocks.push_back(std::move(block));
    else
      found.nearest = "a sum within '" + block.name + "' is read outside of it";
  }
}

/// Of streams within one another: those that repeat before those that do not, those with attentions before others,
/// then the inner ones.
void BlockFinder::takeBlocks() {
  auto isEarlier = [](Operation *a, Operation *b) { return a != b && a->isBeforeInBlock(b); };
  SmallVector<Candidates *> order;
  for (Candidates &of : candidates)
    if (!of.blocks.empty())
      order.push_back(&of);
  llvm::sort(order, [&](Candidates *a, Candidates *b) {
    auto rank = [](Candidates *of) { return std::tuple(!of->repeats, !of->attends, of->blocks.front().ops.size()); };
    return rank(a) != rank(b)
               ? rank(a) < rank(b)
               : isEarlier(a->blocks.front().output.getDefiningOp(), b->blocks.front().output.getDefiningOp());
  });
  llvm::DenseSet<Operation *> owned;
  for (Candidates *of : order)
    for (ResidualBlock &block : of->blocks)
      if (llvm::none_of(block.ops, [&](Operation *op) { return owned.contains(op); })) {
        owned.insert_range(block.ops);
        found.blocks.push_back(std::move(block));
      }
}

/// The longest scope of names: "/h.0/attn/MatMul" and "/h.0/mlp/Add" share "/h.0".
static std::string sharedScope(ArrayRef<std::string> names, char separator) {
  SmallVector<StringRef> shared;
  bool isFirst = true;
  for (StringRef name : names) {
    SmallVector<StringRef> scopes;
    name.split(scopes, separator);
    scopes.pop_back(); // the node's own name
    if (scopes.empty())
      continue; // of no scope, as what optimizers of graphs add
    size_t same = 0;
    while (same < std::min(scopes.size(), shared.size()) && scopes[same] == shared[same])
      ++same;
    if (isFirst)
      shared = scopes;
    else
      shared.truncate(same);
    isFirst = false;
  }
  return llvm::join(shared, StringRef(&separator, 1));
}

/// What its nodes are called, or else its weights: "/h.0" or "h.0"; empty where neither shares a scope.
static std::string nameOf(const llvm::SetVector<Operation *> &ops) {
  SmallVector<std::string> nodes, weights;
  for (Operation *op : ops) {
    nodes.push_back(nodeOf(op));
    for (Value operand : valuesUsedBy(op)) {
      auto argument = dyn_cast<BlockArgument>(operand);
      auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
      if (auto weight = operand.getDefiningOp<ds::WeightOp>())
        weights.push_back(weight.getRecipe().str());
      else if (auto state = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ds::stateAttr)
                                     : StringAttr())
        weights.push_back(state.str());
    }
  }
  std::string name = sharedScope(nodes, '/');
  return name.find_first_not_of('/') == std::string::npos ? sharedScope(weights, '.') : name;
}

ResidualBlock BlockFinder::join(ArrayRef<Residual> parts) const {
  ResidualBlock block;
  block.input = parts.front().input;
  block.output = parts.back().output;
  for (const Residual &part : parts) {
    block.ops.insert_range(part.ops);
    llvm::append_range(block.added, part.added);
  }
  takeWhatOnlyItReads(block);
  SmallVector<Operation *> sorted = block.ops.takeVector();
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  block.ops.insert_range(sorted);
  block.name = nameOf(block.ops);
  for (Operation *op : block.ops)
    for (Value result : op->getResults())
      if (result != block.output &&
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !block.ops.contains(topLevel(user)); }))
        block.escaping.push_back(result);
  return block;
}

/// Keys of an encoder, transposed weights: computed of other things than the stream, and for this block alone.
void BlockFinder::takeWhatOnlyItReads(ResidualBlock &block) const {
  for (Operation &op : llvm::reverse(body)) {
    if (block.ops.contains(&op) || !live.contains(&op) || isConstant(&op) || op.getNumRegions() > 0 ||
        !isMemoryEffectFree(&op) || op.getNumResults() == 0)
      continue;
    auto isInside = [&](Operation *user) { return block.ops.contains(topLevel(user)); };
    bool isOwn = llvm::any_of(op.getUsers(), isInside) && llvm::all_of(op.getUsers(), [&](Operation *user) {
                   return isInside(user) || !live.contains(topLevel(user));
                 });
    // What lies before the stream, such as the sum of embeddings, is no part of the block.
    bool isBefore = llvm::any_of(op.getResults(), [&](Value v) { return v == block.input || judged.contains(v); });
    if (isOwn && !isBefore)
      block.ops.insert(&op);
  }
}

ResidualBlocks findResidualBlocks(func::FuncOp entry, ValueRange judged) { return BlockFinder(entry, judged).run(); }

} // namespace deepstride
