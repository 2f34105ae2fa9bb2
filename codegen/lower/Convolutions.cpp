// Convolution as a product of tiles: filters times panels of pixels, whose columns are gathered from the image into
// scratch (implicit GEMM). A panel is gathered once for many filters of a group. Pixels of an image, or of all images
// where one fills no whole vectors, are shared out among panels that are as wide as each other, give or take a vector,
// so that next to none of their lanes is empty: of 14 x 14 pixels 13 vectors are multiplied, of 8 images of 7 x 7 25.
#include "codegen/kernel/Epilogue.h"
#include "codegen/kernel/FilterRows.h"
#include "codegen/lower/ConvolutionImage.h"
#include "codegen/lower/DirectConvolution.h"
#include "codegen/tile/Widen.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {

struct Convolution {
  Convolution(KernelBuilder &k, ds::ConvOp op)
      : k(k), b(k.b), loc(k.loc), op(op), image(k, op, /*joinsAxes=*/true), sum(k.elementOf(op.getResult())),
        zero(k.constant(0)), one(k.constant(1)), filterRows(k, op), epilogue(k, op) {}

  LogicalResult verify() { return success(!filterRows || succeeded(filterRows.verify())); }
  /// With `areWords`, filters of bytes are multiplied as words.
  void emit(const MicroKernel &micro, bool areWords);
  /// Whether all filters of bytes can become words in scratch once, not in registers for each panel.
  bool canBecomeWords();

private:
  /// Where a panel is among those of its image, or of all images: `image` is null then.
  struct PanelPlace {
    Value image, group, first, columns;
    int64_t width;
  };
  struct Scratch {
    Value packed, staging; // a panel as it is multiplied, and as it is gathered: the same where these are alike
  };

  Value less(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y); }
  Matrix emitWords(Value depth);
  Scratch takeScratch(const MicroKernel &micro, int64_t width);
  /// Of the first channel of a group, of the first image where `number` is null.
  Value firstElement(Value number, Value group);
  void pack(const MicroKernel &micro, const Scratch &scratch, const PanelPlace &place);
  void multiply(const MicroKernel &micro, const Matrix &given, Value packed, const PanelPlace &place, Value from,
                Value to, int64_t rows);
  void forEachImage(const PanelPlace &place, llvm::function_ref<void(const TilePiece &)> body);

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ds::ConvOp op;
  ConvolutionImage image;
  Type sum;
  Value zero, one;
  FilterRows filterRows;
  Epilogue epilogue;
  int64_t filtersPerPart = 0;
  bool arePartsEqual = false;
  bool isMatrix = false;               // the channels' planes are, so that nothing is gathered
  Value depth, pixels, filters, parts; // of one filter; of an image; of one group; of these
};

} // namespace

bool Convolution::canBecomeWords() {
  constexpr int64_t mostBytes = 2 << 20; // they are read once for each panel: no more than a thread's share of a cache
  SizeExpr elements = product(image.weight);
  return !filterRows && elements.constant() && 2 * *elements.constant() <= mostBytes;
}

/// All filters as words, one behind the other.
Matrix Convolution::emitWords(Value depth) {
  constexpr int64_t count = 16; // words of a vector of 256 bits
  SizeExpr elements = product(image.weight);
  Value words = k.scratchOf(b.getI16Type(), elements), bytes = k.bufferOf(op.getWeight());
  auto raw = VectorType::get({count}, b.getI8Type());
  Value all = k.index(elements), size = k.constant(count), whole = k.sub(all, k.remainder(all, size));
  auto widen = [&](Value at, Value mask) {
    Value loaded = loadLanes(k, raw, bytes, at, mask);
    storeLanes(k, emitCast(b, loc, loaded, k.elementOf(op.getWeight()), b.getI16Type()), words, at, mask);
  };
  k.loop(zero, whole, size, [&](Value at) { widen(at, {}); });
  k.loop(whole, all, size, [&](Value at) { widen(at, lanesBelow(k, count, k.sub(all, at))); });
  return {words, zero, depth, one};
}

