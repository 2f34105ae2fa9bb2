#include "codegen/lower/ConvolutionImage.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

static bool hasPixelsAsWindows(ds::ConvOp op, ArrayRef<SizeExpr> taps) {
  return llvm::all_of(taps, [](const SizeExpr &size) { return size.isConstant(1); }) &&
         llvm::all_of(op.getStrides(), [](int64_t x) { return x == 1; }) &&
         llvm::all_of(op.getPads(), [](int64_t x) { return x == 0; });
}

ConvolutionImage::ConvolutionImage(KernelBuilder &k, ds::ConvOp op, bool joinsAxes)
    : k(k), isPointwise(hasPixelsAsWindows(op, ArrayRef(k.sizesOf(op.getWeight())).drop_front(2))),
      input(k.sizesOf(op.getInput())), weight(k.sizesOf(op.getWeight())), result(k.sizesOf(op.getResult())),
      element(k.elementOf(op.getInput())), source(k.bufferOf(op.getInput())),
      plane(k.index(product(ArrayRef(input).drop_front(2)))), pixels(result.begin() + 2, result.end()),
      taps(weight.begin() + 2, weight.end()), steps(op.getStrides()), pads(op.getPads().take_front(input.size() - 2)),
      dilations(op.getDilations()) {
  SizeVector imageSizes(input.begin() + 2, input.end());
  if (isPointwise && joinsAxes) {
    imageSizes = pixels = {product(imageSizes)};
    taps = {1};
    steps = dilations = {1};
    pads = {0};
  }
  for (auto [size, stride] : llvm::zip_equal(imageSizes, KernelBuilder::strides(imageSizes))) {
    sizes.push_back(k.index(size));
    strides.push_back(k.index(stride));
  }
}

Value ConvolutionImage::startOf(Value pixel, size_t axis) {
  return k.sub(k.mul(pixel, k.constant(steps[axis])), k.constant(pads[axis]));
}

Value ConvolutionImage::isInside(Value place, size_t axis) {
  return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, place, sizes[axis]);
}

Value ConvolutionImage::isRowOf(Value place, Value reach) {
  Value begins = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sge, place, k.constant(0));
  Value ends = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sle, k.add(place, reach), sizes.back());
  return arith::AndIOp::create(k.b, k.loc, begins, ends);
}

Value ConvolutionImage::loadPixels(int64_t lanes, Value at, Value place, bool isWhole, Value exists) {
  int64_t count = lanes * steps.back();
  Value mask, zero = k.constant(0);
  if (!isWhole) {
    Value low = k.maximum(k.sub(zero, place), zero), high = k.maximum(k.sub(sizes.back(), place), low);
    if (exists)
      high = arith::SelectOp::create(k.b, k.loc, exists, high, low);
    mask = arith::XOrIOp::create(k.b, k.loc, lanesBelow(k, count, high), lanesBelow(k, count, low));
  }
  Value raw = loadLanes(k, VectorType::get({count}, storageType(element)), source, at, mask);
  return count > lanes ? vector::DeinterleaveOp::create(k.b, k.loc, raw).getRes1() : raw;
}

/// What is known of a run: the column of its first pixel, how many pixels it has, its image, where its windows start
/// along each axis.
static constexpr int64_t runColumn = 0, runLength = 1, runImage = 2, runStart = 3;

/// What a tap reads of a run in a few channels: rows of a panel that lie `apart`, filled from `to` on, up to column
/// `width` - `column` of which the run may fill. Elements lie from `from` on in the first channel, at `place` of a row
/// of the image, where `exists` (null: always), else in the padding.
struct PixelPanels::Run {
  Value from, place, exists;
  Value buffer, to, apart, room, count, channels;
  int64_t lanes;
};

PixelPanels::PixelPanels(ConvolutionImage &image, int64_t mostColumns, bool areJoined)
    : image(image), k(image.k), areJoined(areJoined), recordSize(runStart + static_cast<int64_t>(image.pixels.size())) {
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(&k.function.front());
    auto type = MemRefType::get({mostColumns * recordSize}, k.b.getIndexType());
    runs = memref::AllocaOp::create(k.b, k.loc, type);
  }
  runCount = k.cell(k.b.getIndexType());
}

Value PixelPanels::field(Value record, int64_t number) { return k.add(record, k.constant(number)); }

void PixelPanels::findRuns(Value first, Value count) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value zero = k.constant(0), rowLength = k.index(image.pixels.back());
  SizeVector places = image.pixels;
  if (areJoined)
    places.insert(places.begin(), image.input[0]);
  memref::StoreOp::create(b, loc, zero, runCount);
  scf::WhileOp::create(
      b, loc, TypeRange{b.getIndexType()}, ValueRange{zero},
      [&](OpBuilder &, Location, ValueRange at) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(at[0].getParentBlock());
        Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at[0], count);
        scf::ConditionOp::create(b, loc, goesOn, at);
      },
      [&](OpBuilder &, Location, ValueRange at) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(at[0].getParentBlock());
        SmallVector<Value> place = k.delinearize(k.add(first, at[0]), places);
        Value length = k.minimum(k.sub(rowLength, place.back()), k.sub(count, at[0]));
        Value number = memref::LoadOp::create(b, loc, runCount), record = k.mul(number, k.constant(recordSize));
        auto put = [&](int64_t which, Value value) {
          memref::StoreOp::create(b, loc, value, runs, field(record, which));
        };
        put(runColumn, at[0]);
        put(runLength, length);
        if (areJoined)
          put(runImage, place.front());
        for (size_t axis = 0; axis < image.pixels.size(); ++axis)
          put(runStart + static_cast<int64_t>(axis), image.startOf(place[axis + (areJoined ? 1 : 0)], axis));
        memref::StoreOp::create(b, loc, k.add(number, k.constant(1)), runCount);
        scf::YieldOp::create(b, loc, k.add(at[0], length));
      });
}

