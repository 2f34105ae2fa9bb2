/* The code of the unit tests' package, written by hand against the ABI. PackageBuilder.cpp writes its manifest. */
#include "runtime/abi/ds_abi.h"

#include <stddef.h>
#include <string.h>

#define LAUNCH(name, site_, kernel_, grid_, scratch_, grain_, buffers_, sizes_)                                        \
  static const ds_launch name = {sizeof(ds_launch),                                                                    \
                                 site_,                                                                                \
                                 kernel_,                                                                              \
                                 sizeof(buffers_) / sizeof(uint32_t),                                                  \
                                 sizeof(sizes_) / sizeof(uint32_t),                                                    \
                                 buffers_,                                                                             \
                                 sizes_,                                                                               \
                                 grid_,                                                                                \
                                 scratch_,                                                                             \
                                 grain_}
#define RUN(launch_)                                                                                                   \
  do {                                                                                                                 \
    int32_t result_ = call->services->launch(call->context, &(launch_));                                               \
    if (result_ != DS_OK)                                                                                              \
      return result_;                                                                                                  \
  } while (0)

/* out[i, j] = in[i, j] * factor[j], over rows; through scratch, to see that it is there. */
static int32_t scaleRows(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *in = buffers[0], *factor = buffers[1];
  float *out = buffers[2], *row = scratch;
  int64_t width = sizes[0];
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < width; ++j)
      row[j] = in[i * width + j] * factor[j];
    memcpy(out + i * width, row, (size_t)width * sizeof(float));
  }
  return DS_OK;
}

/* out[i] = a[i] + b[i], in pairs when the grain says so. */
static int32_t add(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *a = buffers[0], *b = buffers[1];
  float *out = buffers[2];
  (void)sizes;
  (void)scratch;
  for (int64_t i = begin; i < end; ++i)
    out[i] = a[i] + b[i];
  return DS_OK;
}

static int32_t copy(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  (void)sizes;
  (void)scratch;
  memcpy((float *)buffers[1] + begin, (const float *)buffers[0] + begin, (size_t)(end - begin) * sizeof(float));
  return DS_OK;
}

static int32_t countPositive(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *in = buffers[0];
  int64_t count = 0;
  (void)begin;
  (void)end;
  (void)scratch;
  for (int64_t i = 0; i < sizes[0]; ++i)
    count += in[i] > 0;
  *(int64_t *)buffers[1] = count;
  return DS_OK;
}

static int32_t keepPositive(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *in = buffers[0];
  float *out = buffers[1];
  (void)begin;
  (void)end;
  (void)scratch;
  for (int64_t i = 0; i < sizes[0]; ++i)
    if (in[i] > 0)
      *out++ = in[i];
  return DS_OK;
}

static int32_t gather(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *table = buffers[0];
  const int64_t *indices = buffers[1];
  float *out = buffers[2];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i) {
    if (indices[i] < 0 || indices[i] >= sizes[0])
      return DS_INDEX_OUT_OF_RANGE;
    out[i] = table[indices[i]];
  }
  return DS_OK;
}

/* main: hidden = x * weight; y = hidden + x. sizes: 0 n, 1 rows, 2 rows*n, 3 bytes of hidden, 4 bytes of a row. */
static const uint32_t mainScaleBuffers[] = {1, 0, 2}, mainScaleSizes[] = {0};
static const uint32_t mainAddBuffers[] = {2, 1, 3}, mainAddSizes[] = {0};
LAUNCH(mainScale, 0, scaleRows, 1, 4, 1, mainScaleBuffers, mainScaleSizes);
LAUNCH(mainAdd, 1, add, 2, DS_NO_SIZE, 4, mainAddBuffers, mainAddSizes);
static int32_t mainEntry(const ds_call *call) {
  RUN(mainScale);
  RUN(mainAdd);
  return DS_OK;
}

