/* Times calls of a package against hand-written C in the same process. Prints JSON.
 *
 *   measure momentum PACKAGE PARAMETERS THREADS ROUNDS    entry "step" in turn with the same update as a C loop
 *   measure insert PACKAGE ROWS THREADS CALLS             entries "large", "small" and "empty" and memcpy in
 *                                                      turn, random rows */
#define _GNU_SOURCE
#include "ds/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MOST_THREADS 64

static void check(ds_status *status) {
  if (!status)
    return;
  fprintf(stderr, "%s\n", ds_status_message(status));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(const char *name, double *samples, size_t count, const char *end) {
  qsort(samples, count, sizeof(double), ascending);
  printf("\"%s\": {\"min\": %.9g, \"median\": %.9g, \"p90\": %.9g}%s\n", name, samples[0], samples[count / 2],
         samples[count * 9 / 10], end);
}

static size_t entryOf(const ds_package *package, const char *name) {
  for (size_t i = 0; i < ds_package_entry_count(package); ++i)
    if (!strcmp(ds_package_entry_name(package, i), name))
      return i;
  fprintf(stderr, "no entry '%s'\n", name);
  exit(1);
}

static float *numbers(size_t count, float scale) {
  size_t bytes = (count * sizeof(float) + (2u << 20) - 1) >> 21 << 21;
  float *data = aligned_alloc(2u << 20, bytes);
  if (!data)
    exit(1);
  madvise(data, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < count; ++i)
    data[i] = scale * (float)(i % 1009);
  return data;
}

/* The update as anyone would write it; the compiler makes it vectors. */
struct part {
  float *p, *m;
  const float *g;
  size_t count;
  float beta, rate;
};

static void *update(void *argument) {
  struct part *part = argument;
  float *restrict p = part->p, *restrict m = part->m;
  const float *restrict g = part->g;
  float beta = part->beta, rate = part->rate;
  for (size_t i = 0; i < part->count; ++i) {
    m[i] = beta * m[i] + g[i];
    p[i] -= rate * m[i];
  }
  return NULL;
}

static void updateOnThreads(float *p, float *m, const float *g, size_t count, unsigned threads) {
  pthread_t ids[MOST_THREADS];
  struct part parts[MOST_THREADS];
  for (unsigned t = 0; t < threads; ++t) {
    size_t begin = count * t / threads / 16 * 16, end = t + 1 == threads ? count : count * (t + 1) / threads / 16 * 16;
    parts[t] = (struct part){p + begin, m + begin, g + begin, end - begin, 0.9f, 0.01f};
    if (t > 0)
      pthread_create(&ids[t], NULL, update, &parts[t]);
  }
  update(&parts[0]);
  for (unsigned t = 1; t < threads; ++t)
    pthread_join(ids[t], NULL);
}

static void momentum(const ds_package *package, ds_session *session, size_t count, unsigned threads, size_t rounds) {
  float *g = numbers(count, 1e-3f), *p = numbers(count, 0), *m = numbers(count, 0);
  int64_t shape[] = {(int64_t)count};
  ds_tensor input = {sizeof(ds_tensor), "g", DS_F32, 1, shape, g};
  size_t entry = entryOf(package, "step");
  ds_outputs *outputs = NULL;
  double ours[1000], theirs[1000];
  for (size_t i = 0; i < rounds + 2; ++i) { /* the first two touch memory and warm up */
    double start = now();
    check(ds_session_run(session, entry, &input, 1, &outputs));
    double middle = now();
    updateOnThreads(p, m, g, count, threads);
    double end = now();
    if (i >= 2) {
      ours[i - 2] = middle - start;
      theirs[i - 2] = end - middle;
    }
  }
  printf("{");
  print("step_s", ours, rounds, ",");
  print("c_loop_s", theirs, rounds, "}");
  ds_outputs_free(outputs);
}

static void insert(const ds_package *package, ds_session *session, size_t rows, size_t calls) {
  static const char *names[] = {"large", "small", "empty"};
  float *row = numbers(768, 1);
  int64_t at = 0, rowShape[] = {1, 768}, one[] = {1};
  ds_tensor inputs[] = {{sizeof(ds_tensor), "row", DS_F32, 2, rowShape, row},
                        {sizeof(ds_tensor), "at", DS_I64, 1, one, &at}};
  ds_outputs *outputs = NULL;
  enum { kinds = 5, calls_of_entries = 3 };
  static const char *labels[kinds] = {"large", "small", "empty", "copy_large", "copy_small"};
  float *memory[] = {numbers(rows * 768, 0), numbers(341 * 768, 0)};
  double *samples[kinds];
  for (int k = 0; k < kinds; ++k)
    samples[k] = malloc(calls * sizeof(double));
  unsigned random = 1;
  for (size_t i = 0; i < calls + 100; ++i)
    for (int k = 0; k < kinds; ++k) {
      random = random * 1664525u + 1013904223u;
      at = (int64_t)((random >> 8) % (k == 0 || k == 3 ? rows : 341));
      double start;
      if (k < calls_of_entries) {
        size_t entry = entryOf(package, names[k]);
        start = now();
        check(ds_session_run(session, entry, inputs, 2, &outputs));
      } else {
        float *to = memory[k - calls_of_entries] + 768 * at;
        start = now();
        memcpy(to, row, 768 * sizeof(float));
        __sync_synchronize(); /* as the locks of a call wait for its stores */
      }
      if (i >= 100)
        samples[k][i - 100] = now() - start;
    }
  printf("{");
  for (int k = 0; k < kinds; ++k)
    print(labels[k], samples[k], calls, k + 1 < kinds ? "," : "}");
  ds_outputs_free(outputs);
}

int main(int argc, char **argv) {
  if (argc != 6 || atoi(argv[4]) < 1 || atoi(argv[4]) > MOST_THREADS) {
    fprintf(stderr, "expected five arguments, of them 1 to %d threads\n", MOST_THREADS);
    return 2;
  }
  size_t size = strtoull(argv[3], NULL, 10), rounds = strtoull(argv[5], NULL, 10);
  ds_package *package;
  ds_session *session;
  check(ds_package_load(argv[2], NULL, &package));
  ds_session_options options = {sizeof(options), (unsigned)atoi(argv[4]), NULL, 0};
  check(ds_session_create(package, &options, &session));
  if (!strcmp(argv[1], "momentum"))
    momentum(package, session, size, options.threads, rounds > 1000 ? 1000 : rounds);
  else
    insert(package, session, size, rounds);
  ds_session_free(session);
  ds_package_free(package);
  return 0;
}