/// Whole vectors are written, beyond the run where the panel has room: a later run fills what comes there.
void PixelPanels::copyRows(const Run &run) {
  OpBuilder &b = k.b;
  Location loc = k.loc;
  Value zero = k.constant(0), one = k.constant(1), step = k.constant(image.steps.back());
  auto forEachChannel = [&](llvm::function_ref<void(Value from, Value to)> body) {
    k.loop(zero, run.channels, one, [&](Value channel) {
      body(k.add(run.from, k.mul(channel, image.plane)), k.add(run.to, k.mul(channel, run.apart)));
    });
  };
  auto branchOn = [&](Value condition, llvm::function_ref<void(bool)> body) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (bool holds : {true, false}) {
      b.setInsertionPointToStart(holds ? branch.thenBlock() : branch.elseBlock());
      body(holds);
    }
  };
  if (image.isVectorStride()) {
    Value lanes = k.constant(run.lanes), reach = k.mul(step, lanes);
    return k.loop(zero, run.count, lanes, [&](Value at) {
      Value ahead = k.mul(at, step), place = k.add(run.place, ahead), room = k.sub(run.room, at);
      Value isRow = image.isRowOf(place, reach);
      if (run.exists)
        isRow = arith::AndIOp::create(b, loc, isRow, run.exists);
      auto copy = [&](bool isWhole, Value mask) {
        forEachChannel([&](Value from, Value to) {
          Value pixels = image.loadPixels(run.lanes, k.add(from, ahead), place, isWhole, run.exists);
          storeLanes(k, pixels, run.buffer, k.add(to, at), mask);
        });
      };
      branchOn(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, room, lanes), [&](bool hasRoom) {
        if (!hasRoom)
          return copy(/*isWhole=*/false, lanesBelow(k, run.lanes, room));
        branchOn(isRow, [&](bool isWhole) { copy(isWhole, {}); });
      });
    });
  }
  // Pixels whose tap is in the image: place + pixel * stride from 0 to the size.
  auto pixelsBelow = [&](Value end) {
    return k.minimum(k.divide(k.add(k.maximum(end, zero), k.sub(step, one)), step), run.count);
  };
  Value low = pixelsBelow(k.sub(zero, run.place));
  if (run.exists)
    low = arith::SelectOp::create(b, loc, run.exists, low, run.count);
  Value high = k.maximum(pixelsBelow(k.sub(image.sizes.back(), run.place)), low);
  Value none = toStorage(b, loc, scalarConstant(b, loc, image.element, 0.0), image.element);
  forEachChannel([&](Value from, Value to) {
    auto clear = [&](Value begin, Value end) {
      k.loop(begin, end, one, [&](Value at) { memref::StoreOp::create(b, loc, none, run.buffer, k.add(to, at)); });
    };
    clear(zero, low);
    k.loop(low, high, one, [&](Value at) {
      Value value = memref::LoadOp::create(b, loc, image.source, k.add(from, k.mul(at, step)));
      memref::StoreOp::create(b, loc, value, run.buffer, k.add(to, at));
    });
    clear(high, run.count);
  });
}

void PixelPanels::gather(Value base, Value buffer, Value width, int64_t lanes) {
  // What is asked once of a tap and a run serves so many channels, whose rows of an image stay in a level-1 cache also
  // where all lie in one of its sets, as those of 64 x 64 pixels.
  constexpr int64_t channelsAtOnce = 4;
  Value zero = k.constant(0), one = k.constant(1), most = k.constant(channelsAtOnce);
  Value channels = k.index(image.weight[1]), number = memref::LoadOp::create(k.b, k.loc, runCount);
  Value rowsOfChannel = k.mul(k.index(product(image.taps)), width);
  auto rowsOf = [&](Value first) {
    Value to = k.mul(first, rowsOfChannel), from = k.add(base, k.mul(first, image.plane));
    Value count = k.minimum(most, k.sub(channels, first));
    k.loopNest(image.taps, [&](ArrayRef<Value> tap) {
      Value row = k.add(to, k.mul(k.linearize(tap, image.taps), width));
      k.loop(zero, number, one, [&](Value which) {
        Value record = k.mul(which, k.constant(recordSize));
        auto get = [&](int64_t name) -> Value { return memref::LoadOp::create(k.b, k.loc, runs, field(record, name)); };
        Value column = get(runColumn);
        Run run{from,           {},    {},   buffer, k.add(row, column), rowsOfChannel, k.sub(width, column),
                get(runLength), count, lanes};
        if (areJoined)
          run.from = k.add(run.from, k.mul(get(runImage), k.mul(k.index(image.input[1]), image.plane)));
        for (size_t axis = 0; axis < image.taps.size(); ++axis) {
          run.place =
              k.add(get(runStart + static_cast<int64_t>(axis)), k.mul(tap[axis], k.constant(image.dilations[axis])));
          run.from = k.add(run.from, k.mul(run.place, image.strides[axis]));
          if (axis + 1 == image.taps.size())
            break;
          Value inside = image.isInside(run.place, axis);
          run.exists = run.exists ? arith::AndIOp::create(k.b, k.loc, run.exists, inside).getResult() : inside;
        }
        copyRows(run);
      });
    });
  };
  k.loop(zero, channels, most, rowsOf);
}

} // namespace deepstride
