/* Training with a loop of one's own, over packages of ds-opt --mode=train: the package computes losses, gradients and
 * updates, the caller decides what happens when, and may read and write every parameter and gradient in between. See
 * runtime/example/train_package.c for a whole program. Conventions are those of ds/runtime.h.
 *
 *   ds_trainer_zero_gradients(trainer);
 *   for each micro-batch of the step:
 *     ds_trainer_backward(trainer, inputs, count, 1.0 / micro_batches, &loss);
 *   ds_trainer_step(trainer, &norm, &is_finite); */
#ifndef DEEPSTRIDE_TRAINER_H
#define DEEPSTRIDE_TRAINER_H

#include "ds/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model in training: a session with its parameters, their gradients, the optimizer's states, running statistics and
 * counters. One call at a time; calls from several threads wait for each other. Functions that return no status take
 * null for an empty one.
 */
typedef struct ds_trainer ds_trainer;

typedef struct ds_trainer_options {
  size_t struct_size;
  unsigned threads; /* 0: the environment's DS_NUM_THREADS, else as many as there are processors */
} ds_trainer_options;

/* Parameters have the model's values, gradients are zeros. options may be null. The trainer keeps what it needs of the
 * package. DS_STATUS_INVALID_ARGUMENT when the package was not compiled for training. */
DS_API ds_status *ds_trainer_create(const ds_package *package, const ds_trainer_options *options, ds_trainer **trainer);
DS_API void ds_trainer_free(ds_trainer *trainer);

/* What a micro-batch holds: the model's inputs, then the labels where the loss has some. Null past the end. */
DS_API size_t ds_trainer_input_count(const ds_trainer *trainer);
DS_API const ds_tensor_info *ds_trainer_input(const ds_trainer *trainer, size_t index);

/* Tensors of the trainer itself, not copies: what is written there is what the next call computes with, and calls write
 * what they compute to the same place. A parameter has its ONNX name, its gradient the same number, and perhaps a
 * narrower type, which the package was compiled with (data_types.grad_accum_dtype). The states are the optimizer's,
 * NAME/exp_avg and so on, and running means and variances under their ONNX names. They stay where they are until the
 * trainer is freed; null past the end. Not while a call runs in another thread. */
DS_API size_t ds_trainer_parameter_count(const ds_trainer *trainer);
DS_API const ds_tensor *ds_trainer_parameter(const ds_trainer *trainer, size_t index);
DS_API const ds_tensor *ds_trainer_gradient(const ds_trainer *trainer, size_t index);
DS_API size_t ds_trainer_state_count(const ds_trainer *trainer);
DS_API const ds_tensor *ds_trainer_state(const ds_trainer *trainer, size_t index);

/* What an evaluation found. counted and correct are -1 where the loss is not of classes. */
typedef struct ds_evaluation {
  size_t struct_size; /* set by the caller */
  double loss;        /* mean over what was counted */
  int64_t counted;    /* labels that are not ignored */
  int64_t correct;    /* of these, those that have the largest logit */
} ds_evaluation;

/* The loss of a micro-batch and the model's outputs; changes nothing. Inputs go by name, or by position where the name
 * is null, as for ds_session_run. evaluation and outputs may be null; *outputs is null or earlier outputs, which are
 * replaced. */
DS_API ds_status *ds_trainer_forward(ds_trainer *trainer, const ds_tensor *inputs, size_t input_count,
                                     ds_evaluation *evaluation, ds_outputs **outputs);

/* Forward and backward of a micro-batch: adds weight times its gradients to the gradients. Several micro-batches or
 * losses of a step are several calls, whose weights say what each counts. The loss is without the weight; loss may be
 * null. Gradients are those of ds_trainer_loss_scale times the loss.
 *
 * Every call moves the running means and variances of batch norms that were exported for training, which begin where
 * they are at the first call since a step, or since gradients began anew. ds_trainer_step keeps what they moved to.
 *
 * Dropout draws by ds_trainer_seed, ds_trainer_steps and the number of this call since the last step: other masks for
 * every call, and the same ones when a run is repeated. They are those of ds-run train where each micro-batch is a
 * call.
 *
 * Shapes and labels are checked first, and what is wrong with them changes nothing. A call that fails later may leave
 * gradients half added: then calls that need them return DS_STATUS_BAD_STATE until ds_trainer_zero_gradients. */