/* scale: the second entry that uses the same constant. */
static const uint32_t onlyScaleBuffers[] = {1, 0, 2}, onlyScaleSizes[] = {0};
LAUNCH(onlyScale, 0, scaleRows, 1, 4, 1, onlyScaleBuffers, onlyScaleSizes);
static int32_t scaleEntry(const ds_call *call) {
  RUN(onlyScale);
  return DS_OK;
}

/* reshape: the output's shape comes from the elements of an integer input. */
static const uint32_t reshapeBuffers[] = {0, 2}, noSizes[] = {0};
LAUNCH(reshape, 0, copy, 0, DS_NO_SIZE, 1, reshapeBuffers, noSizes);
static int32_t reshapeEntry(const ds_call *call) {
  RUN(reshape);
  return DS_OK;
}

/* positive: the output's size is known only when the values have been seen. */
static const uint32_t countBuffers[] = {0, 1}, keepBuffers[] = {0, 2}, moveBuffers[] = {2, 3};
LAUNCH(countThem, 0, countPositive, 1, DS_NO_SIZE, 1, countBuffers, noSizes);
LAUNCH(keepThem, 1, keepPositive, 1, DS_NO_SIZE, 1, keepBuffers, noSizes);
LAUNCH(moveThem, 2, copy, 3, DS_NO_SIZE, 1, moveBuffers, noSizes);
static int32_t positiveEntry(const ds_call *call) {
  RUN(countThem);
  int32_t result = call->services->define(call->context, 1, *(const int64_t *)call->buffers[1]);
  if (result != DS_OK)
    return result;
  RUN(keepThem);
  RUN(moveThem);
  return DS_OK;
}

/* forgetful: uses the computed size before it defines it. */
static int32_t forgetfulEntry(const ds_call *call) {
  RUN(moveThem);
  return DS_OK;
}

/* count: total += x in place; the output is a copy. */
static const uint32_t totalBuffers[] = {1, 0, 1}, totalOutBuffers[] = {1, 2};
LAUNCH(addToTotal, 0, add, 0, DS_NO_SIZE, 1, totalBuffers, noSizes);
LAUNCH(showTotal, 1, copy, 0, DS_NO_SIZE, 1, totalOutBuffers, noSizes);
static int32_t countEntry(const ds_call *call) {
  RUN(addToTotal);
  RUN(showTotal);
  return DS_OK;
}

/* reduce: y = all_reduce(x); with skip, rank 1 leaves without posting, or stays away. */
static const ds_collective sum = {sizeof(ds_collective), 0};
static int32_t reduceEntry(const ds_call *call) {
  int32_t result = call->services->collective_start(call->context, &sum);
  return result != DS_OK ? result : call->services->collective_wait(call->context, &sum);
}
static int32_t skippedEntry(const ds_call *call) {
  if (call->rank == 1)
    return DS_INVALID_VALUE;
  return reduceEntry(call);
}

/* stuck: rank 1 never comes back. */
static int32_t stuckEntry(const ds_call *call) {
  for (volatile int forever = 1; call->rank == 1 && forever;)
    ;
  return reduceEntry(call);
}

/* lookup: fails by index. */
static const uint32_t lookupBuffers[] = {0, 1, 2}, lookupSizes[] = {1};
LAUNCH(lookup, 0, gather, 0, DS_NO_SIZE, 1, lookupBuffers, lookupSizes);
static int32_t lookupEntry(const ds_call *call) {
  RUN(lookup);
  return DS_OK;
}

/* advance: total += x in place; y = x[indices], which fails by index; late += x in place. */
static const uint32_t advanceTotal[] = {2, 0, 2}, advanceLookup[] = {0, 1, 4}, advanceLate[] = {3, 0, 3},
                      advanceSizes[] = {0};
