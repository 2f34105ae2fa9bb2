// Builds with DsBuilder, whose inference decides which draws are legal programs. Sizes are drawn as expressions over
// the dimensions n, m and k and the elements of `at`, so that most of them are decided by the run alone.
#include "test/fuzz/ProgramGenerator.h"

#include "dialects/ds/DsBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace deepstride::fuzz {

Choices::Choices(const uint8_t *data, size_t size) : next(data), end(data + size) {
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ data[i]) * 1099511628211u;
  random.seed(static_cast<unsigned>(hash ^ hash >> 32));
}

unsigned Choices::below(unsigned count) {
  unsigned drawn = next < end ? *next++ : static_cast<unsigned>(random() >> 8);
  return drawn % count;
}

namespace {

struct Input {
  const char *name, *type;
  SizeVector dims;
};

class Generator {
public:
  Generator(MLIRContext &context, Choices &choices) : context(context), choices(choices) {}
  OwningOpRef<ModuleOp> run();

private:
  Type typeOf(StringRef name);
  SizeExpr symbol() { return choices.among(symbols); }
  SizeExpr size(int depth = 2);
  SizeVector sizesLike(Value value);
  Value any() { return choices.among(values); }
  Value ofType(Type type, int64_t rank = -1);
  int64_t axisOf(Value value) {
    return choices.below(static_cast<unsigned>(std::max<int64_t>(builder->rank(value), 1)));
  }

  Values draw();
  Value drawMovement();
  Value drawIndexed();
  Value drawArithmetic();
  Values drawSelection();
  Value drawWindow();
  Value drawBranch();
  void keep(const Values &drawn);

