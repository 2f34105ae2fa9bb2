// Builds with DsBuilder, whose inference decides which draws are legal programs. Sizes are drawn as expressions over
// the dimensions n, m and k and the elements of `at`, so that most of them are decided by the run alone.
#include "test/fuzz/ProgramGenerator.h"

#include "dialects/ds/Contents.h"
#include "dialects/ds/DsBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// Blocks inside of blocks.
constexpr unsigned depthLimit = 2;

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
  Value alike(Value value);
  int64_t axisOf(Value value) {
    return choices.below(static_cast<unsigned>(std::max<int64_t>(builder->rank(value), 1)));
  }

  Values draw();
  Value drawMovement();
  Value drawIndexed();
  Value drawScatter(Value x, Value indices);
  Value likeRank(Value indices, Value x, int64_t axis);
  Value drawArithmetic();
  Values drawSelection();
  Value drawWindow();
  Value drawAnyOf(Value flags);
  Value drawBranch();
  Values drawLoop();
  Value drawUpdate(Value state);
  void keep(const Values &drawn);
  std::string fresh(const char *name) { return name + std::string("_") + std::to_string(counts++); }

  class Scope;

  MLIRContext &context;
  Choices &choices;
  SizeVector symbols = {SizeExpr::symbol("n"), SizeExpr::symbol("m"), SizeExpr::symbol("k")};
  std::vector<Value> values, states;
  std::unique_ptr<DsBuilder> builder;
  unsigned counts = 0, depth = 0;
};

