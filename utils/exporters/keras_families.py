"""Tiny transformers with random weights, written in Keras layers, as the TensorFlow exporters find them.

Each family is a function that gives a Keras model whose inputs have free batch and length. Two layers of each kind; sizes
are small and differ from each other, as equal ones would hide a swapped axis.
"""
import keras
import numpy as np
from keras import layers, ops

VOCABULARY = 101
HIDDEN, HEADS, WIDE = 48, 4, 88
FAMILIES = {}


def family(function):
    FAMILIES[function.__name__.replace("_", "-")] = function
    return function


def randomized(model):
    """Weights large enough that every part of the model matters, also those that start as zeros or ones."""
    random = np.random.default_rng(1)
    values = []
    for value in model.get_weights():
        if value.ndim == 1:
            values.append(value + 0.4 * random.standard_normal(value.shape))
        else:
            spread = 1.2 / np.prod(value.shape[:-1]) ** 0.5 if value.shape[0] != VOCABULARY else 0.3
            values.append(spread * random.standard_normal(value.shape))
    model.set_weights(values)
    return model


class Positions(layers.Layer):
    """Adds a learned embedding of the positions."""

    def build(self, shape):
        self.table = self.add_weight(shape=(64, shape[-1]), name="table")

    def call(self, x):
        return x + self.table[:ops.shape(x)[1]]


def tokens():
    return keras.Input((None,), dtype="int32", name="input_ids")


def mask_input():
    return keras.Input((None,), dtype="int32", name="attention_mask")