LAUNCH(advanceFirst, 0, add, 0, DS_NO_SIZE, 1, advanceTotal, noSizes);
LAUNCH(advanceGather, 1, gather, 1, DS_NO_SIZE, 1, advanceLookup, advanceSizes);
LAUNCH(advanceLast, 2, add, 0, DS_NO_SIZE, 1, advanceLate, noSizes);
static int32_t advanceEntry(const ds_call *call) {
  RUN(advanceFirst);
  RUN(advanceGather);
  RUN(advanceLast);
  return DS_OK;
}

/* peek: y = late. */
static const uint32_t peekBuffers[] = {0, 1};
LAUNCH(peek, 0, copy, 0, DS_NO_SIZE, 1, peekBuffers, noSizes);
static int32_t peekEntry(const ds_call *call) {
  RUN(peek);
  return DS_OK;
}

/* history: past += x in place, for any length; y = past[indices], which fails by index. */
static const uint32_t historyAdd[] = {2, 0, 2}, historyLookup[] = {2, 1, 3};
LAUNCH(historyFirst, 0, add, 0, DS_NO_SIZE, 1, historyAdd, noSizes);
LAUNCH(historyGather, 1, gather, 1, DS_NO_SIZE, 1, historyLookup, advanceSizes);
static int32_t historyEntry(const ds_call *call) {
  RUN(historyFirst);
  RUN(historyGather);
  return DS_OK;
}

/* drift: total += x in place; y = all_reduce(x). merge: total = all_reduce(x); y = total. In both, a rank
 * whose x starts with a negative number fails at once. */
static const uint32_t driftBuffers[] = {1, 0, 1}, mergeBuffers[] = {1, 2};
static const ds_collective driftSum = {sizeof(ds_collective), 0};
static const ds_collective mergeSum = {sizeof(ds_collective), 0};
LAUNCH(driftAdd, 0, add, 0, DS_NO_SIZE, 1, driftBuffers, noSizes);
LAUNCH(mergeCopy, 0, copy, 0, DS_NO_SIZE, 1, mergeBuffers, noSizes);
static int32_t allReduce(const ds_call *call, const ds_collective *collective) {
  int32_t result = call->services->collective_start(call->context, collective);
  return result != DS_OK ? result : call->services->collective_wait(call->context, collective);
}
static int32_t driftEntry(const ds_call *call) {
  if (*(const float *)call->buffers[0] < 0)
    return DS_INVALID_VALUE;
  RUN(driftAdd);
  return allReduce(call, &driftSum);
}
static int32_t mergeEntry(const ds_call *call) {
  if (*(const float *)call->buffers[0] < 0)
    return DS_INVALID_VALUE;
  int32_t result = allReduce(call, &mergeSum);
  if (result != DS_OK)
    return result;
  RUN(mergeCopy);
  return DS_OK;
}

/* micro, eval, update: a training step of loss = sum of x * w, with gradients that are added up and plain descent whose
 * state is the sum of what it descended by, and a running statistic that moves halfway to the first row of x. micro
 * fails behind both when x begins with more than 1000. */
