/* A training loop against ds/trainer.h. Trains the model of a package of ds-opt --mode=train on batches that it makes
 * up, whose targets are 3 times the first number of a row, plus 1, or for integer labels whether that is above 1.
 *
 *   train_package model.dsp folder steps [resume]
 *
 * Each step adds up two micro-batches. The first parameter is frozen, the last one goes by plain descent that is
 * written here, those between by the package's optimizer. At the end the model is saved to the folder; resume goes on
 * from the latest checkpoint there until as many steps are done. Dynamic dimensions are 8. */
#include "ds/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 8, microBatches = 2, ownRatePercent = 5 };

static int report(ds_status *status) {
  if (!status)
    return 0;
  fprintf(stderr, "train_package: %s\n", ds_status_message(status));
  ds_status_free(status);
  return 1;
}

static size_t elementsOf(const ds_tensor *tensor) {
  size_t elements = 1;
  for (size_t i = 0; i < tensor->rank; ++i)
    elements *= (size_t)tensor->shape[i];
  return elements;
}

static size_t bytesOf(const ds_tensor *tensor) { return elementsOf(tensor) * ds_type_size(tensor->type); }

/* Numbers in [-1, 1), the same on every machine. */
static float next(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (float)(*seed >> 8) / 8388608.0f - 1;
}

/* Memory for one input of a micro-batch. */
static int makeInput(const ds_tensor_info *info, ds_tensor *input) {
  int64_t *shape = calloc(info->rank + 1, sizeof(int64_t));
  *input = (ds_tensor){sizeof(ds_tensor), info->name, info->type, info->rank, shape, NULL};
  if (!shape)
    return 1;
  for (size_t i = 0; i < info->rank; ++i) {
    char *end;
    shape[i] = strtoll(info->shape[i], &end, 10);
    if (*end != '\0') /* "batch" */
      shape[i] = rows;
  }
  input->data = aligned_alloc(64, (bytesOf(input) + 64) / 64 * 64);
  return !input->data;
}

/* The micro-batch of a number: the first input is made up, the last one is what the model shall learn. */
static void fillBatch(ds_tensor *inputs, size_t count, uint32_t number) {
  uint32_t seed = number * 2654435761u + 1;
  float *x = inputs[0].data;
  ds_tensor *labels = &inputs[count - 1];
  size_t columns = elementsOf(&inputs[0]) / rows, perRow = elementsOf(labels) / rows;
  for (size_t i = 0; i < rows * columns; ++i)
    x[i] = next(&seed);
  for (size_t i = 0; i < rows * perRow; ++i) {
    float target = 3 * x[i / perRow * columns] + 1;
    if (labels->type == DS_I64)
      ((int64_t *)labels->data)[i] = target > 1;
    else
      ((float *)labels->data)[i] = target;
  }
}

/* Updates all parameters but the first: the last by itself, the others by the package. `kept` has room for both. */
static int step(ds_trainer *trainer, void *kept[2]) {
  size_t last = ds_trainer_parameter_count(trainer) - 1;
  const ds_tensor *frozen = ds_trainer_parameter(trainer, 0), *own = ds_trainer_parameter(trainer, last);
  const float *parameter = own->data, *gradient = ds_trainer_gradient(trainer, last)->data;
  float *updated = kept[1], scale = (float)ds_trainer_loss_scale(trainer);
  double norm;
  int isFinite;

  memcpy(kept[0], frozen->data, bytesOf(frozen));
  for (size_t i = 0; i < elementsOf(own); ++i)
    updated[i] = parameter[i] - ownRatePercent / 100.0f * (gradient[i] / scale);
  /* Neither counts for the norm that gradients are clipped by. */
  memset(ds_trainer_gradient(trainer, 0)->data, 0, bytesOf(frozen));
  memset(ds_trainer_gradient(trainer, last)->data, 0, bytesOf(own));
  if (report(ds_trainer_step(trainer, &norm, &isFinite)))
    return 1;
  memcpy(frozen->data, kept[0], bytesOf(frozen));
  if (isFinite) /* otherwise the gradients overflowed, and nothing changes */
    memcpy(own->data, updated, bytesOf(own));
  return 0;
}