@family
def keras_bert():
    """Norms behind the residual sums, exact GELU, the padding mask of a batch given to every attention."""
    ids, mask = tokens(), mask_input()
    seen = ops.cast(mask, "bool")[:, None, :]
    x = Positions()(layers.Embedding(VOCABULARY, HIDDEN)(ids))
    x = layers.LayerNormalization(epsilon=1e-12)(x)
    for _ in range(2):
        y = layers.MultiHeadAttention(HEADS, HIDDEN // HEADS)(x, x, attention_mask=seen)
        x = layers.LayerNormalization(epsilon=1e-12)(x + y)
        y = layers.Dense(WIDE, activation="gelu")(x)
        x = layers.LayerNormalization(epsilon=1e-12)(x + layers.Dense(HIDDEN)(y))
    return randomized(keras.Model([ids, mask], x))


@family
def keras_gpt2():
    """Norms before each block, causal attention, GELU by tanh."""
    ids = tokens()
    x = Positions()(layers.Embedding(VOCABULARY, HIDDEN)(ids))
    for _ in range(2):
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        x = x + layers.MultiHeadAttention(HEADS, HIDDEN // HEADS)(y, y, use_causal_mask=True)
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        y = layers.Dense(WIDE)(y)
        x = x + layers.Dense(HIDDEN)(keras.activations.gelu(y, approximate=True))
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return randomized(keras.Model(ids, layers.Dense(VOCABULARY, use_bias=False)(x)))


@family
def keras_seq2seq():
    """One encoder layer and one decoder layer with both kinds of attention; masks made by the embedding."""
    source, target = keras.Input((None,), dtype="int32", name="source_ids"), tokens()
    x = layers.Embedding(VOCABULARY, HIDDEN)(source)
    y = layers.MultiHeadAttention(HEADS, HIDDEN // HEADS)(x, x)
    x = layers.LayerNormalization()(x + y)
    memory = layers.LayerNormalization()(x + layers.Dense(HIDDEN)(layers.Dense(WIDE, activation="relu")(x)))
    x = Positions()(layers.Embedding(VOCABULARY, HIDDEN)(target))
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(HEADS, HIDDEN // HEADS)(x, x, use_causal_mask=True))
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(HEADS, HIDDEN // HEADS)(x, memory))
    x = layers.LayerNormalization()(x + layers.Dense(HIDDEN)(layers.Dense(WIDE, activation="relu")(x)))
    return randomized(keras.Model([source, target], x))


class Rotary(layers.Layer):
    """Rotary position embedding of [batch, length, heads, size], pairs half an axis apart."""

    def call(self, x):
        size = x.shape[-1]
        positions = ops.cast(ops.arange(ops.shape(x)[1]), "float32")
        angles = positions[:, None] * ops.power(10000.0, -ops.arange(0, size, 2, dtype="float32") / size)[None, :]
        angles = ops.concatenate([angles, angles], axis=-1)[None, :, None, :]
        first, second = ops.split(x, 2, axis=-1)
        return x * ops.cos(angles) + ops.concatenate([-second, first], axis=-1) * ops.sin(angles)


class GroupedAttention(layers.Layer):
    """Causal attention whose heads share keys and values, with rotary embeddings, in plain operators."""

    def __init__(self, groups, **more):
        super().__init__(**more)
        self.groups, self.size = groups, HIDDEN // HEADS
        self.q = layers.Dense(HIDDEN, use_bias=False)
        self.k = layers.Dense(groups * self.size, use_bias=False)
        self.v = layers.Dense(groups * self.size, use_bias=False)
        self.out = layers.Dense(HIDDEN, use_bias=False)
        self.rotary = Rotary()

    def build(self, shape):
        for layer in (self.q, self.k, self.v, self.out):
            layer.build(shape)

    def call(self, x):
        batch, length = ops.shape(x)[0], ops.shape(x)[1]
        split = lambda y, heads: ops.reshape(y, (batch, length, heads, self.size))
        q, k = self.rotary(split(self.q(x), HEADS)), self.rotary(split(self.k(x), self.groups))
        k, v = (ops.repeat(y, HEADS // self.groups, axis=2) for y in (k, split(self.v(x), self.groups)))
        q, k, v = (ops.transpose(y, (0, 2, 1, 3)) for y in (q, k, v))
        scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) / self.size ** 0.5
        rows = ops.arange(length)
        scores = scores + ops.where(rows[:, None] >= rows[None, :], 0.0, -1e9)
        context = ops.matmul(ops.softmax(scores, axis=-1), v)
        return self.out(ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, length, HIDDEN)))


@family
def keras_llama():
    """RMS norms, rotary embeddings, grouped keys and values, SwiGLU."""
    ids = tokens()
    x = layers.Embedding(VOCABULARY, HIDDEN)(ids)
    for _ in range(2):
        x = x + GroupedAttention(2)(layers.RMSNormalization(epsilon=1e-6)(x))
        y = layers.RMSNormalization(epsilon=1e-6)(x)
        gate = layers.Dense(WIDE, activation="silu", use_bias=False)(y)
        x = x + layers.Dense(HIDDEN, use_bias=False)(gate * layers.Dense(WIDE, use_bias=False)(y))
    x = layers.RMSNormalization(epsilon=1e-6)(x)
    return randomized(keras.Model(ids, layers.Dense(VOCABULARY, use_bias=False)(x)))


@family
def keras_gqa():
    """Keras' own layer for grouped queries."""
    ids = tokens()
    x = layers.Embedding(VOCABULARY, HIDDEN)(ids)
    for _ in range(2):
        y = layers.RMSNormalization(epsilon=1e-6)(x)
        x = x + layers.GroupQueryAttention(HIDDEN // HEADS, HEADS, 2)(y, y, use_causal_mask=True)
        y = layers.RMSNormalization(epsilon=1e-6)(x)
        x = x + layers.Dense(HIDDEN)(layers.Dense(WIDE, activation="silu")(y))
    return randomized(keras.Model(ids, x))


@family
def keras_vit():
    """Patches by a convolution, norms before each block, no mask."""
    image = keras.Input((20, 28, 3), name="pixels")
    x = layers.Conv2D(HIDDEN, 4, strides=4)(image)
    x = Positions()(layers.Reshape((35, HIDDEN))(x))
    for _ in range(2):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(HEADS, HIDDEN // HEADS)(y, y)
        y = layers.Dense(WIDE, activation="gelu")(layers.LayerNormalization(epsilon=1e-6)(x))
        x = x + layers.Dense(HIDDEN)(y)
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization(epsilon=1e-6)(x))
    return randomized(keras.Model(image, layers.Dense(7)(x)))