DS_API ds_status *ds_trainer_backward(ds_trainer *trainer, const ds_tensor *inputs, size_t input_count, double weight,
                                      double *loss);

/* Gradients begin anew, and what running statistics have moved to since the last step is dropped. Nothing else does
 * this, but ds_trainer_load: as in PyTorch, gradients outlive a step, so that they can be looked at, and no step
 * forgets what another call meant to add to. */
DS_API ds_status *ds_trainer_zero_gradients(ds_trainer *trainer);

/* What dropout draws by: 0 at first, and what a checkpoint says once one is loaded, which ds_trainer_save writes. */
DS_API ds_status *ds_trainer_set_seed(ds_trainer *trainer, uint64_t seed);
DS_API uint64_t ds_trainer_seed(const ds_trainer *trainer);

/* Rates of the next steps; at first those of the optimizer in the configuration that the package was compiled with,
 * whose schedule is the caller's to follow. The momentum is Adam's and Lamb's beta1, and SGD's momentum if it has one.
 * Legal are finite rates of 0 or more, and momenta in [0, 1). */
DS_API ds_status *ds_trainer_set_learning_rate(ds_trainer *trainer, double rate);
DS_API ds_status *ds_trainer_set_momentum(ds_trainer *trainer, double momentum);
DS_API double ds_trainer_learning_rate(const ds_trainer *trainer);
DS_API double ds_trainer_momentum(const ds_trainer *trainer);

/* Updates all parameters with the package's optimizer, and running statistics: clips, counts the step, leaves the
 * gradients as they are. An error before there was a ds_trainer_backward since the gradients began anew.
 *
 * grad_norm: of all gradients, over the loss scale and before clipping. is_finite: 0 when it is no finite number, or a
 * running statistic has become none; then nothing was updated. Either may be null.
 *
 * To leave a parameter alone, or update it in another way: keep what it shall be, write zeros to its gradient so that
 * it does not count for the norm, step, and write what was kept. */
DS_API ds_status *ds_trainer_step(ds_trainer *trainer, double *grad_norm, int *is_finite);

DS_API int64_t ds_trainer_steps(const ds_trainer *trainer);         /* so far, also those that updated nothing */
DS_API int64_t ds_trainer_skipped_steps(const ds_trainer *trainer); /* of these, those that updated nothing */

/* What the present gradients, or the next ones, are multiplied by: 1, but for packages compiled for fp16, whose
 * constant or dynamic scale ds_trainer_step keeps. Own optimizers divide by it. */
DS_API double ds_trainer_loss_scale(const ds_trainer *trainer);

/* A checkpoint as ds-run train writes it, complete under its name or not there at all: parameters, running statistics,
 * optimizer, counters; no gradients. A null tag means global_step<steps>. client_state is JSON text that
 * ds_trainer_load gives back, or null. ds-run train --resume goes on from it, from the beginning of the data, or where
 * they were in a checkpoint of its own that this trainer has loaded. */
DS_API ds_status *ds_trainer_save(ds_trainer *trainer, const char *folder, const char *tag, const char *client_state);

/* A null tag means the latest one. Gradients begin anew; rates stay. *client_state, unless client_state is null,
 * becomes JSON text that lives until the next load or the trainer's end, or null where nothing was saved. What is wrong
 * with the checkpoint is found before anything changes; should reading fail even then, the tensors that it had reached
 * are refused until another one is loaded. */
DS_API ds_status *ds_trainer_load(ds_trainer *trainer, const char *folder, const char *tag, const char **client_state);

#ifdef __cplusplus
}
#endif
#endif