  MLIRContext &context;
  Choices &choices;
  SizeVector symbols = {SizeExpr::symbol("n"), SizeExpr::symbol("m"), SizeExpr::symbol("k")};
  std::vector<Value> values;
  std::unique_ptr<DsBuilder> builder;
  unsigned counts = 0;
};

Type Generator::typeOf(StringRef name) {
  return name == "f32"   ? Type(Float32Type::get(&context))
         : name == "f16" ? Type(Float16Type::get(&context))
                         : Type(IntegerType::get(&context, name == "i1"    ? 1
                                                           : name == "i32" ? 32
                                                                           : 64));
}

SizeExpr Generator::size(int depth) {
  if (depth == 0 || choices.oneIn(2))
    return choices.oneIn(3) ? SizeExpr(static_cast<int64_t>(choices.below(6)) - 1) : symbol();
  SizeExpr a = size(depth - 1), b = size(depth - 1);
  switch (choices.below(7)) {
  case 0: return a + b;
  case 1: return a - b;
  case 2: return SizeExpr::min(a, b);
  case 3: return SizeExpr::max(a, b);
  case 4: return SizeExpr::floorDiv(a, 2);
  case 5: return SizeExpr::max(a, 0);
  default: return a * b;
  }
}

/// The sizes of a value, some of them replaced.
SizeVector Generator::sizesLike(Value value) {
  SizeVector sizes = builder->sizes(value);
  for (SizeExpr &one : sizes)
    if (choices.oneIn(2))
      one = size();
  return sizes;
}

/// A value of the type (and rank, unless it is negative); null where there is none.
Value Generator::ofType(Type type, int64_t rank) {
  std::vector<Value> fitting;
  for (Value value : values)
    if (builder->element(value) == type && (rank < 0 || builder->rank(value) == rank))
      fitting.push_back(value);
  return fitting.empty() ? Value() : choices.among(fitting);
}

Value Generator::drawMovement() {
  Value x = any();
  SizeVector shape = sizesLike(x), zeros(shape.size(), 0), own = builder->sizes(x);
  switch (choices.below(9)) {
  case 0: {
    SizeVector wanted;
    for (unsigned i = 0, rank = choices.below(4); i < rank; ++i)
      wanted.push_back(size());
    if (choices.oneIn(2) && !wanted.empty()) // one that a run may well meet
      wanted.back() = product(own);
    return builder->reshape(x, wanted);
  }
  case 1: return builder->broadcast(x, shape);
  case 2: {
    SmallVector<int64_t> order = axesFrom(0, builder->rank(x));
    if (order.size() > 1)
      std::swap(order[choices.below(static_cast<unsigned>(order.size()))], order.back());
    return builder->transpose(x, order);
  }
  case 3: {
    SizeVector starts = zeros;
    SmallVector<int64_t> steps(shape.size(), 1);
    for (size_t i = 0; i < shape.size(); ++i)
      if (choices.oneIn(2)) {
        starts[i] = size();
        steps[i] = static_cast<int64_t>(choices.among(std::vector<int64_t>{1, 1, -1, 2, -3}));
      }
    return builder->slice(x, starts, shape, steps);
  }
  case 4: {
    Value into = ofType(builder->element(x), builder->rank(x));
    for (SizeExpr &start : zeros)
      start = choices.oneIn(2) ? size() : start;
    return builder->create<ds::InsertOp>({x, into}, x, into, builder->list(zeros));
  }
  case 5: {
    for (SizeExpr &amount : zeros)
      amount = choices.oneIn(2) ? size() : amount;
    SizeVector high = zeros;
    std::reverse(high.begin(), high.end());
    auto kind = static_cast<ds::PadKind>(choices.below(4));
    return builder->pad(kind, x, builder->scalar(builder->element(x), 1), zeros, high);
  }
  case 6: {
    Value other = ofType(builder->element(x), builder->rank(x));
    return other && !shape.empty() ? builder->concat(axisOf(x), {x, other}) : Value();
  }
  case 7: return builder->iota(0, {size()});
  default: return builder->shape({size(), size()});
  }
}

Value Generator::drawIndexed() {
  Value x = any(), indices = ofType(typeOf(choices.oneIn(3) ? "i32" : "i64"));
  if (!indices || builder->rank(x) == 0)
    return {};
  int64_t axis = axisOf(x);
  auto kind = static_cast<ds::ScatterKind>(choices.below(builder->element(x).isInteger(1) ? 1 : 5));
  // Indices of a tensor's rank are rare: they are made of others.
  auto likeRank = [&](Value value) {
    SizeVector sizes(builder->rank(x), 1);
    sizes[axis] = product(builder->sizes(value));
    return builder->reshape(value, sizes);
  };
  switch (choices.below(5)) {
  case 0: return builder->gather(axis, x, indices);
  case 1: {
    Value all = likeRank(indices);
    return builder->create<ds::GatherElementsOp>({x, all}, axis, x, all);
  }
  case 2: return builder->create<ds::GatherNdOp>({x, indices}, static_cast<int64_t>(choices.below(2)), x, indices);
  case 3: {
    Value all = likeRank(indices);
    Value updates = all ? builder->broadcast(builder->scalar(builder->element(x), 2), builder->sizes(all)) : Value();
    return builder->create<ds::ScatterElementsOp>({x, all, updates}, kind, axis, x, all, updates);
  }
  default: {
    SizeVector own = builder->sizes(x), rows = builder->sizes(indices);
    auto tuple = rows.empty() ? std::nullopt : rows.back().constant();
    if (!tuple || *tuple > static_cast<int64_t>(own.size()) || *tuple < 0)
      return {};
    rows.pop_back();
    rows.insert(rows.end(), own.begin() + *tuple, own.end());
    Value updates = builder->broadcast(builder->scalar(builder->element(x), 3), rows);
    return builder->create<ds::ScatterNdOp>({x, indices, updates}, kind, x, indices, updates);
  }
  }
}

Value Generator::drawArithmetic() {
  Value x = any(), y = ofType(builder->element(x));
  Type f32 = typeOf("f32");
  switch (choices.below(9)) {
  case 0: {
    static const std::vector<ds::UnaryKind> kinds = {ds::UnaryKind::abs,  ds::UnaryKind::neg,  ds::UnaryKind::exp,
                                                     ds::UnaryKind::relu, ds::UnaryKind::sqrt, ds::UnaryKind::sign};
    return builder->unary(choices.among(kinds), x);
  }
  case 1:
  case 2: {
    static const std::vector<ds::BinaryKind> kinds = {ds::BinaryKind::add, ds::BinaryKind::sub, ds::BinaryKind::mul,
                                                      ds::BinaryKind::div, ds::BinaryKind::mod, ds::BinaryKind::max,
                                                      ds::BinaryKind::lt,  ds::BinaryKind::eq};
    return builder->binary(choices.among(kinds), x, y);
  }
  case 3: return builder->select(ofType(typeOf("i1")), x, y);
  case 4: return builder->cast(x, typeOf(choices.among(std::vector<const char *>{"f32", "i64", "i32", "i1", "f16"})));
  case 5: {
    SmallVector<int64_t> axes;
    for (int64_t axis = 0; axis < builder->rank(x); ++axis)
      if (choices.oneIn(2))
        axes.push_back(axis);
    return builder->reduce(static_cast<ds::ReduceKind>(choices.below(5)), x, axes, choices.oneIn(2));
  }
  case 6: return builder->rank(x) > 0 && builder->element(x) == f32 ? builder->softmax(x, axisOf(x)) : Value();
  case 7: {
    Value a = ofType(f32, 2), b = ofType(f32, 2);
    return a && b ? builder->matmul(a, b, choices.oneIn(2), choices.oneIn(2)) : Value();
  }
  default:
    return builder->create<ds::CumulativeOp>({x}, ds::ReduceKind::sum, x, axisOf(x), choices.oneIn(2),
                                             choices.oneIn(2));
  }
}

Values Generator::drawSelection() {
  Value x = any();
  if (builder->rank(x) == 0)
    return {};
  switch (choices.below(4)) {
  case 0: return builder->topK(x, axisOf(x), size(), choices.oneIn(2));
  case 1:
    return {builder->argReduce(choices.oneIn(2) ? ds::ReduceKind::max : ds::ReduceKind::min, x, axisOf(x),
                               choices.oneIn(2), false)};
  case 2: return {builder->create<ds::ArgsortOp>({x}, x)};
  default: {
    std::string count = "count_" + std::to_string(counts++);
    Value found = builder->create<ds::NonZeroOp>({x}, x, builder->getBuilder().getStringAttr(count));
    if (found)
      symbols.push_back(SizeExpr::symbol(count));
    return {found};
  }
  }
}

Value Generator::drawWindow() {
  Value x = ofType(typeOf("f32"), 3);
  if (!x)
    return {};
  auto few = [&](unsigned from, unsigned count) { return SmallVector<int64_t>{from + choices.below(count)}; };
  auto array = [&](ArrayRef<int64_t> list) { return builder->getBuilder().getDenseI64ArrayAttr(list); };
  SmallVector<int64_t> pads = {choices.below(3), choices.below(3)};
  if (choices.oneIn(2)) {
    Value weight = ofType(typeOf("f32"), 3);
    return builder->create<ds::ConvOp>({x, weight}, x, weight, Value(), array(few(1, 3)), array(pads), array(few(1, 2)),
                                       builder->getBuilder().getI64IntegerAttr(1 + choices.below(2)));
  }
  auto kind = static_cast<ds::PoolKind>(choices.below(3));
  return builder->create<ds::PoolOp>({x}, kind, x, few(1, 3), few(1, 3), pads, few(1, 2), choices.oneIn(2),
                                     choices.oneIn(2), 2);
}

/// One of two values of one shape, by an element of a boolean tensor.
Value Generator::drawBranch() {
  Value x = ofType(typeOf("f32")), flags = ofType(typeOf("i1"));
  if (!x || !flags || builder->rank(flags) == 0)
    return {};
  Value any = builder->reduce(ds::ReduceKind::max, flags, axesFrom(0, builder->rank(flags)), /*keep=*/false);
  if (!any)
    return {};
  OpBuilder &b = builder->getBuilder();
  Value condition = tensor::ExtractOp::create(b, b.getUnknownLoc(), any, ValueRange());
  auto branch = scf::IfOp::create(b, b.getUnknownLoc(), x.getType(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertPoint after = b.saveInsertionPoint();
  for (bool isThen : {true, false}) {
    b.setInsertionPointToStart(isThen ? branch.thenBlock() : branch.elseBlock());
    Value y = builder->unary(isThen ? ds::UnaryKind::exp : ds::UnaryKind::neg, x);
    scf::YieldOp::create(b, b.getUnknownLoc(), y ? y : x);
  }
  b.restoreInsertionPoint(after);
  return succeeded(builder->getAnalysis().visit(branch)) ? branch.getResult(0) : Value();
}

Values Generator::draw() {
  switch (choices.below(10)) {
  case 0:
  case 1:
  case 2:
  case 3: return {drawMovement()};
  case 4:
  case 5: return {drawIndexed()};
  case 6:
  case 7: return {drawArithmetic()};
  case 8: return drawSelection();
  default: return {choices.oneIn(3) ? drawBranch() : drawWindow()};
  }
}

void Generator::keep(const Values &drawn) {
  constexpr int64_t mostAxes = 5;
  for (Value value : drawn)
    if (value && builder->rank(value) <= mostAxes)
      values.push_back(value);
}

OwningOpRef<ModuleOp> Generator::run() {
  SizeExpr n = SizeExpr::symbol("n"), m = SizeExpr::symbol("m"), k = SizeExpr::symbol("k");
  std::vector<Input> inputs = {{"x", "f32", {n, m}},    {"y", "f32", {n, 3}}, {"v", "f32", {m}},
                               {"w", "f32", {4, m, 2}}, {"c", "i1", {n, m}},  {"i", "i64", {k}},
                               {"j", "i32", {k, 2}},    {"h", "f16", {m, 4}}, {"at", "i64", {6}}};
  bool hasState = choices.oneIn(2);
  if (hasState)
    inputs.push_back({"cache", "f32", {5, 4}});
  OpBuilder b(&context);
  Location where = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(where);
  SmallVector<Type> types;
  for (const Input &input : inputs)
    types.push_back(TensorFacts{typeOf(input.type), input.dims, std::nullopt}.type());
  b.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(b, where, "main", b.getFunctionType(types, {}));
  function->setAttr(ds::entryAttr, b.getUnitAttr());
  for (auto [index, input] : llvm::enumerate(inputs)) {
    unsigned number = static_cast<unsigned>(index);
    function.setArgAttr(number, ds::nameAttr, b.getStringAttr(input.name));
    function.setArgAttr(number, ds::dimsAttr, toAttribute(&context, input.dims));
  }
  if (hasState)
    function.setArgAttr(static_cast<unsigned>(inputs.size()) - 1, ds::stateAttr, b.getStringAttr("cache"));
  b.setInsertionPointToStart(function.addEntryBlock());
  auto analysis = SizeAnalysis::run(function);
  if (failed(analysis))
    return {};
  builder = std::make_unique<DsBuilder>(b, *analysis);
  builder->setLocation(NameLoc::get(b.getStringAttr("op"))); // the import phase wants to know where ops come from
  values.assign(function.args_begin(), function.args_end());
  for (int element = 0; element < 6; ++element)
    symbols.push_back(SizeExpr::element("at", element));

  for (unsigned op = 0, count = 3 + choices.below(22); op < count; ++op)
    keep(draw());

  SmallVector<Value> results(values.end() - std::min<ptrdiff_t>(3, static_cast<ptrdiff_t>(values.size()) -
                                                                       static_cast<ptrdiff_t>(inputs.size())),
                             values.end());
  SmallVector<Attribute> names;
  if (hasState) {
    Value cache = function.getArguments().back(), row = builder->broadcast(builder->scalar(builder->f32(), 5), {1, 4});
    SizeVector starts = {size(), 0};
    Value next = builder->create<ds::InsertOp>({row, cache}, row, cache, builder->list(starts));
    results.push_back(next ? next : cache);
  }
  func::ReturnOp::create(builder->getBuilder(), where, results);
  SmallVector<Type> resultTypes;
  for (Value result : results)
    resultTypes.push_back(result.getType());
  function.setType(b.getFunctionType(types, resultTypes));
  for (unsigned i = 0; i < results.size(); ++i)
    if (hasState && i + 1 == results.size())
      function.setResultAttr(i, ds::stateAttr, b.getStringAttr("cache"));
    else
      function.setResultAttr(i, ds::nameAttr, b.getStringAttr("result" + std::to_string(i)));
  return module;
}

} // namespace

OwningOpRef<ModuleOp> generateProgram(MLIRContext &context, Choices &choices) {
  return Generator(context, choices).run();
}

} // namespace deepstride::fuzz