static int train(ds_trainer *trainer, ds_tensor *inputs, size_t count, int64_t steps) {
  void *kept[2] = {malloc(bytesOf(ds_trainer_parameter(trainer, 0))),
                   malloc(bytesOf(ds_trainer_parameter(trainer, ds_trainer_parameter_count(trainer) - 1)))};
  int failed = !kept[0] || !kept[1];
  while (!failed && ds_trainer_steps(trainer) < steps) {
    int64_t number = ds_trainer_steps(trainer);
    double loss, sum = 0;
    failed = report(ds_trainer_zero_gradients(trainer));
    for (int i = 0; i < microBatches && !failed; ++i) {
      fillBatch(inputs, count, (uint32_t)(number * microBatches + i));
      failed = report(ds_trainer_backward(trainer, inputs, count, 1.0 / microBatches, &loss));
      sum += loss / microBatches;
    }
    failed = failed || step(trainer, kept);
    if (!failed)
      printf("step %lld loss %.9g\n", (long long)number, sum);
  }
  free(kept[0]);
  free(kept[1]);
  return failed;
}

static int checkModel(const ds_trainer *trainer) {
  size_t count = ds_trainer_input_count(trainer), parameters = ds_trainer_parameter_count(trainer);
  ds_type last = count ? ds_trainer_input(trainer, count - 1)->type : DS_F64;
  if (count == 2 && ds_trainer_input(trainer, 0)->type == DS_F32 && (last == DS_F32 || last == DS_I64) &&
      parameters >= 2 && ds_trainer_parameter(trainer, parameters - 1)->type == DS_F32)
    return 0;
  fprintf(stderr, "train_package: expected a model of one input of f32, labels of f32 or i64 and two parameters\n");
  return 1;
}

int main(int argc, char **argv) {
  ds_package *package = NULL;
  ds_trainer *trainer = NULL;
  ds_tensor inputs[2] = {{0}, {0}};
  ds_evaluation evaluation = {sizeof(ds_evaluation), 0, 0, 0};
  const char *clientState = NULL;
  char state[64];
  if (argc < 4 || argc > 5 || (argc == 5 && strcmp(argv[4], "resume") != 0)) {
    fprintf(stderr, "usage: train_package model.dsp folder steps [resume]\n");
    return 2;
  }
  int64_t steps = strtoll(argv[3], NULL, 10);
  int failed = report(ds_package_load(argv[1], NULL, &package)) || report(ds_trainer_create(package, NULL, &trainer)) ||
               checkModel(trainer);
  for (size_t i = 0; i < 2 && !failed; ++i)
    failed = makeInput(ds_trainer_input(trainer, i), &inputs[i]);
  if (argc == 5 && !failed) {
    failed = report(ds_trainer_load(trainer, argv[2], NULL, &clientState));
    if (!failed)
      printf("resumed at step %lld, state %s\n", (long long)ds_trainer_steps(trainer),
             clientState ? clientState : "none");
  }
  for (size_t i = 0; i < ds_trainer_parameter_count(trainer) && !failed; ++i)
    printf("parameter %s\n", ds_trainer_parameter(trainer, i)->name);

  failed = failed || train(trainer, inputs, 2, steps);
  if (!failed) {
    fillBatch(inputs, 2, UINT32_MAX);
    failed = report(ds_trainer_forward(trainer, inputs, 2, &evaluation, NULL));
  }
  if (!failed) {
    printf("evaluation loss %.9g", evaluation.loss);
    printf(evaluation.counted < 0 ? "\n" : ", %lld of %lld right\n", (long long)evaluation.correct,
           (long long)evaluation.counted);
    snprintf(state, sizeof(state), "{\"loss\": %.9g}", evaluation.loss);
    failed = report(ds_trainer_save(trainer, argv[2], NULL, state));
  }

  for (size_t i = 0; i < 2; ++i) {
    free((void *)inputs[i].shape);
    free(inputs[i].data);
  }
  ds_trainer_free(trainer);
  ds_package_free(package);
  return failed;
}
