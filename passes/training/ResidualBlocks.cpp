// Blocks are the longest part of a stream that repeats: of a chain of residual sums, each of which adds to the one
// before.
#include "passes/training/ResidualBlocks.h"

#include "passes/training/ResidualSums.h"
#include "passes/training/ReverseSweep.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace deepstride {

namespace {

/// What one stream has: blocks that are alike, or all of it as one.
struct Candidates {
  SmallVector<ResidualBlock> blocks;
  bool repeats = false, attends = false;
};

class BlockFinder {
public:
  BlockFinder(func::FuncOp entry, ValueRange judged)
      : body(entry.getBody().front()), judged(judged.begin(), judged.end()), residuals(entry, judged) {}
  ResidualBlocks run();

private:
  bool isPartOf(const Residual &residual);
  Operation *liveReader(Value value, const llvm::SetVector<Operation *> &inside) const;
  void addBlocks(ArrayRef<Residual> stream);
  void takeBlocks();
  ResidualBlock join(ArrayRef<Residual> residuals) const;
  void takeWhatOnlyItReads(ResidualBlock &block) const;

  Block &body;
  llvm::DenseSet<Value> judged;
  ResidualSums residuals;
  std::vector<Candidates> candidates;
  ResidualBlocks found;
};

} // namespace

static std::string nodeOf(Operation *op) {
  auto node = op->getLoc()->findInstanceOf<NameLoc>();
  return node ? node.getName().str() : std::string();
}

/// A reader that counts of what ops of a block compute, the last sum apart.
Operation *BlockFinder::liveReader(Value value, const llvm::SetVector<Operation *> &inside) const {
  for (Operation *user : value.getUsers())
    if (Operation *at = residuals.topLevel(user); residuals.isLive(at) && !inside.contains(at))
      return at;
  return judged.contains(value) ? body.getTerminator() : nullptr;
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

ResidualBlocks BlockFinder::run() {
  found.postNorm = residuals.postNorm();
  if (found.postNorm)
    return found;
  ArrayRef<Residual> sums = residuals.sums();
  llvm::DenseSet<Value> taken;
  for (size_t first = 0; first < sums.size(); ++first) {
    if (taken.contains(sums[first].output) || !isPartOf(sums[first]))
      continue;
    std::vector<Residual> stream = {sums[first]};
    taken.insert(stream.back().output);
    for (size_t next = first + 1; next < sums.size(); ++next)
      if (residuals.isReached(sums[next].input, [&](Value sum) { return sum == stream.back().output; }) &&
          isPartOf(sums[next])) {
        stream.push_back(sums[next]);
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
    found.nearest = sums.empty() ? "nothing is added to what it is computed of"
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
      if (result != block.output && llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !block.ops.contains(residuals.topLevel(user));
          }))
        block.escaping.push_back(result);
  return block;
}

/// Keys of an encoder, transposed weights: computed of other things than the stream, and for this block alone.
void BlockFinder::takeWhatOnlyItReads(ResidualBlock &block) const {
  for (Operation &op : llvm::reverse(body)) {
    if (block.ops.contains(&op) || !residuals.isLive(&op) || isa<ds::ConstantOp, ds::WeightOp>(op) ||
        op.getNumRegions() > 0 || !isMemoryEffectFree(&op) || op.getNumResults() == 0)
      continue;
    auto isInside = [&](Operation *user) { return block.ops.contains(residuals.topLevel(user)); };
    bool isOwn = llvm::any_of(op.getUsers(), isInside) && llvm::all_of(op.getUsers(), [&](Operation *user) {
                   return isInside(user) || !residuals.isLive(residuals.topLevel(user));
                 });
    // What lies before the stream, such as the sum of embeddings, is no part of the block.
    bool isBefore = llvm::any_of(op.getResults(), [&](Value v) { return v == block.input || judged.contains(v); });
    if (isOwn && !isBefore)
      block.ops.insert(&op);
  }
}

ResidualBlocks findResidualBlocks(func::FuncOp entry, ValueRange judged) { return BlockFinder(entry, judged).run(); }

} // namespace deepstride