/// How many filters of a group a thread multiplies before another may take over: half of a hundred and more, and no
/// fewer than give what is done for each part little weight.
static int64_t partOfFilters(const SizeExpr &filters, int64_t most) {
  constexpr int64_t fewest = 32;
  auto known = filters.constant();
  return known ? std::min({std::max((*known + 1) / 2, fewest), most, std::max<int64_t>(*known, 1)}) : most;
}

/// Whether some panel has so many vectors.
static bool hasPanels(const SizeExpr &pixels, int64_t lanes, int64_t mostVectors, int64_t vectors) {
  auto known = SizeExpr::ceilDiv(pixels, lanes).constant();
  if (!known)
    return true;
  int64_t panels = std::max<int64_t>((*known + mostVectors - 1) / mostVectors, 1), narrow = *known / panels;
  return vectors == narrow || (vectors == narrow + 1 && *known % panels != 0);
}

Convolution::Scratch Convolution::takeScratch(const MicroKernel &micro, int64_t width) {
  SizeExpr depthSize = product(ArrayRef(image.weight).drop_front());
  // What is gathered is the panel itself where that holds rows of the same elements.
  bool isPanel = micro.interleave == 1 && micro.panel == image.element;
  SizeExpr packedSize = panelSpace(micro, depthSize, width);
  SizeExpr stagingSize = isPanel ? SizeExpr(0) : depthSize * SizeExpr(width);
  int64_t packedBytes = storageBytes(micro.panel), stagingBytes = storageBytes(image.element);
  Value bytes = k.scratchOf(b.getI8Type(), packedSize * SizeExpr(packedBytes) + stagingSize * SizeExpr(stagingBytes));
  auto view = [&](Type type, const SizeExpr &size, const SizeExpr &offset) -> Value {
    return memref::ViewOp::create(b, loc, MemRefType::get({ShapedType::kDynamic}, storageType(type)), bytes,
                                  k.index(offset), ValueRange{k.index(size)});
  };
  Value packed = view(micro.panel, packedSize, 0);
  return {packed, isPanel ? packed : view(image.element, stagingSize, packedSize * SizeExpr(packedBytes))};
}

Value Convolution::firstElement(Value number, Value group) {
  Value channel = k.mul(group, k.index(image.weight[1]));
  return k.mul(number ? k.add(k.mul(number, k.index(image.input[1])), channel) : channel, image.plane);
}

void Convolution::pack(const MicroKernel &micro, const Scratch &scratch, const PanelPlace &place) {
  if (isMatrix)
    return emitPackPanel(k, micro, Matrix{image.source, firstElement(place.image, place.group), image.plane, one},
                         image.element, depth, place.first, pixels, scratch.packed, zero, place.width);
  Value width = k.constant(place.width);
  if (scratch.staging != scratch.packed)
    emitPackPanel(k, micro, Matrix{scratch.staging, zero, width, one}, image.element, depth, zero, width,
                  scratch.packed, zero, place.width);
}

/// What a panel holds of each image.
void Convolution::forEachImage(const PanelPlace &place, llvm::function_ref<void(const TilePiece &)> body) {
  Value end = k.add(place.first, k.minimum(place.columns, k.constant(place.width)));
  Value from = k.divide(place.first, pixels), to = k.divide(k.sub(end, one), pixels);
  k.loop(from, k.add(to, one), one, [&](Value number) {
    Value start = k.mul(number, pixels), first = k.maximum(start, place.first);
    Value last = k.minimum(k.add(start, pixels), end);
    body({k.mul(number, k.index(image.weight[0])), k.sub(first, start), k.sub(first, place.first), k.sub(last, first)});
  });
}