static int32_t addGradient(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *x = buffers[0];
  float *gradient = buffers[2];
  (void)begin;
  (void)end;
  (void)scratch;
  for (int64_t i = 0; i < 4 * sizes[0]; ++i)
    gradient[i % 4] += (float)*(const double *)buffers[1] * x[i];
  return DS_OK;
}
static int32_t moveHalfway(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *x = buffers[0];
  float *moved = buffers[1];
  (void)begin;
  (void)end;
  (void)scratch;
  for (int64_t i = 0; i < 4 && sizes[0] > 0; ++i)
    moved[i] = (moved[i] + x[i]) / 2;
  return DS_OK;
}
static int32_t sumLoss(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const float *x = buffers[0], *w = buffers[1];
  float *loss = buffers[2];
  (void)begin;
  (void)end;
  (void)scratch;
  if (sizes[0] > 0 && x[0] > 1000)
    return DS_INVALID_VALUE;
  *loss = 0;
  for (int64_t i = 0; i < 4 * sizes[0]; ++i)
    *loss += x[i] * w[i % 4];
  return DS_OK;
}
static int32_t countRows(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  (void)begin;
  (void)end;
  (void)scratch;
  *(int64_t *)buffers[0] = sizes[0];
  *(int64_t *)buffers[1] = 1;
  return DS_OK;
}
static int32_t descend(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end, void *scratch) {
  const double *rate = buffers[0], *scale = buffers[1];
  const float *gradient = buffers[2];
  float *w = buffers[3], *sum = buffers[4], *running = buffers[7];
  const float *moved = buffers[8];
  double norm = 0;
  (void)sizes;
  (void)begin;
  (void)end;
  (void)scratch;
  for (int i = 0; i < 4; ++i)
    norm += gradient[i] / *scale * (gradient[i] / *scale);
  *(double *)buffers[5] = norm; /* squared: no sqrt without libm */
  *(uint8_t *)buffers[6] = norm - norm == 0;
  for (int i = 0; i < 4 && norm - norm == 0; ++i) {
    sum[i] += (float)(gradient[i] / *scale);
    w[i] -= (float)(*rate * gradient[i] / *scale);
    running[i] = moved[i];
  }
  return DS_OK;
}
static const uint32_t microGradient[] = {0, 2, 4}, microMoved[] = {0, 6}, microLoss[] = {0, 3, 7}, rowSizes[] = {0};
static const uint32_t evalLoss[] = {0, 2, 4}, evalCounts[] = {5, 6}, evalScale[] = {0, 2, 7}, evalSizes[] = {2};
static const uint32_t updateBuffers[] = {0, 3, 5, 4, 6, 9, 10, 7, 8};
LAUNCH(microFirst, 0, addGradient, 1, DS_NO_SIZE, 1, microGradient, rowSizes);
LAUNCH(microMove, 1, moveHalfway, 1, DS_NO_SIZE, 1, microMoved, rowSizes);
LAUNCH(microLast, 2, sumLoss, 1, DS_NO_SIZE, 1, microLoss, rowSizes);
LAUNCH(evalFirst, 0, sumLoss, 1, DS_NO_SIZE, 1, evalLoss, rowSizes);
LAUNCH(evalCount, 1, countRows, 1, DS_NO_SIZE, 1, evalCounts, rowSizes);
LAUNCH(evalLast, 2, scaleRows, 0, 3, 1, evalScale, evalSizes);
LAUNCH(updateAll, 0, descend, 0, DS_NO_SIZE, 1, updateBuffers, noSizes);
static int32_t microEntry(const ds_call *call) {
  RUN(microFirst);
  RUN(microMove);
  RUN(microLast);
  return DS_OK;
}
static int32_t evalEntry(const ds_call *call) {
  RUN(evalFirst);
  RUN(evalCount);
  RUN(evalLast);
  return DS_OK;
}
static int32_t updateEntry(const ds_call *call) {
  RUN(updateAll);
  return DS_OK;
}

static const ds_entry_point entries[] = {
    {"main", mainEntry},           {"scale", scaleEntry},  {"reshape", reshapeEntry}, {"positive", positiveEntry},
    {"forgetful", forgetfulEntry}, {"count", countEntry},  {"reduce", reduceEntry},   {"skipped", skippedEntry},
    {"lookup", lookupEntry},       {"stuck", stuckEntry},  {"advance", advanceEntry}, {"peek", peekEntry},
    {"history", historyEntry},     {"drift", driftEntry},  {"merge", mergeEntry},     {"micro", microEntry},
    {"eval", evalEntry},           {"update", updateEntry}};
static const ds_package_code code = {sizeof(ds_package_code), DS_ABI_VERSION, sizeof(entries) / sizeof(entries[0]),
                                     entries};

extern const ds_package_code *ds_package_query(uint32_t version) { return version == DS_ABI_VERSION ? &code : NULL; }
