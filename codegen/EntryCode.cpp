// Entry points are a walk over the program: a service call per launch and collective, branches and loops where the
// program has them. Scalars, which only conditions and counters are made of, are in registers. All data about a launch
// is static; layouts follow the structs of runtime/abi/ds_abi.h field by field.
#include "codegen/EntryCode.h"

#include "dialects/dist/DistDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IRBuilder.h"

#include "runtime/abi/ds_abi.h"

using namespace mlir;

namespace deepstride {

namespace {

class EntryEmitter {
public:
  EntryEmitter(llvm::Module &module, func::FuncOp function, const EntryPlan &plan)
      : module(module), context(module.getContext()), function(function), plan(plan), b(context) {
    pointer = llvm::PointerType::get(context, 0);
    i32 = llvm::Type::getInt32Ty(context);
    i64 = llvm::Type::getInt64Ty(context);
  }

  FailureOr<llvm::Function *> run() {
    auto *type = llvm::FunctionType::get(i32, {pointer}, false);
    entry = llvm::Function::Create(type, llvm::Function::InternalLinkage, "entry." + plan.name, module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "", entry));
    call = entry->getArg(0);
    services = field(call, offsetof(ds_call, services), pointer);
    serviceContext = field(call, offsetof(ds_call, context), pointer);
    buffers = field(call, offsetof(ds_call, buffers), pointer);
    sizes = field(call, offsetof(ds_call, sizes), pointer);
    failed = llvm::BasicBlock::Create(context, "failed", entry);
    llvm::IRBuilder<> exit(failed);
    result = exit.CreatePHI(i32, 2);
    exit.CreateRet(result);
    if (mlir::failed(emit(function.getBody().front())))
      return failure();
    b.CreateRet(b.getInt32(DS_OK));
    if (result->getNumIncomingValues() == 0) {
      result->replaceAllUsesWith(llvm::PoisonValue::get(i32));
      failed->eraseFromParent();
    }
    return entry;
  }

private:
  llvm::Value *field(llvm::Value *base, uint64_t offset, llvm::Type *type) {
    return b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
  }

  llvm::Constant *table(ArrayRef<uint32_t> values) {
    auto *data = llvm::ConstantDataArray::get(context, values);
    auto *global = new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return global;
  }

  void request(uint64_t service, ArrayRef<llvm::Value *> arguments) {
    SmallVector<llvm::Type *> types;
    for (llvm::Value *argument : arguments)
      types.push_back(argument->getType());
    llvm::Value *status =
        b.CreateCall(llvm::FunctionType::get(i32, types, false), field(services, service, pointer), arguments);
    auto *next = llvm::BasicBlock::Create(context, "", entry, failed);
    result->addIncoming(status, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpEQ(status, b.getInt32(DS_OK)), next, failed);
    b.SetInsertPoint(next);
  }

  llvm::Constant *staticData(llvm::Constant *data) {
    return new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
  }

  void emitLaunch(uint32_t site) {
    const EntryPlan::Launch &launch = plan.launches[site];
    llvm::Function *kernel = module.getFunction(launch.kernel);
    auto word = [&](uint64_t value) { return llvm::ConstantInt::get(i32, value); };
    auto *data = llvm::ConstantStruct::getAnon(context, {word(sizeof(ds_launch)), word(site), kernel,
                                                         word(launch.buffers.size()), word(launch.sizes.size()),
                                                         table(launch.buffers), table(launch.sizes), word(launch.grid),
                                                         word(launch.scratch), word(launch.grain), word(0)});
    request(offsetof(ds_services, launch), {serviceContext, staticData(data)});
  }

  void emitCollective(uint32_t number, uint64_t service) {
    llvm::Constant *&data = collectiveData[number];
    if (!data)
      data = table({static_cast<uint32_t>(sizeof(ds_collective)), number});
    request(service, {serviceContext, data});
  }

  LogicalResult emitBranch(scf::IfOp branch) {
    llvm::Value *condition = scalar(branch.getCondition());
    if (!condition)
      return branch.emitOpError("expects its condition to be read from a tensor");
    auto *yes = llvm::BasicBlock::Create(context, "then", entry, failed);
    auto *no = llvm::BasicBlock::Create(context, "else", entry, failed);
    auto *join = llvm::BasicBlock::Create(context, "join", entry, failed);
    b.CreateCondBr(condition, yes, no);
    if (llvm::any_of(branch.getResultTypes(), [](Type type) { return !isa<RankedTensorType>(type); }))
      return branch.emitOpError("expects results that are tensors");
    for (auto [block, region] : {std::pair(yes, &branch.getThenRegion()), std::pair(no, &branch.getElseRegion())}) {
      b.SetInsertPoint(block);
      if (!region->empty() && mlir::failed(emit(region->front())))
        return failure();
      b.CreateBr(join);
    }
    b.SetInsertPoint(join);
    return success();
  }

  llvm::Value *scalar(Value value) {
    if (llvm::Value *known = scalars.lookup(value))
      return known;
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    auto number = constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
    return number ? llvm::ConstantInt::get(context, number.getValue().sextOrTrunc(widthOf(value))) : nullptr;
  }

