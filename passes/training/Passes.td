// Passes of the training phase.
#ifndef DEEPSTRIDE_PASSES_TRAINING_TD
#define DEEPSTRIDE_PASSES_TRAINING_TD

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"ds-differentiate", "::mlir::func::FuncOp"> {
  let summary = "replace gradients by the ops that compute them";
  let description = [{
    Reverse mode over the region of each `train.gradient`, inner ones first: the ops of the region stay, behind them
    come the derivatives in the opposite order, by one rule per op (passes/training/rules). What y does not depend on
    gets zeros. An op between xs and y that has no rule is an error. Values of the region that the program computes
    anyway are shared by the common subexpression elimination that follows.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect", "::deepstride::train::TrainDialect"];
}

def AddHead : Pass<"ds-add-head", "::mlir::ModuleOp"> {
  let summary = "put a fresh linear layer on an output";
  let description = [{
    The model gets an output `head` of [..., classes]: the output of f32 [..., features] that is named, times `head.weight`
    [features, classes] plus `head.bias` [classes]. The weight begins uniform within 1 / sqrt(features) by `seed`, the bias
    with 0.
  }];
  let options = [Option<"output", "output", "std::string", "", "the output of the model that it reads">,
                 Option<"classes", "classes", "int64_t", "0", "how many classes">,
                 Option<"seed", "seed", "uint64_t", "0", "what the weight is drawn by">];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def TieParameters : Pass<"ds-tie-parameters", "::mlir::ModuleOp"> {
  let summary = "make one of weights that are stored twice";
  let description = [{
    Weights of floats with the same elements, or of two axes and the same elements transposed, become one, as a model
    has them whose exporter wrote a shared weight twice. A table that rows are chosen from stays as it is, else the
    first one; a remark names the other. Tensors of equal elements, such as zeros, merely start equal, and so do running
    statistics; where one of these is a parameter in several places, as exporters for inference write a fresh model, a
    warning says so. The module keeps what was tied to what (`ds.tied`). Where they are to stay apart, it is an error if
    there are none. By places, weights in files are not read: those are one that lie at the same place of a file.
    Reports: tied.
  }];
  let options = [Option<"unties", "untie", "bool", "false", "leave them as they are">,
                 Option<"places", "places", "bool", "false", "tell weights apart by where they are stored alone">];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def PromoteParameters : Pass<"ds-promote-parameters", "::mlir::ModuleOp"> {
  let summary = "make states of the weights that a model learns";
  let description = [{
    A weight of 32 or more bits becomes an argument tied to a state of its name, which begins as its recipe. By default
    that are weights and biases of products and convolutions, tables of gathers, scales and biases of norms, vectors that
    are added to or multiplied by activations, tables that are added, and tokens that are joined; masks that are added to
    scores, tables of rotations, and what else is computed with stay, as do means and variances of norms that are written
    for inference, also where something adds them. A running statistic (`ds.running_statistic`) becomes a state, too,
    that is marked `ds.statistic` and is no parameter. Constants of one number that the file stores (`ds.stored`) become
    weights where `train` names them, and stay otherwise. Reports: parameters, running statistics, kept; a remark says why one
    is kept. A model without parameters is an error, and so is `freeze` where it keeps nothing.
  }];
  let options = [Option<"train", "train", "std::string", "", "regular expression: only weights with such names, whatever they act as">,
                 Option<"freeze", "freeze", "std::string", "", "regular expression: no weights with such names">];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def GateLayers : Pass<"ds-gate-layers", "::mlir::ModuleOp"> {
  let summary = "make branches of the blocks that training may drop (progressive layer drop)";
  let description = [{
    Block l of a residual stream, x + f(x) in pre-norm form, runs where the input `layer_gate/l` says so; what it adds to
    the stream is multiplied by `layer_scale/l`, and where it is dropped the stream passes. Attention and feed-forward
    network, and whatever else repeats together, are one block; what only the block reads moves into it. With all gates
    open and scales of 1 the program computes the same bits as before. What other outputs than `output` read of a block
    that is dropped is undefined. The module keeps the blocks' names (`ds.layers`).

    Post-norm models, those without blocks, and blocks that move a running statistic are errors. Zhang and He,
    2010.13369, section 4. Reports: blocks.
  }];
  let options = [Option<"output", "output", "std::string", "", "the output that is judged; empty: all are">];
  let dependentDialects = ["::deepstride::ds::DSDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def RecomputeActivations : Pass<"ds-recompute-activations", "::mlir::ModuleOp"> {
  let summary = "compute activations again on the way back instead of keeping them";
  let description = [{
    In the entry `micro`, what the way back reads of the forward part is computed there once more, right before it is
    read first: `values` activations, those first that save most memory for the time that they take. Ops are computed
    again once each, with the same bits, so that a step takes at most one forward part more. Of a block that may be
    dropped (ds-gate-layers), activations are computed again in its own way back. What loops, branches and computed sizes
    make is kept.

    The module says how many activations could be computed again (`ds.activations`). Reports: activations, computed
    again, ops; remarks name what is.
  }];
  let options = [
    Option<"values", "values", "int64_t", "-1", "how many activations; negative: all that can">,
    ListOption<"dims", "dims", "std::string", "sizes by which costs are judged, as name=value">];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def ListParameters : Pass<"ds-list-parameters", "::mlir::ModuleOp"> {
  let summary = "list the parameters of the model with the nodes that read them";
  let description = [{
    The module gets `ds.parameters`: how many elements each has, and the name of the first node to which it is a weight, a
    bias, a scale or a table, for the module trees of profiles. Parameters are states that begin with something, and
    stored floats, or codes of 8 bits and less, that act as `ds-promote-parameters` wants it. Nothing else changes.
    Reports: parameters.
  }];
  let dependentDialects = ["::deepstride::ds::DSDialect"];
}

def BuildTrainingStep : Pass<"ds-build-training-step", "::mlir::ModuleOp"> {
  let summary = "make a micro-batch, an update and an evaluation of a model whose parameters are states";
  let description = [{
    The one entry becomes `eval`, which yields the loss (and, of classes, how many labels were counted and how many are
    the greatest logit) before the model's outputs. `micro` computes the loss and adds its gradients, times
    `loss_weight`, to states NAME/gradient, or begins them where `first` holds. `update` computes the norm of all
    gradients over `loss_scale`, clips, and updates parameters and the optimizer's states, if the norm is finite; where it
    is not, it changes nothing and yields `finite` false. Gradients are sums in the parameter's type. `eval` drops nothing
    out; where `micro` does, it is given `random_seed`, `random_step` and `random_micro`: `ds.dropout` becomes ops, an
    attention draws in its kernel.

    Where a running statistic is a state, `eval` normalizes by it. `micro` normalizes by the batch's and moves the state
    NAME/moved, from the running one where `first` holds; `update` makes that the running one.

    Where ds-gate-layers has gated blocks, `eval` runs all of them. In `micro`, gradients of what one block alone reads are
    added up where the block runs, or begun where `layer_first/l` holds; a dropped block writes nothing, so that `update`
    is told by `layer_ran/l` which blocks have gradients; those of others are 0.
    With `layers`, `curvature` multiplies the Hessian of the loss by a vector, restricted to the parameters of one layer
    (passes/training/Curvature.h).

    Gradients are added up over the ranks of the mesh's axis `data` in `micro` where `last` holds, in messages that are
    units (passes/training/Units.h), or parts of at most `reduce-bucket` elements, and on their way while others are
    computed, with `overlaps`. With `share-stage` 1 ranks share the work and the states of the optimizer: each updates its
    part of every unit and gets the rest from the others, in messages of `gather-bucket` elements. With 2 they share
    gradients, which every `micro` adds up, with 3 parameters, which `micro` and `eval` gather before they are read,
    but for those below `persistence` (ZeRO, Rajbhandari et al. 1910.02054). Sizes are over mesh.data: one program for any number of ranks.

    With `wire`, gradients are rounded to that type on their way to the sum, and the sum to it once. With `gradients-in`, the
    states that they are added up in have that type: each sum is of the parameter's type, and rounded once.

    With `rounds`, readers of parameters of f32 get what these are in that type, widened again. From stage 1 on the states
    that they read are of that type, and what a rank owns of a unit is there once more as f32, NAME/master: `update` goes
    on from that, and rounds once.

    With `sparse-tables`, a table of which only rows are read has a message of its own, in which touched rows travel; a
    warning says why a table has none (passes/training/SparseTables.h).

    1-bit optimizers have two more entries for the steps after their warm-up, which is `update`: `local_norm` and
    `update_compressed` (passes/training/CompressedUpdate.h).

    Formulas: passes/training/Loss.h, Optimizers.h, FrozenUpdate.h and GradientNorm.h. Reports: ops reversed, units.
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"cross_entropy\"", "cross_entropy, mse, or the name of an output of one number">,
    Option<"logits", "logits", "std::string", "", "the output that cross_entropy or mse judges">,
    Option<"labels", "labels", "std::string", "", "the name of the input to be added that it is judged by">,
    Option<"shiftLabels", "shift-labels", "bool", "false", "logits at place i are judged by the label at i + 1">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "labels that count nothing">,
    Option<"accumulates", "accumulates", "bool", "true", "whether a step may have several micro-batches">,
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "as OptimizerSettings::parse reads it">,
    Option<"clip", "clip", "double", "0", "greatest norm of all gradients; 0: any">,
    Option<"noDecay", "no-decay", "std::string", "", "regular expression: parameters that do not decay">,
    Option<"layerName", "layer-name", "std::string", "", "path of the layers of `curvature`, as bert.encoder.layer">,
    Option<"layers", "layers", "int64_t", "0", "how many they are; 0: no entry `curvature`">,
    Option<"stability", "stability", "double", "1e-6", "added to what a direction is divided by">,
    Option<"shareStage", "share-stage", "int64_t", "0", "what ranks share: 1 optimizer states, 2 gradients, 3 parameters">,
    Option<"reduceBucket", "reduce-bucket", "int64_t", "int64_t(1) << 53", "elements of gradients in one message">,
    Option<"gatherBucket", "gather-bucket", "int64_t", "int64_t(1) << 53", "elements of parameters in one message">,
    Option<"overlaps", "overlaps", "bool", "true", "messages travel while something else is computed">,
    Option<"sparseTables", "sparse-tables", "bool", "false", "of tables, rows that are touched travel alone">,
    Option<"wire", "wire", "std::string", "", "what gradients travel in: bf16, f16, f32; empty, or not narrower: as they are">,
    Option<"gradientsIn", "gradients-in", "std::string", "", "what gradients are kept in: bf16, f16, f32; empty, or not narrower: as parameters">,
    Option<"rounds", "rounds", "std::string", "", "what parameters are rounded to where they are read: bf16 or f16; empty: they are not">,
    Option<"prefetch", "prefetch", "int64_t", "int64_t(1) << 53", "of stage 3: elements of the next unit that are gathered while one is read">,
    Option<"maxLive", "max-live", "int64_t", "int64_t(1) << 53", "of stage 3: elements that are there at a time, beside the unit that is read">,
    Option<"maxReuse", "max-reuse", "int64_t", "0", "of stage 3: a unit stays that is read again behind fewer elements of others">,
    Option<"persistence", "persistence", "int64_t", "0", "of stage 3: parameters of fewer elements stay whole on every rank">,
    Option<"modelPersistence", "model-persistence", "int64_t", "int64_t(1) << 53", "elements that stay whole together, at most">];
  let dependentDialects = ["::deepstride::ds::DSDialect", "::deepstride::dist::DistDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def ScheduleQuantization : Pass<"ds-schedule-quantization", "::mlir::ModuleOp"> {
  let summary = "train on quantized weights, at a width that each call is given (MoQ)";
  let description = [{
    Works on the entries of ds-build-training-step. In `eval` and `micro`, every use of a parameter of 2 or more
    dimensions reads its image: what it is rounded to in groups, contiguous ranges of the flat tensor. Gradients are those
    of images, and `update` keeps the parameters themselves. `quantize_levels` are 2^b for b bits, of each block of
    parameters; 0 leaves them as they are, 4 is ternary and 2 binary where the scheme is symmetric and rounding to
    nearest. With `mixed`, an image is the sum of `quantize_shares` of the parameter and the rest of what it is rounded
    to. Stochastic rounding draws by `quantize_seed`, `quantize_step`, the parameter's name and the place. A new entry
    `quantize` hands out images. With `layers`, each layer is a block, and what belongs to none is another. The module says which parameters have them (`ds.quantized`).

    A number of elements that the groups do not divide is an error, and so is a model where nothing is quantized.
    Formulas: passes/training/Quantizers.h. Reports: parameters quantized; a remark says why one is not.
  }];
  let options = [
    Option<"groups", "groups", "int64_t", "1", "groups of a tensor, each with a step of its own">,
    Option<"scheme", "scheme", "std::string", "\"symmetric\"", "symmetric or asymmetric">,
    Option<"rounding", "rounding", "std::string", "\"nearest\"", "nearest or stochastic">,
    Option<"mixed", "mixed", "bool", "false", "images keep a share of the parameter">,
    Option<"layerName", "layer-name", "std::string", "", "path of the layers that are blocks, as bert.encoder.layer">,
    Option<"layers", "layers", "int64_t", "0", "how many they are; 0: all parameters are one block">];
  let dependentDialects = ["::deepstride::ds::DSDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif
