// Multiply-adds are those of products, convolutions and attention, as anybody counts them by hand; what moves elements
// has no work, what computes one element from few has one operation for each.
#include "passes/memory/NodeWork.h"

#include "dialects/ds/Provenance.h"
#include "dialects/ds/Traffic.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace deepstride {

static OpWork products(const SizeExpr &macs, const SizeExpr &others = 0) {
  return {macs, macs * SizeExpr(2) + others, 0, false};
}

/// Scores and what they weigh; `ofKeys` and `ofValues` count products with rows of the key's and the value's width.
template <typename Attention>
static OpWork attention(Attention op, llvm::function_ref<SizeVector(Value)> sizesOf, int64_t ofKeys, int64_t ofValues,
                        int64_t again) {
  SizeVector query = sizesOf(op.getQuery()), key = sizesOf(op.getKey()), value = sizesOf(op.getValue());
  SizeExpr scores = query[0] * query[1] * query[2] * key[2];
  OpWork work = products(scores * (query[3] * SizeExpr(ofKeys) + value[3] * SizeExpr(ofValues)), scores);
  work.again = scores * query[3] * SizeExpr(again);
  work.mayBeLess = static_cast<bool>(op.getWindow());
  return work;
}

static OpWork linearAttention(ds::LinearAttentionOp op, llvm::function_ref<SizeVector(Value)> sizesOf) {
  SizeVector query = sizesOf(op.getQuery()), key = sizesOf(op.getKey()), value = sizesOf(op.getValue());
  // Per step and key head one update of the state, with `delta` one product with it before, and one per query head.
  SizeExpr state = key[0] * key[2] * key[3] * value[3];
  return products(state * (key[1] * SizeExpr(op.getDelta() ? 2 : 1) + query[1]), state * key[1]);
}

OpWork workOf(Operation *op, llvm::function_ref<SizeVector(Value)> sizesOf) {
  auto each = [&](Value value, int64_t times = 1) -> OpWork {
    return {0, product(sizesOf(value)) * SizeExpr(times), 0, false};
  };
  return llvm::TypeSwitch<Operation *, OpWork>(op)
      .Case([&](ds::MatmulOp matmul) {
        SizeVector lhs = sizesOf(matmul.getLhs());
        const SizeExpr &depth = matmul.getTranspose()[0] ? lhs[lhs.size() - 2] : lhs.back();
        return products(product(sizesOf(matmul.getResult())) * depth);
      })
      .Case([&](ds::LinearOp linear) {
        return products(product(sizesOf(linear.getResult())) * sizesOf(linear.getInput()).back());
      })
      .Case([&](ds::ConvOp conv) {
        SizeVector weight = sizesOf(conv.getWeight());
        return products(product(sizesOf(conv.getResult())) * product(ArrayRef(weight).drop_front()));
      })
      .Case([&](ds::AttentionOp op) { return attention(op, sizesOf, 1, 1, 0); })
      // Of the query, of the key, and the scores once more; of the value and of the weights.
      .Case([&](ds::AttentionGradientOp op) { return attention(op, sizesOf, 3, 2, 1); })
      .Case([&](ds::LinearAttentionOp op) { return linearAttention(op, sizesOf); })
      .Case([&](ds::PoolOp pool) {
        int64_t taps = 1;
        for (int64_t size : pool.getKernel())
          taps *= size;
        return each(pool.getResult(), taps);
      })
      .Case<ds::LayerNormOp, ds::RmsNormOp>([&](auto norm) { return each(norm.getInput(), 2); })
      .Case([&](ds::RotaryOp rotary) -> OpWork {
        SizeVector turned = sizesOf(rotary.getResult());
        if (rotary.getFirst())
          turned.back() = SizeExpr(static_cast<int64_t>(*rotary.getFirst()));
        return {0, product(turned) * SizeExpr(3), 0, false};
      })
      .Case<ds::ReduceOp, ds::ArgReduceOp, ds::SoftmaxOp, ds::CumulativeOp, ds::ArgsortOp, ds::TopKOp, ds::SuppressOp,
            ds::QuantizeRowsOp>([&](Operation *scan) { return each(scan->getOperand(0)); })
      .Case<ds::CastOp, ds::BitcastOp, ds::DropoutOp, ds::SelectOp>([](Operation *) { return OpWork(); })
      .Default([&](Operation *other) {
        auto element = dyn_cast<ds::PerElement>(other);
        bool computes = element && element.isPointwise() && other->getNumOperands() > 0;
        return computes ? each(other->getResult(0)) : OpWork();
      });
}

