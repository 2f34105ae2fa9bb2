// Einsum: operands are contracted from the left, two at a time, each contraction a matrix product.
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {

namespace {
/// Letters by their code; axes of an ellipsis are numbered from the right, beyond all letters.
using Labels = SmallVector<int64_t>;

struct Term {
  Value value;
  Labels labels;
};
} // namespace

constexpr int64_t ellipsisBase = 1000;

/// The labels of one term of the equation; an ellipsis stands for `ellipsisRank` axes.
static std::optional<Labels> readTerm(Node &n, StringRef text, int64_t ellipsisRank) {
  Labels labels;
  while (!text.empty()) {
    if (text.consume_front("...")) {
      for (int64_t i = ellipsisRank; i > 0; --i)
        labels.push_back(ellipsisBase + i);
    } else if (llvm::isAlpha(text.front())) {
      labels.push_back(text.front());
      text = text.drop_front();
    } else {
      return n.refuse("attribute 'equation': expected letters and '...', found '" + text + "'");
    }
  }
  return labels;
}

/// Without an arrow the result has the ellipsis, then every letter that occurs once, in alphabetical order.
static Labels implicitResult(ArrayRef<Term> terms) {
  std::map<int64_t, unsigned> counts;
  int64_t ellipsisRank = 0;
  for (const Term &term : terms)
    for (int64_t label : term.labels) {
      ++counts[label];
      if (label > ellipsisBase)
        ellipsisRank = std::max(ellipsisRank, label - ellipsisBase);
    }
  Labels result;
  for (int64_t i = ellipsisRank; i > 0; --i)
    result.push_back(ellipsisBase + i);
  for (auto [label, count] : counts)
    if (label < ellipsisBase && count == 1)
      result.push_back(label);
  return result;
}

/// A repeated label means the diagonal: elements off it are dropped, then one of the axes is summed away.
static Term takeDiagonals(DsBuilder &b, Term term) {
  for (size_t i = 0; term.value && i < term.labels.size(); ++i)
    for (size_t j = term.labels.size() - 1; term.value && j > i; --j) {
      if (term.labels[i] != term.labels[j])
        continue;
      SizeVector sizes = b.sizes(term.value), rows(sizes.size(), SizeExpr(1)), columns = rows;
      rows[i] = sizes[i];
      columns[j] = sizes[j];
      Value isOn = b.binary(ds::BinaryKind::eq, b.iota(i, rows), b.iota(j, columns));
      Value kept = b.select(isOn, term.value, b.scalar(b.element(term.value), 0));
      term.value = b.reduce(ds::ReduceKind::sum, kept, {static_cast<int64_t>(j)}, /*keep=*/false);
      term.labels.erase(term.labels.begin() + j);
    }
  return term;
}

/// Sums the axes whose labels nothing else needs.
static Term sumOut(DsBuilder &b, Term term, ArrayRef<int64_t> needed) {
  SmallVector<int64_t> axes;
  Labels kept;
  for (auto [axis, label] : llvm::enumerate(term.labels))
    if (llvm::is_contained(needed, label))
      kept.push_back(label);
    else
      axes.push_back(axis);
  if (!axes.empty())
    term = {b.reduce(ds::ReduceKind::sum, term.value, axes, /*keep=*/false), kept};
  return term;
}

/// The axes of a term brought into the order of `labels`, which are those it has.
static Value arrange(DsBuilder &b, const Term &term, ArrayRef<int64_t> labels) {
  SmallVector<int64_t> permutation;
  for (int64_t label : labels)
    permutation.push_back(llvm::find(term.labels, label) - term.labels.begin());
  return b.transpose(term.value, permutation);
}

static Term contract(DsBuilder &b, const Term &left, const Term &right, ArrayRef<int64_t> needed) {
  Labels batch, inner, rows, columns;
  for (int64_t label : left.labels)
    (!llvm::is_contained(right.labels, label) ? rows
     : llvm::is_contained(needed, label)      ? batch
                                              : inner)
        .push_back(label);
  for (int64_t label : right.labels)
    if (!llvm::is_contained(left.labels, label))
      columns.push_back(label);
  auto concat = [](std::initializer_list<ArrayRef<int64_t>> parts) {
    Labels all;
    for (ArrayRef<int64_t> part : parts)
      all.append(part.begin(), part.end());
    return all;
  };
  Value a = arrange(b, left, concat({batch, rows, inner})), c = arrange(b, right, concat({batch, inner, columns}));
  if (!a || !c)
    return {};
  SizeVector as = b.sizes(a), cs = b.sizes(c);
  ArrayRef<SizeExpr> aAll(as), cAll(cs);
  ArrayRef<SizeExpr> rowSizes = aAll.slice(batch.size(), rows.size()), columnSizes = cAll.take_back(columns.size());
  SizeVector aShape(as.begin(), as.begin() + batch.size()), cShape(cs.begin(), cs.begin() + batch.size());
  aShape.push_back(product(rowSizes));
  aShape.push_back(product(aAll.take_back(inner.size())));
  cShape.push_back(product(cAll.slice(batch.size(), inner.size())));
  cShape.push_back(product(columnSizes));
  a = b.reshape(a, aShape);
  c = b.reshape(c, cShape);
  Value result = inner.empty() ? b.mul(a, c) : b.matmul(a, c); // without inner axes an outer product
  if (!result)
    return {};
  SizeVector shape = b.sizes(result);
  shape.resize(batch.size());
  shape.insert(shape.end(), rowSizes.begin(), rowSizes.end());
  shape.insert(shape.end(), columnSizes.begin(), columnSizes.end());
  return {b.reshape(result, shape), concat({batch, rows, columns})};
}

static std::optional<SmallVector<Term>> readTerms(Node &n, StringRef inputs) {
  SmallVector<StringRef> texts;
  inputs.split(texts, ',');
  if (texts.size() != n.inputCount())
    return n.refuse("attribute 'equation': expected one term per input (" + Twine(n.inputCount()) + "), found " +
                    Twine(texts.size()));
  SmallVector<Term> terms;
  for (auto [index, text] : llvm::enumerate(texts)) {
    int64_t letters = llvm::count_if(text, llvm::isAlpha), rank = n.b.rank(n.in(index));
    auto labels = readTerm(n, text, rank - letters);
    if (!labels)
      return std::nullopt;
    if (static_cast<int64_t>(labels->size()) != rank)
      return n.refuse("attribute 'equation': term '" + text + "' does not fit input " + Twine(index) + ", " +
                      describe(n.b.facts(n.in(index))));
    terms.push_back({n.in(index), *labels});
  }
  return terms;
}

static Values convertEinsum(Node &n) {
  std::string equation = n.text("equation", "");
  llvm::erase(equation, ' ');
  auto [inputs, output] = StringRef(equation).split("->");
  auto terms = readTerms(n, inputs);
  if (!terms || terms->empty())
    return n.isRefused() ? Values() : n.refuse("expected at least one input");
  Labels all = implicitResult(*terms);
  int64_t ellipsisRank = llvm::count_if(all, [](int64_t label) { return label > ellipsisBase; });
  auto wanted = equation.find("->") == std::string::npos ? std::optional(all) : readTerm(n, output, ellipsisRank);
  if (!wanted)
    return {};
  for (Term &term : *terms) // after the implicit result, which counts what a diagonal makes one
    if (term = takeDiagonals(n.b, term); !term.value)
      return {};
  Term result;
  for (size_t i = 0; i < terms->size(); ++i) {
    Labels later = *wanted;
    for (const Term &term : ArrayRef(*terms).drop_front(i + 1))
      later.append(term.labels);
    Labels others = later;
    others.append(result.labels);
    Term next = sumOut(n.b, (*terms)[i], others);
    result = i == 0 ? next : contract(n.b, result, next, later);
    if (!result.value)
      return {};
  }
  result = sumOut(n.b, result, *wanted);
  Labels sorted = *wanted, have = result.labels;
  llvm::sort(sorted);
  llvm::sort(have);
  if (sorted != have)
    return n.refuse("attribute 'equation': expected a result of labels of the inputs, each once, found '" + output +
                    "'");
  return {arrange(n.b, result, *wanted)};
}

void addEinsum(PatternRegistry &registry) { registry.add("Einsum", 12, 1, convertEinsum); }

} // namespace deepstride::onnx