/// Parts [from, to) of a group's filters times a panel.
void Convolution::multiply(const MicroKernel &micro, const Matrix &given, Value packed, const PanelPlace &place,
                           Value from, Value to, int64_t rows) {
  int64_t lanes = micro.lanes();
  Value firstFilter = k.mul(place.group, filters), target = firstFilter;
  if (place.image)
    target = k.add(k.mul(place.image, k.index(image.weight[0])), firstFilter);
  Panel panel{packed, zero, place.width / lanes, {}};
  k.loop(from, to, one, [&](Value part) {
    Value sweep = k.mul(part, k.constant(filtersPerPart)), filter = k.add(firstFilter, sweep);
    Value count =
        arePartsEqual ? k.constant(filtersPerPart) : k.minimum(k.constant(filtersPerPart), k.sub(filters, sweep));
    Matrix lhs = given;
    if (filterRows) {
      lhs = filterRows.emit(filter, count);
    } else { // prefetched are the next part's, or the first of the next panel's
      lhs.offset = k.mul(filter, depth);
      Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, k.add(part, one), parts);
      Value next = arith::SelectOp::create(b, loc, isLast, firstFilter, k.add(filter, count));
      panel.next = k.mul(next, depth);
      panel.nextBuffer = given.buffer;
      panel.nextElements = k.mul(k.minimum(count, k.sub(k.index(image.weight[0]), next)), depth);
    }
    auto product = [&](TileSink sink) {
      // Scratch takes whole vectors.
      emitPanelProduct(k, micro, lhs, count, depth, panel, epilogue.isStaged() ? Value() : place.columns, rows,
                       [&](Value row, int64_t v, Value value, Value mask) {
                         if (!op.getBias())
                           return sink(row, v, value, mask);
                         Value bias = k.load(k.bufferOf(op.getBias()), k.add(filter, row), sum);
                         Value added = vector::BroadcastOp::create(b, loc, value.getType(), bias);
                         sink(row, v, emitBinary(b, loc, ds::BinaryKind::add, value, added, sum, sum), mask);
                       });
    };
    TileArea area{k.add(target, sweep), count, place.first, place.columns, place.width};
    if (place.image)
      epilogue.emit(area, lanes, product);
    else
      epilogue.emitPieces(area, lanes, product, [&](auto body) { forEachImage(place, body); });
  });
}