/// What the ops of a block make is seen there alone.
class Generator::Scope {
public:
  explicit Scope(Generator &generator)
      : generator(generator), guard(generator.builder->getBuilder()), symbols(generator.symbols),
        values(generator.values) {
    ++generator.depth;
  }
  ~Scope() {
    generator.symbols = std::move(symbols);
    generator.values = std::move(values);
    --generator.depth;
  }

private:
  Generator &generator;
  OpBuilder::InsertionGuard guard;
  SizeVector symbols;
  std::vector<Value> values;
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

/// A value of the same type and sizes, perhaps the same one.
Value Generator::alike(Value value) {
  std::vector<Value> fitting = {value};
  for (Value other : values)
    if (other != value && other.getType() == value.getType() && builder->sizes(other) == builder->sizes(value))
      fitting.push_back(other);
  return choices.among(fitting);
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
  switch (choices.below(5)) {
  case 0: return builder->gather(axis, x, indices);
  case 1: {
    Value all = likeRank(indices, x, axis);
    return builder->create<ds::GatherElementsOp>({x, all}, axis, x, all);
  }
  case 2: return builder->create<ds::GatherNdOp>({x, indices}, static_cast<int64_t>(choices.below(2)), x, indices);
  default: return drawScatter(x, indices);
  }
}

/// Indices of a tensor's rank are rare: they are made of others.
Value Generator::likeRank(Value indices, Value x, int64_t axis) {
  SizeVector sizes(builder->rank(x), 1);
  sizes[axis] = product(builder->sizes(indices));
  return builder->reshape(indices, sizes);
}

Value Generator::drawScatter(Value x, Value indices) {
  auto kind = static_cast<ds::ScatterKind>(choices.below(builder->element(x).isInteger(1) ? 1 : 5));
  if (choices.oneIn(2)) {
    int64_t axis = axisOf(x);
    Value all = likeRank(indices, x, axis);
    Value updates = all ? builder->broadcast(builder->scalar(builder->element(x), 2), builder->sizes(all)) : Value();
    return builder->create<ds::ScatterElementsOp>({x, all, updates}, kind, axis, x, all, updates);
  }
  SizeVector own = builder->sizes(x), rows = builder->sizes(indices);
  auto tuple = rows.empty() ? std::nullopt : rows.back().constant();
  if (!tuple || *tuple > static_cast<int64_t>(own.size()) || *tuple < 0)
    return {};
  rows.pop_back();
  rows.insert(rows.end(), own.begin() + *tuple, own.end());
  Value updates = builder->broadcast(builder->scalar(builder->element(x), 3), rows);
  return builder->create<ds::ScatterNdOp>({x, indices, updates}, kind, x, indices, updates);
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
    std::string count = fresh("count");
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

/// Whether any of the flags is set, as a tensor without axes.
Value Generator::drawAnyOf(Value flags) {
  if (!flags || builder->rank(flags) == 0)
    return flags;
  return builder->reduce(ds::ReduceKind::max, flags, axesFrom(0, builder->rank(flags)), /*keep=*/false);
}

/// One of two values of one shape, by an element of a boolean tensor.
Value Generator::drawBranch() {
  Value x = any(), flag = drawAnyOf(ofType(typeOf("i1")));
  if (!flag || depth == depthLimit)
    return {};
  OpBuilder &b = builder->getBuilder();
  Location where = builder->getLocation();
  Value condition = tensor::ExtractOp::create(b, where, flag, ValueRange());
  auto branch = scf::IfOp::create(b, where, x.getType(), condition, /*withElseRegion=*/true);
  for (bool isThen : {true, false}) {
    Scope scope(*this);
    b.setInsertionPointToStart(isThen ? branch.thenBlock() : branch.elseBlock());
    for (unsigned op = 0, count = 1 + choices.below(3); op < count; ++op)
      keep(draw());
    scf::YieldOp::create(b, where, alike(x));
  }
  return succeeded(builder->getAnalysis().visit(branch)) ? branch.getResult(0) : Value();
}

/// A few iterations over carried tensors, which take each other's places or are computed from each other; the number of
/// the iteration is a size.
Values Generator::drawLoop() {
  if (depth == depthLimit)
    return {};
  OpBuilder &b = builder->getBuilder();
  Location where = builder->getLocation();
  Values inits = {!states.empty() && choices.oneIn(2) ? choices.among(states) : any()};
  for (unsigned more = choices.below(3); more > 0; --more)
    inits.push_back(choices.oneIn(3) ? any() : alike(inits[0]));
  Value flag = choices.oneIn(3) ? drawAnyOf(ofType(typeOf("i1"))) : Value();
  if (flag && !isExact(builder->facts(flag)))
    ds::DefineOp::create(b, where, fresh("goes"), flag); // what the body requires must hold only where it runs
  SmallVector<Value> operands = {arith::ConstantIntOp::create(b, where, 0, 64)};
  operands.append(inits);
  if (flag)
    operands.push_back(flag);
  SizeExpr trips = choices.oneIn(3) ? SizeExpr(static_cast<int64_t>(choices.below(5)))
                                    : SizeExpr::min(SizeExpr::max(symbol(), 0), 4);
  SmallVector<Type> types(ValueRange(operands).getTypes());
  SmallVector<Location> places(types.size(), where);
  auto loop = scf::WhileOp::create(b, where, types, operands);
  Scope scope(*this);

  Block *check = b.createBlock(&loop.getBefore(), {}, types, places);
  Value limit = ds::SizeOp::create(b, where, b.getI64Type(), toAttribute(&context, trips));
  Value goesOn = arith::CmpIOp::create(b, where, arith::CmpIPredicate::slt, check->getArgument(0), limit);
  if (flag) {
    Value still = tensor::ExtractOp::create(b, where, check->getArguments().back(), ValueRange());
    goesOn = arith::AndIOp::create(b, where, goesOn, still);
  }
  scf::ConditionOp::create(b, where, goesOn, check->getArguments());

  Block *body = b.createBlock(&loop.getAfter(), {}, types, places);
  auto carried = body->getArguments().drop_front();
  auto carry = [&](ValueRange to) { // of its elements nothing is known
    for (auto [from, value] : llvm::zip_equal(ArrayRef(operands).drop_front(), to))
      builder->getAnalysis().set(value, {builder->element(from), builder->sizes(from), std::nullopt});
  };
  carry(carried);
  values.insert(values.end(), carried.begin(), carried.end());
  std::string number = fresh("i");
  ds::DefineOp::create(b, where, number, body->getArgument(0));
  symbols.push_back(SizeExpr::symbol(number));
  for (unsigned op = 0, count = 1 + choices.below(4); op < count; ++op)
    keep(draw());
  Value one = arith::ConstantIntOp::create(b, where, 1, 64);
  SmallVector<Value> next = {arith::AddIOp::create(b, where, body->getArgument(0), one)};
  for (Value value : carried)
    next.push_back(alike(value));
  scf::YieldOp::create(b, where, next);
  carry(loop.getResults().drop_front());
  return Values(loop.getResults().slice(1, inits.size()));
}

Values Generator::draw() {
  switch (choices.below(11)) {
  case 0:
  case 1:
  case 2:
  case 3: return {drawMovement()};
  case 4:
  case 5: return {drawIndexed()};
  case 6:
  case 7: return {drawArithmetic()};
  case 8: return drawSelection();
  case 9: return drawLoop();
  default: return {choices.oneIn(3) ? drawBranch() : drawWindow()};
  }
}

void Generator::keep(const Values &drawn) {
  constexpr int64_t mostAxes = 5;
  for (Value value : drawn)
    if (value && builder->rank(value) <= mostAxes)
      values.push_back(value);
}

/// A state's next value: another's, a sum of both, or the old one with some of it replaced.
Value Generator::drawUpdate(Value state) {
  switch (choices.below(5)) {
  case 0: {
    Value row = builder->broadcast(builder->scalar(builder->f32(), 5), {1, 4});
    return builder->create<ds::InsertOp>({row, state}, row, state, builder->list({size(), 0}));
  }
  case 1: return drawScatter(state, ofType(typeOf(choices.oneIn(2) ? "i32" : "i64")));
  case 2: return builder->binary(ds::BinaryKind::sub, alike(state), choices.among(states));
  default: return alike(state);
  }
}

OwningOpRef<ModuleOp> Generator::run() {
  SizeExpr n = SizeExpr::symbol("n"), m = SizeExpr::symbol("m"), k = SizeExpr::symbol("k");
  std::vector<Input> inputs = {{"x", "f32", {n, m}},    {"y", "f32", {n, 3}}, {"v", "f32", {m}},
                               {"w", "f32", {4, m, 2}}, {"c", "i1", {n, m}},  {"i", "i64", {k}},
                               {"j", "i32", {k, 2}},    {"h", "f16", {m, 4}}, {"at", "i64", {6}}};
  size_t ownInputs = inputs.size();
  for (const char *name : {"cache", "memo"})
    if (choices.oneIn(2))
      inputs.push_back({name, "f32", {5, 4}});
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
    if (index >= ownInputs)
      function.setArgAttr(number, ds::stateAttr, b.getStringAttr(input.name));
  }
  b.setInsertionPointToStart(function.addEntryBlock());
  auto analysis = SizeAnalysis::run(function);
  if (failed(analysis))
    return {};
  builder = std::make_unique<DsBuilder>(b, *analysis);
  builder->setLocation(NameLoc::get(b.getStringAttr("op"))); // the import phase wants to know where ops come from
  values.assign(function.args_begin(), function.args_end());
  states.assign(values.begin() + static_cast<std::ptrdiff_t>(ownInputs), values.end());
  for (int element = 0; element < 6; ++element)
    symbols.push_back(SizeExpr::element("at", element));

  for (unsigned op = 0, count = 3 + choices.below(22); op < count; ++op)
    keep(draw());

  SmallVector<Value> results(values.end() - std::min<ptrdiff_t>(3, static_cast<ptrdiff_t>(values.size()) -
                                                                       static_cast<ptrdiff_t>(inputs.size())),
                             values.end());
  size_t outputs = results.size();
  for (Value state : states) {
    Value next = drawUpdate(state);
    results.push_back(next && next.getType() == state.getType() ? next : state);
  }
  func::ReturnOp::create(builder->getBuilder(), where, results);
  SmallVector<Type> resultTypes;
  for (Value result : results)
    resultTypes.push_back(result.getType());
  function.setType(b.getFunctionType(types, resultTypes));
  for (unsigned i = 0; i < results.size(); ++i)
    if (i >= outputs)
      function.setResultAttr(i, ds::stateAttr, b.getStringAttr(inputs[ownInputs + i - outputs].name));
    else
      function.setResultAttr(i, ds::nameAttr, b.getStringAttr("result" + std::to_string(i)));
  return module;
}

} // namespace

OwningOpRef<ModuleOp> generateProgram(MLIRContext &context, Choices &choices) {
  return Generator(context, choices).run();
}

} // namespace deepstride::fuzz