/// Bytes that the op itself reads and writes of what is in memory.
static SizeExpr bytesOf(Operation *op, ArrayRef<Value> operands, ValueRange yielded,
                        llvm::function_ref<SizeVector(Value)> sizesOf) {
  SmallVector<Value> read;
  for (Value operand : op->getOperands())
    if (llvm::is_contained(operands, operand) && !llvm::is_contained(read, operand))
      read.push_back(operand);
  SizeExpr bytes = 0;
  auto add = [&](Value value, const std::optional<SizeExpr> &elements) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    bytes = bytes + elements.value_or(product(sizesOf(value))) * SizeExpr(ds::bytesOfElement(element));
  };
  // By itself, an op yields all of its results.
  ds::Traffic traffic = ds::trafficOf({op}, read, op->getResults(), sizesOf);
  for (auto [value, elements] : llvm::zip_equal(read, traffic.reads))
    add(value, elements);
  for (auto [value, elements] : llvm::zip_equal(op->getResults(), traffic.writes))
    if (llvm::is_contained(yielded, value))
      add(value, elements);
  return bytes;
}

namespace {
struct NodeShare {
  WorkPlace place;
  StringRef op;
  SizeExpr macs = 0, flops = 0, bytes = 0;
  bool mayBeLess = false;
};

class NodeShares {
public:
  void add(const WorkPlace &place, StringRef op, const OpWork &work, const SizeExpr &bytes, int64_t total) {
    auto found = llvm::find_if(shares, [&](const NodeShare &other) {
      return other.place.node == place.node && other.place.parameter == place.parameter &&
             other.place.part == place.part && other.place.role == place.role;
    });
    if (found == shares.end())
      found = shares.insert(shares.end(), NodeShare{place, op});
    // An operator's name is that of its product, else of the first op that computes: not of a window that this reads.
    bool isMain = SizeExpr(0) != work.macs && found->macs.isConstant(0);
    bool isFirst = SizeExpr(0) != work.flops && found->flops.isConstant(0);
    if (isMain || isFirst)
      found->op = op;
    auto part = [&](const SizeExpr &whole) { return partOf(whole, place.share, total); };
    found->macs = found->macs + part(work.macs);
    found->flops = found->flops + part(work.flops);
    found->bytes = found->bytes + part(bytes);
    found->mayBeLess |= work.mayBeLess;
  }

  ArrayAttr attribute(MLIRContext *context) const {
    Builder b(context);
    SmallVector<Attribute> list;
    for (const NodeShare &share : shares) {
      NamedAttrList fields;
      for (auto [key, text] : {std::pair("node", &share.place.node), std::pair("parameter", &share.place.parameter),
                               std::pair("part", &share.place.part)})
        if (!text->empty())
          fields.set(key, b.getStringAttr(*text));
      fields.set("op", b.getStringAttr(share.op));
      fields.set("role", b.getStringAttr(toString(share.place.role)));
      for (auto [key, size] :
           {std::pair("macs", &share.macs), std::pair("flops", &share.flops), std::pair("bytes", &share.bytes)})
        fields.set(key, toAttribute(context, *size));
      if (share.mayBeLess)
        fields.set("may_be_less", b.getUnitAttr());
      list.push_back(fields.getDictionary(context));
    }
    return b.getArrayAttr(list);
  }

private:
  static SizeExpr partOf(const SizeExpr &whole, int64_t share, int64_t total) {
    if (share == total)
      return whole;
    SizeExpr scaled = whole * SizeExpr(share);
    std::optional<SizeExpr> exact = SizeExpr::exactQuotient(scaled, SizeExpr(total));
    return exact ? *exact : SizeExpr::floorDiv(scaled, SizeExpr(total));
  }

  std::vector<NodeShare> shares;
};
} // namespace

/// As kernels of single ops are called.
static StringRef nameOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](ds::FusedOp) { return "copy"; })
      .Case([](ds::UnaryOp unary) { return ds::stringifyUnaryKind(unary.getKind()); })
      .Case([](ds::BinaryOp binary) { return ds::stringifyBinaryKind(binary.getKind()); })
      .Default([](Operation *other) { return other->getName().stripDialect(); });
}

ArrayAttr nodeWork(MLIRContext *context, ArrayRef<Operation *> body, ArrayRef<Value> operands, ValueRange yielded,
                   llvm::function_ref<SizeVector(Value)> sizesOf) {
  NodeShares shares;
  for (Operation *op : body) {
    OpWork work = workOf(op, sizesOf);
    SizeExpr bytes = bytesOf(op, operands, yielded, sizesOf);
    SmallVector<WorkPlace> places = workPlacesOf(op);
    int64_t total = 0;
    for (const WorkPlace &place : places)
      total += place.share;
    StringRef name = nameOf(op);
    OpWork again = products(work.again);
    for (WorkPlace place : places) {
      shares.add(place, name, {work.macs - again.macs, work.flops - again.flops, 0, work.mayBeLess}, bytes, total);
      if (again.macs.isConstant(0))
        continue;
      place.role = WorkRole::Recompute;
      shares.add(place, name, {again.macs, again.flops, 0, work.mayBeLess}, 0, total);
    }
  }
  return shares.attribute(context);
}

} // namespace deepstride
