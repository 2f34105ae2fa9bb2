/* A whole program against ds/runtime.h: loads a package, lists an entry's inputs and outputs, runs it on inputs of ones
 * and prints the sum of every output.
 *
 *   run_package model.dsp [dimension=size]...
 *
 * Dynamic dimensions that are not given are 1. */
#include "ds/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int report(ds_status *status) {
  if (!status)
    return 0;
  fprintf(stderr, "run_package: %s\n", ds_status_message(status));
  ds_status_free(status);
  return 1;
}

/* The size of a dimension: a number, one from the command line, or 1. */
static int64_t sizeOf(const char *dimension, int count, char **pins) {
  char *end;
  int64_t number = strtoll(dimension, &end, 10);
  if (*end == '\0')
    return number;
  for (int i = 0; i < count; ++i) {
    size_t length = strlen(dimension);
    if (strncmp(pins[i], dimension, length) == 0 && pins[i][length] == '=')
      return strtoll(pins[i] + length + 1, NULL, 10);
  }
  return 1;
}

static void fillWithOnes(ds_type type, void *data, size_t count) {
  for (size_t i = 0; i < count; ++i)
    switch (type) {
    case DS_F32: ((float *)data)[i] = 1; break;
    case DS_F64: ((double *)data)[i] = 1; break;
    case DS_I64: ((int64_t *)data)[i] = 1; break;
    case DS_I32: ((int32_t *)data)[i] = 1; break;
    default: break; /* zeros */
    }
}

static int makeInput(const ds_tensor_info *info, int count, char **pins, ds_tensor *input) {
  int64_t *shape = calloc(info->rank + 1, sizeof(int64_t));
  size_t elements = 1;
  if (!shape)
    return 1;
  for (size_t i = 0; i < info->rank; ++i) {
    shape[i] = sizeOf(info->shape[i], count, pins);
    elements *= (size_t)shape[i];
  }
  size_t bytes = (elements * ds_type_size(info->type) + 64) / 64 * 64;
  void *data = aligned_alloc(64, bytes);
  if (!data) {
    free(shape);
    return 1;
  }
  memset(data, 0, bytes);
  fillWithOnes(info->type, data, elements);
  *input = (ds_tensor){sizeof(ds_tensor), info->name, info->type, info->rank, shape, data};
  return 0;
}

static void printOutput(const ds_tensor *output) {
  size_t elements = 1;
  double sum = 0;
  printf("%s: %s [", output->name, ds_type_name(output->type));
  for (size_t i = 0; i < output->rank; ++i) {
    printf(i ? ", %lld" : "%lld", (long long)output->shape[i]);
    elements *= (size_t)output->shape[i];
  }
  for (size_t i = 0; i < elements && output->type == DS_F32; ++i)
    sum += ((const float *)output->data)[i];
  printf("] sum %g\n", sum);
}

int main(int argc, char **argv) {
  ds_package *package = NULL;
  ds_session *session = NULL;
  ds_outputs *outputs = NULL;
  if (argc < 2) {
    fprintf(stderr, "usage: run_package model.dsp [dimension=size]...\n");
    return 2;
  }
  if (report(ds_package_load(argv[1], NULL, &package)))
    return 1;
  printf("variant %s, entry %s\n", ds_package_chosen_variant(package), ds_package_entry_name(package, 0));

  size_t count = ds_package_tensor_count(package, 0, DS_INPUTS);
  ds_tensor *inputs = calloc(count + 1, sizeof(ds_tensor));
  int failed = !inputs;
  for (size_t i = 0; !failed && i < count; ++i)
    failed = makeInput(ds_package_tensor(package, 0, DS_INPUTS, i), argc - 2, argv + 2, &inputs[i]);

  failed = failed || report(ds_session_create(package, NULL, &session)) ||
           report(ds_session_run(session, 0, inputs, count, &outputs));
  for (size_t i = 0; !failed && i < ds_outputs_count(outputs); ++i)
    printOutput(ds_outputs_get(outputs, i));

  for (size_t i = 0; inputs && i < count; ++i) {
    free((void *)inputs[i].shape);
    free(inputs[i].data);
  }
  free(inputs);
  ds_outputs_free(outputs);
  ds_session_free(session);
  ds_package_free(package);
  return failed;
}