  static unsigned widthOf(Value value) { return value.getType().isInteger(1) ? 1 : 64; }

  /// Names the scalars among `from` as `to`; tensors stay where they are.
  LogicalResult hand(ValueRange from, ValueRange to) {
    for (auto [source, target] : llvm::zip_equal(from, to)) {
      if (isa<RankedTensorType>(source.getType()))
        continue;
      scalars[target] = scalar(source);
      if (!scalars[target])
        return emitError(source.getLoc(), "entry code cannot compute this loop's scalar");
    }
    return success();
  }

  LogicalResult emitLoop(scf::WhileOp loop) {
    auto *head = llvm::BasicBlock::Create(context, "head", entry, failed);
    auto *body = llvm::BasicBlock::Create(context, "body", entry, failed);
    auto *exit = llvm::BasicBlock::Create(context, "exit", entry, failed);
    if (mlir::failed(hand(loop.getInits(), loop.getBeforeArguments())))
      return failure();
    llvm::BasicBlock *before = b.GetInsertBlock();
    b.CreateBr(head);
    b.SetInsertPoint(head);
    for (Value argument : loop.getBeforeArguments())
      if (llvm::Value *first = scalars.lookup(argument)) {
        llvm::PHINode *carried = b.CreatePHI(first->getType(), 2);
        carried->addIncoming(first, before);
        scalars[argument] = carried;
      }
    if (mlir::failed(emit(*loop.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = loop.getConditionOp();
    llvm::Value *goesOn = scalar(condition.getCondition());
    if (!goesOn)
      return loop.emitOpError("expects its condition to be read from a tensor or computed from scalars");
    b.CreateCondBr(goesOn, body, exit);
    b.SetInsertPoint(body);
    if (mlir::failed(hand(condition.getArgs(), loop.getAfterArguments())) || mlir::failed(emit(*loop.getAfterBody())))
      return failure();
    for (auto [argument, next] : llvm::zip_equal(loop.getBeforeArguments(), loop.getYieldedValues()))
      if (auto *carried = dyn_cast_or_null<llvm::PHINode>(scalars.lookup(argument))) {
        llvm::Value *value = scalar(next);
        if (!value)
          return loop.emitOpError("expects its carried scalars to be computed from scalars");
        carried->addIncoming(value, b.GetInsertBlock());
      }
    b.CreateBr(head);
    b.SetInsertPoint(exit);
    return hand(condition.getArgs(), loop.getResults());
  }

  /// Arithmetic of counters and conditions; null where the op is something else.
  llvm::Value *compute(Operation *op) {
    if (op->getNumOperands() == 0)
      return nullptr;
    SmallVector<llvm::Value *> in;
    for (Value operand : op->getOperands()) {
      llvm::Value *value = isa<IntegerType>(operand.getType()) ? scalar(operand) : nullptr;
      if (!value)
        return nullptr;
      in.push_back(value);
    }
    return llvm::TypeSwitch<Operation *, llvm::Value *>(op)
        .Case([&](arith::AddIOp) { return b.CreateAdd(in[0], in[1]); })
        .Case([&](arith::SubIOp) { return b.CreateSub(in[0], in[1]); })
        .Case([&](arith::AndIOp) { return b.CreateAnd(in[0], in[1]); })
        .Case([&](arith::OrIOp) { return b.CreateOr(in[0], in[1]); })
        .Case([&](arith::XOrIOp) { return b.CreateXor(in[0], in[1]); })
        .Case([&](arith::SelectOp) { return b.CreateSelect(in[0], in[1], in[2]); })
        .Case([&](arith::CmpIOp compare) -> llvm::Value * {
          switch (compare.getPredicate()) {
          case arith::CmpIPredicate::eq: return b.CreateICmpEQ(in[0], in[1]);
          case arith::CmpIPredicate::ne: return b.CreateICmpNE(in[0], in[1]);
          case arith::CmpIPredicate::slt: return b.CreateICmpSLT(in[0], in[1]);
          case arith::CmpIPredicate::sle: return b.CreateICmpSLE(in[0], in[1]);
          case arith::CmpIPredicate::sgt: return b.CreateICmpSGT(in[0], in[1]);
          case arith::CmpIPredicate::sge: return b.CreateICmpSGE(in[0], in[1]);
          default: return nullptr;
          }
        })
        .Default([](Operation *) { return nullptr; });
  }

  llvm::Value *load(Operation &op, llvm::Type *type) {
    llvm::Value *address = field(buffers, op.getAttrOfType<IntegerAttr>("buffer").getInt() * sizeof(void *), pointer);
    return b.CreateLoad(type, address);
  }

  /// The first byte of a one-element i1 buffer.
  llvm::Value *loadCondition(Operation &op) { return b.CreateICmpNE(load(op, b.getInt8Ty()), b.getInt8(0)); }

  LogicalResult emitDefine(ds::DefineOp define) {
    int64_t id = plan.symbolId(define.getSymbol());
    if (id < 0) // a count that no size depends on is only a value
      return success();
    auto tensor = dyn_cast<RankedTensorType>(define.getValue().getType());
    llvm::Value *value = nullptr;
    if (tensor && tensor.getElementType().isInteger(1))
      value = b.CreateZExt(loadCondition(*define), i64);
    else
      value = tensor ? load(*define, i64) : scalar(define.getValue());
    if (!value)
      return define.emitOpError("expects a value that is read from a tensor or computed from scalars");
    request(offsetof(ds_services, define), {serviceContext, b.getInt32(static_cast<uint32_t>(id)), value});
    return success();
  }

  LogicalResult emit(Block &block) {
    for (Operation &op : block)
      if (mlir::failed(emit(op)))
        return failure();
    return success();
  }

  LogicalResult emit(Operation &op) {
    if (auto launch = dyn_cast<ds::LaunchOp>(op)) {
      emitLaunch(static_cast<uint32_t>(launch->getAttrOfType<IntegerAttr>("index").getInt()));
      return success();
    }
    if (isa<dist::StartInterface>(op)) {
      emitCollective(plan.collectiveIds.lookup(&op), offsetof(ds_services, collective_start));
      return success();
    }
    if (auto wait = dyn_cast<dist::WaitOp>(op)) {
      for (dist::StartInterface start : wait.getStarts())
        emitCollective(plan.collectiveIds.lookup(start), offsetof(ds_services, collective_wait));
      return success();
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      // Only conditions leave tensors at this level.
      RankedTensorType from = extract.getTensor().getType();
      if (!extract->hasAttr("buffer") || !from.getElementType().isInteger(1) || !from.hasStaticShape() ||
          from.getNumElements() != 1)
        return extract.emitOpError("expects one boolean that steers a branch or a loop, found ") << from;
      scalars[extract.getResult()] = loadCondition(op);
      return success();
    }
    if (auto size = dyn_cast<ds::SizeOp>(op)) {
      SizeExpr value = *sizeFromAttribute(size.getValue());
      scalars[size.getResult()] = field(sizes, plan.knownSizeId(value) * sizeof(int64_t), i64);
      return success();
    }
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return emitBranch(branch);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return emitLoop(loop);
    if (auto define = dyn_cast<ds::DefineOp>(op))
      return emitDefine(define);
    if (isa<ds::ReshapeOp, ds::WeightOp, ds::EmptyOp, scf::YieldOp, scf::ConditionOp, func::ReturnOp,
            arith::ConstantOp>(op))
      return success();
    if (llvm::Value *value = compute(&op)) {
      scalars[op.getResult(0)] = value;
      return success();
    }
    return op.emitOpError("has no entry code");
  }

  llvm::Module &module;
  llvm::LLVMContext &context;
  func::FuncOp function;
  const EntryPlan &plan;
  llvm::IRBuilder<> b;
  llvm::Type *pointer, *i32, *i64;
  llvm::Function *entry = nullptr;
  llvm::Value *call = nullptr, *services = nullptr, *serviceContext = nullptr, *buffers = nullptr, *sizes = nullptr;
  llvm::BasicBlock *failed = nullptr;
  llvm::PHINode *result = nullptr;
  llvm::DenseMap<Value, llvm::Value *> scalars;
  llvm::DenseMap<uint32_t, llvm::Constant *> collectiveData;
};

} // namespace

FailureOr<llvm::Function *> emitEntry(llvm::Module &module, func::FuncOp function, const EntryPlan &plan) {
  return EntryEmitter(module, function, plan).run();
}

void emitPackageQuery(llvm::Module &module, ArrayRef<std::pair<std::string, llvm::Function *>> entries) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *pair = llvm::StructType::get(context, {pointer, pointer});
  SmallVector<llvm::Constant *> points;
  for (const auto &[name, function] : entries) {
    auto *text = llvm::ConstantDataArray::getString(context, name);
    auto *global = new llvm::GlobalVariable(module, text->getType(), true, llvm::GlobalValue::PrivateLinkage, text);
    points.push_back(llvm::ConstantStruct::get(pair, {global, function}));
  }
  auto *array = llvm::ConstantArray::get(llvm::ArrayType::get(pair, points.size()), points);
  auto *list = new llvm::GlobalVariable(module, array->getType(), true, llvm::GlobalValue::PrivateLinkage, array);
  auto *code = llvm::ConstantStruct::getAnon(context, {b.getInt32(sizeof(ds_package_code)), b.getInt32(DS_ABI_VERSION),
                                                       b.getInt32(static_cast<uint32_t>(points.size())), list});
  auto *global = new llvm::GlobalVariable(module, code->getType(), true, llvm::GlobalValue::PrivateLinkage, code);
  auto *query = llvm::Function::Create(llvm::FunctionType::get(pointer, {b.getInt32Ty()}, false),
                                       llvm::Function::ExternalLinkage, "ds_package_query", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", query));
  b.CreateRet(b.CreateSelect(b.CreateICmpEQ(query->getArg(0), b.getInt32(DS_ABI_VERSION)), global,
                             llvm::ConstantPointerNull::get(pointer)));
}

} // namespace deepstride
