/* Training as a ds_config.json says, over packages of ds-opt --mode=train, whose micro-batches the caller brings:
 * schedules, loss scales, accumulation, dropped layers and ranks are the engine's, and its steps have the bits of those
 * of ds-run train on the same micro-batches. For loops that decide all of this by themselves there is ds/trainer.h.
 * Conventions are those of ds/runtime.h.
 *
 *   while (more) {
 *     for (i = 0; i < ds_engine_micro_batches(engine); ++i)
 *       ds_engine_micro_batch(engine, inputs, count, &loss);
 *     ds_engine_step(engine, &record);
 *   }
 *
 * Ranks: a process that ds-run --ranks=N --exec, mpirun or srun has started as one of several joins the others. Each
 * rank brings micro-batches of its own, and all call the same functions in the same order; where one fails, the others'
 * calls fail, too, naming it. */
#ifndef DEEPSTRIDE_ENGINE_H
#define DEEPSTRIDE_ENGINE_H

#include "ds/runtime.h"
#include "ds/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One call at a time; calls from several threads wait for each other. Functions that return no status take null for an
 * empty one. */
typedef struct ds_engine ds_engine;

typedef struct ds_engine_options {
  size_t struct_size;
  unsigned threads;   /* 0: the environment's DS_NUM_THREADS, else as many as there are processors */
  const char *config; /* path of a ds_config.json that differs in nothing that was compiled; null: the compiled one */
  uint64_t seed;      /* what dropout, dropped layers and rounding draw by */
  int is_alone;       /* not 0: joins no ranks, whatever the environment says */
} ds_engine_options;

/* options may be null. A process joins its ranks once: DS_STATUS_COLLECTIVE for another engine that would. */
DS_API ds_status *ds_engine_create(const ds_package *package, const ds_engine_options *options, ds_engine **engine);
DS_API void ds_engine_free(ds_engine *engine);

DS_API unsigned ds_engine_rank(const ds_engine *engine);
DS_API unsigned ds_engine_world(const ds_engine *engine); /* 1 without other ranks */

/* What options.config changes, or says without effect: a line each; null past the end. */
DS_API const char *ds_engine_note(const ds_engine *engine, size_t index);

/* What a micro-batch holds: the model's inputs, then the labels where the loss has some. Null past the end. */
DS_API size_t ds_engine_input_count(const ds_engine *engine);
DS_API const ds_tensor_info *ds_engine_input(const ds_engine *engine, size_t index);

DS_API int64_t ds_engine_micro_batch_size(const ds_engine *engine);   /* train_micro_batch_size_per_gpu */
DS_API int64_t ds_engine_micro_batches(const ds_engine *engine);      /* of a step, on each rank */
DS_API int64_t ds_engine_micro_batches_done(const ds_engine *engine); /* of the step under way */

/* The loss of a micro-batch and the model's outputs, without dropout; changes nothing. As ds_trainer_forward. */
DS_API ds_status *ds_engine_evaluate(ds_engine *engine, const ds_tensor *inputs, size_t input_count,
                                     ds_evaluation *evaluation, ds_outputs **outputs);

/* Forward and backward of the step's next micro-batch. Inputs go by name, or by position where the name is null; loss
 * may be null. After a failure the step begins anew with its first micro-batch. */
DS_API ds_status *ds_engine_micro_batch(ds_engine *engine, const ds_tensor *inputs, size_t input_count, double *loss);

/* What a step did; alike on all ranks. */
typedef struct ds_step {
  size_t struct_size; /* set by the caller */
  int64_t step;       /* its number, from 0 */
  int64_t samples;    /* of all steps so far, on all ranks */
  double loss;        /* mean over the step's samples, on all ranks */
  double learning_rate, momentum;
  double grad_norm;  /* over the loss scale and before clipping */
  double loss_scale; /* that the step leaves */
  int is_skipped;    /* not 0: a number was not finite, and nothing was updated */
} ds_step;

/* The end of a step after all of its micro-batches: update, schedule, loss scale. step may be null.
 * DS_STATUS_EXECUTION, naming the tensor, node and samples, where a number is not finite and no smaller loss scale is
 * left. */
DS_API ds_status *ds_engine_step(ds_engine *engine, ds_step *step);

DS_API int64_t ds_engine_steps(const ds_engine *engine);         /* so far, also those that updated nothing */
DS_API int64_t ds_engine_skipped_steps(const ds_engine *engine); /* of these, those that updated nothing */
DS_API double ds_engine_learning_rate(const ds_engine *engine);  /* of the next step, as the schedule says */
DS_API double ds_engine_momentum(const ds_engine *engine);       /* of the next step */
DS_API double ds_engine_loss_scale(const ds_engine *engine);     /* 1, but for fp16 */

/* As ds_trainer_save, of all ranks together: one checkpoint of logical tensors, which any number of ranks and any stage
 * loads, ds-run train --resume too. */
DS_API ds_status *ds_engine_save(ds_engine *engine, const char *folder, const char *tag, const char *client_state);

/* As ds_trainer_load. The step under way begins anew. */
DS_API ds_status *ds_engine_load(ds_engine *engine, const char *folder, const char *tag, const char **client_state);

#ifdef __cplusplus
}
#endif
#endif