void Convolution::emit(const MicroKernel &micro, bool areWords) {
  ds::ScheduleAttr schedule = ds::scheduleOf(op);
  int64_t lanes = micro.lanes(), width = schedule.getColumns(), mostVectors = width / lanes;
  SizeExpr filtersSize = SizeExpr::floorDiv(image.weight[0], op.getGroups()), imageSize = product(image.pixels);
  bool areJoined = ds::joinsImages(op, lanes);
  isMatrix = image.isPointwise && !areJoined;
  SizeExpr pixelsSize = areJoined ? image.result[0] * imageSize : imageSize;
  SizeExpr images = areJoined ? SizeExpr(1) : image.result[0];
  filtersPerPart = partOfFilters(filtersSize, schedule.getSweep());
  arePartsEqual = filtersSize.constant() && *filtersSize.constant() % filtersPerPart == 0;
  // An item is a panel and a part of the filters, so that threads share the few panels of a small image. What a panel
  // gathers, each thread gathers once.
  k.setGrid(images * SizeExpr(op.getGroups()) * SizeExpr::ceilDiv(pixelsSize, width) *
                SizeExpr::ceilDiv(filtersSize, filtersPerPart),
            1);
  depth = k.index(product(ArrayRef(image.weight).drop_front()));
  pixels = k.index(imageSize);
  filters = k.divide(k.index(image.weight[0]), k.constant(op.getGroups()));
  epilogue.reserve(filtersPerPart, width, /*inPieces=*/areJoined);
  if (filterRows)
    filterRows.reserve(filtersPerPart);
  Scratch scratch = takeScratch(micro, width);
  Matrix given;
  if (areWords)
    given = emitWords(depth);
  else if (!filterRows)
    given = {k.bufferOf(op.getWeight()), zero, depth, one};
  PixelPanels gatherer(image, width, areJoined);

  Value columns = k.index(pixelsSize), vectors = k.ceilDiv(columns, lanes), panels = k.ceilDiv(vectors, mostVectors);
  Value groups = k.constant(op.getGroups());
  parts = k.ceilDiv(filters, filtersPerPart);
  Value narrow = k.divide(vectors, panels), wider = k.remainder(vectors, panels); // so many panels have one more
  auto panelOf = [&](int64_t count, Value image, Value group, Value first, Value from, Value to) {
    PanelPlace place{image, group, first, k.sub(columns, first), count * lanes};
    pack(micro, scratch, place);
    int64_t rows = schedule.getRows() * mostVectors / count;
    // A tile of single vectors broadcasts as much as it multiplies, and keeps the registers for that.
    multiply(micro, given, scratch.packed, place, from, to, count == 1 && mostVectors > 1 ? rows * 2 / 3 : rows);
  };
  k.loop(k.divide(k.begin, parts), k.divide(k.add(k.end, k.sub(parts, one)), parts), one, [&](Value item) {
    Value firstPart = k.mul(item, parts);
    Value from = k.maximum(k.sub(k.begin, firstPart), zero), to = k.minimum(k.sub(k.end, firstPart), parts);
    Value number = k.remainder(item, panels), outer = k.divide(item, panels);
    Value group = k.remainder(outer, groups), image = areJoined ? Value() : k.divide(outer, groups);
    Value before = k.add(k.mul(number, narrow), k.minimum(number, wider));
    Value first = k.mul(before, k.constant(lanes));
    Value count = arith::SelectOp::create(b, loc, less(number, wider), k.add(narrow, one), narrow);
    if (!isMatrix) {
      Value size = k.mul(count, k.constant(lanes));
      gatherer.findRuns(first, k.minimum(size, k.sub(columns, first)));
      gatherer.gather(firstElement(image, group), scratch.staging, size, lanes);
    }
    for (int64_t each = mostVectors; each > 0; --each) {
      if (!hasPanels(pixelsSize, lanes, mostVectors, each))
        continue;
      Value isSo = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, k.constant(each));
      k.when(isSo, [&] { panelOf(each, image, group, first, from, to); });
    }
  });
}

static ds::ProductTypes typesOf(KernelBuilder &k, ds::ConvOp op) {
  return {k.elementOf(op.getWeight()), k.elementOf(op.getInput()), k.elementOf(op.getResult())};
}

LogicalResult lowerConv(KernelBuilder &k, ds::ConvOp op) {
  SizeVector weight = k.sizesOf(op.getWeight()), result = k.sizesOf(op.getResult());
  k.setFlops(product(result) * product(ArrayRef(weight).drop_front(1)) * SizeExpr(2));
  auto kernel = scheduledKernel(k, op, typesOf(k, op), /*isPacked=*/false);
  if (failed(kernel))
    return failure();
  auto micro = std::move(*kernel);
  if (failed(Epilogue(k, op).verify()))
    return failure();
  if (!micro && !isa<BlockArgument>(op.getWeight()))
    return op.emitOpError("without a schedule has filters that its kernel computes");
  if (!micro)
    return lowerPlainConv(k, op);
  k.setArithmetic(micro->arithmetic());
  if (isDirect(k, op, *micro)) {
    emitDirectConvolution(k, op, *micro);
    return success();
  }
  Convolution convolution(k, op);
  if (failed(convolution.verify()))
    return failure();
  if (ds::scheduleOf(op).getKernel() == ds::ProductKernel::byte_pairs && convolution.canBecomeWords())
    convolution.emit(*kernelOfWords(k.target, typesOf(k, op)), /*areWords=*/true);
  else
    convolution.emit(*micro, /*areWords=*/false);
  return success();
}

} // namespace deepstride
