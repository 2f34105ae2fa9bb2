// Gives kernels the signature of ds_kernel (runtime/abi/ds_abi.h): arrays of pointers and sizes instead of memrefs.
// Works on the functions that convert-ds-to-linalg made, before the conversion to LLVM; rebuilding a flat memref from a
// pointer needs the descriptor that this conversion will use, hence the casts that it folds away.
#include "codegen/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

namespace deepstride {
#define GEN_PASS_DEF_LOWERKERNELABI
#include "codegen/Passes.h.inc"
} // namespace deepstride

using namespace mlir;

namespace {

struct LowerKernelAbi : deepstride::impl::LowerKernelAbiBase<LowerKernelAbi> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("ds.buffer_count"))
        lower(function, converter);
  }

  void lower(func::FuncOp function, LLVMTypeConverter &converter) {
    Block &block = function.getBody().front();
    OpBuilder b = OpBuilder::atBlockBegin(&block);
    Location loc = function.getLoc();
    unsigned old = block.getNumArguments();
    Type pointer = LLVM::LLVMPointerType::get(&getContext()), i64 = b.getI64Type();
    SmallVector<Type> types = {pointer, pointer, i64, i64, pointer};
    SmallVector<Value> arguments;
    for (Type type : types)
      arguments.push_back(block.addArgument(type, loc));

    int64_t buffers = function->getAttrOfType<IntegerAttr>("ds.buffer_count").getInt();
    int64_t sizes = static_cast<int64_t>(old) - buffers - 3;
    auto element = [&](Value array, Type type, int64_t index) -> Value {
      Value address =
          LLVM::GEPOp::create(b, loc, pointer, type, array, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
      return LLVM::LoadOp::create(b, loc, type, address);
    };
    auto asIndex = [&](Value value) -> Value { return arith::IndexCastOp::create(b, loc, b.getIndexType(), value); };
    auto asMemref = [&](Value address, Type type) -> Value {
      // Bounds are the kernel's own business: the flat view claims the whole address space.
      Type descriptor = converter.convertType(type);
      Value one = LLVM::ConstantOp::create(b, loc, i64, 1), zero = LLVM::ConstantOp::create(b, loc, i64, 0);
      Value size = LLVM::ConstantOp::create(b, loc, i64, std::numeric_limits<int64_t>::max());
      Value value = LLVM::PoisonOp::create(b, loc, descriptor);
      value = LLVM::InsertValueOp::create(b, loc, value, address, ArrayRef<int64_t>{0});
      value = LLVM::InsertValueOp::create(b, loc, value, address, ArrayRef<int64_t>{1});
      value = LLVM::InsertValueOp::create(b, loc, value, zero, ArrayRef<int64_t>{2});
      value = LLVM::InsertValueOp::create(b, loc, value, size, ArrayRef<int64_t>{3, 0});
      value = LLVM::InsertValueOp::create(b, loc, value, one, ArrayRef<int64_t>{4, 0});
      return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
    };
    SmallVector<Value> replacements;
    for (int64_t i = 0; i < buffers; ++i)
      replacements.push_back(asMemref(element(arguments[0], pointer, i), block.getArgument(i).getType()));
    for (int64_t i = 0; i < sizes; ++i)
      replacements.push_back(asIndex(element(arguments[1], i64, i)));
    replacements.push_back(asIndex(arguments[2]));
    replacements.push_back(asIndex(arguments[3]));
    replacements.push_back(asMemref(arguments[4], block.getArgument(old - 1).getType()));
    for (unsigned i = 0; i < old; ++i)
      block.getArgument(i).replaceAllUsesWith(replacements[i]);
    block.eraseArguments(0, old);
    function.setType(b.getFunctionType(types, b.getI32Type()));
  }
};

} // namespace
