"""Tiny transformers with random weights, one per family of models, from the library that users export from.

Each family is a function that gives a Case: the module, example inputs and which of their axes are dynamic. Two layers of
each kind; sizes are small and differ from each other, as equal ones would hide a swapped axis.
"""
from dataclasses import dataclass

import torch
import transformers
from torch import nn

VOCABULARY = 101
HIDDEN = 48
FAMILIES = {}


@dataclass
class Case:
    module: nn.Module
    inputs: dict  # name -> example tensor, in the order of the module's parameters
    axes: dict  # name -> {axis: symbol}
    outputs: list


def family(function):
    FAMILIES[function.__name__.replace("_", "-")] = function
    return function


def ids(batch=2, length=5):
    return torch.arange(batch * length).reshape(batch, length) * 7 % VOCABULARY


def randomized(model):
    """Weights large enough that every part of the model matters, also those that start as zeros or ones."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, value in model.named_parameters():
            spread = 0.4 if value.ndim == 1 else 1.2 / value.shape[-1] ** 0.5 if value.ndim == 2 else 0.3
            noise = torch.randn(value.shape, generator=generator) * spread
            value.copy_(value + noise if value.ndim == 1 else noise)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.eval()


class Logits(nn.Module):
    """A causal language model as a function of ids and mask."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


class LogitsWithPast(nn.Module):
    """A causal language model that takes and gives one key and one value tensor per layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, *past):
        from transformers.cache_utils import DynamicCache
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        present = []
        for layer in result.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (result.logits, *present)


def decoder(model, config):
    config.use_cache = False
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    case_inputs = {"input_ids": ids(), "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])}
    axes = {0: "batch", 1: "length"}
    return Case(Logits(randomized(model(config))), case_inputs, {name: axes for name in case_inputs}, ["logits"])


def decoder_with_past(model, config, layers, kv_heads, head):
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    inputs = {"input_ids": ids(2, 2), "attention_mask": torch.ones(2, 5, dtype=torch.int64)}
    axes = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "total"}}
    outputs = ["logits"]
    for layer in range(layers):
        for part in ("key", "value"):
            name = f"past.{layer}.{part}"
            inputs[name] = torch.randn(2, kv_heads, 3, head)
            axes[name] = {0: "batch", 2: "past"}
            outputs.append(f"present.{layer}.{part}")
    return Case(LogitsWithPast(randomized(model(config))), inputs, axes, outputs)


def gpt2_config():
    return transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=HIDDEN, n_layer=2, n_head=4)


def llama_config(kind=None, **more):
    return (kind or transformers.LlamaConfig)(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=88, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=12, max_position_embeddings=64, **more)


@family
def gpt2():
    return decoder(transformers.GPT2LMHeadModel, gpt2_config())


@family
def gpt2_past():
    return decoder_with_past(transformers.GPT2LMHeadModel, gpt2_config(), 2, 4, HIDDEN // 4)


@family
def llama():
    return decoder(transformers.LlamaForCausalLM, llama_config())


@family
def llama_past():
    return decoder_with_past(transformers.LlamaForCausalLM, llama_config(), 2, 2, 12)


@family
def qwen2():
    return decoder(transformers.Qwen2ForCausalLM, llama_config(transformers.Qwen2Config))


@family
def qwen3():
    return decoder(transformers.Qwen3ForCausalLM, llama_config(transformers.Qwen3Config))


@family
def gemma2():
    return decoder(transformers.Gemma2ForCausalLM, llama_config(
        transformers.Gemma2Config, sliding_window=3, attn_logit_softcapping=5.0, final_logit_softcapping=3.0,
        query_pre_attn_scalar=12))


@family
def gpt_neox():
    return decoder(transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=64, rotary_pct=0.5))


@family
def gpt_neo():
    return decoder(transformers.GPTNeoForCausalLM, transformers.GPTNeoConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=4,
        window_size=3, max_position_embeddings=64))


class Encoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def encoder(model):
    inputs = {"input_ids": ids(), "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])}
    axes = {0: "batch", 1: "length"}
    return Case(Encoder(randomized(model)), inputs, {name: axes for name in inputs}, ["last_hidden_state"])


@family
def bert():
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=96, max_position_embeddings=64)
    config._attn_implementation = "eager"
    return encoder(transformers.BertModel(config, add_pooling_layer=False))


@family
def bert_sdpa():
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=96, max_position_embeddings=64)
    config._attn_implementation = "sdpa"
    return encoder(transformers.BertModel(config, add_pooling_layer=False))


@family
def deberta():
    config = transformers.DebertaV2Config(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=64, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8,
        share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0)
    config._attn_implementation = "eager"
    return encoder(transformers.DebertaV2Model(config))


def t5_config():
    config = transformers.T5Config(vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=12, d_ff=96, num_layers=2, num_heads=4,
                                   relative_attention_num_buckets=8, relative_attention_max_distance=16,
                                   feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    config._attn_implementation = "eager"
    return config


@family
def t5_encoder():
    return encoder(transformers.T5EncoderModel(t5_config()))


class T5Decoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, encoder_attention_mask, encoder_hidden_states):
        hidden = self.model.decoder(input_ids=input_ids, encoder_attention_mask=encoder_attention_mask,
                                    encoder_hidden_states=encoder_hidden_states, use_cache=False).last_hidden_state
        return self.model.lm_head(hidden)


@family
def t5_decoder():
    inputs = {"input_ids": ids(2, 4), "encoder_attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
              "encoder_hidden_states": torch.randn(2, 5, HIDDEN, generator=torch.Generator().manual_seed(3))}
    axes = {"input_ids": {0: "batch", 1: "length"}, "encoder_attention_mask": {0: "batch", 1: "source"},
            "encoder_hidden_states": {0: "batch", 1: "source"}}
    return Case(T5Decoder(randomized(transformers.T5ForConditionalGeneration(t5_config()))), inputs, axes, ["logits"])


class Pixels(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits


@family
def vit():
    config = transformers.ViTConfig(hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                                    image_size=24, patch_size=8, num_labels=7)
    config._attn_implementation = "eager"
    pixels = torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(4))
    return Case(Pixels(randomized(transformers.ViTForImageClassification(config))), {"pixel_values": pixels},
                {"pixel_values": {0: "batch"}}, ["logits"])


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=10, d_model=HIDDEN, encoder_layers=2, encoder_attention_heads=4,
        decoder_layers=2, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=16,
        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=[], begin_suppress_tokens=[])
    config._attn_implementation = "eager"
    return randomized(transformers.WhisperForConditionalGeneration(config))


class Mel(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_features):
        return self.model(input_features).last_hidden_state


class WhisperDecoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, encoder_hidden_states):
        hidden = self.model.model.decoder(input_ids=input_ids, attention_mask=attention_mask, use_cache=False,
                                          encoder_hidden_states=encoder_hidden_states).last_hidden_state
        return self.model.proj_out(hidden)


@family
def whisper_encoder():
    mel = torch.randn(2, 10, 32, generator=torch.Generator().manual_seed(5))
    return Case(Mel(whisper().model.encoder), {"input_features": mel}, {"input_features": {0: "batch"}},
                ["last_hidden_state"])


@family
def whisper_decoder():
    inputs = {"input_ids": ids(2, 4), "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
              "encoder_hidden_states": torch.randn(2, 16, HIDDEN, generator=torch.Generator().manual_seed(6))}
    axes = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"},
            "encoder_hidden_states": {0: "batch"}}
    return Case(WhisperDecoder(whisper()), inputs, axes, ["logits"])


class BiLstm(nn.Module):
    """Embedding, two bidirectional LSTM layers, mean over time, a linear layer: a sentence classifier."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 20)
        self.lstm = nn.LSTM(20, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(24, 5)

    def forward(self, input_ids):
        hidden, (last, cell) = self.lstm(self.embedding(input_ids))
        return self.out(hidden.mean(dim=1)), last, cell


@family
def bilstm():
    return Case(randomized(BiLstm()), {"input_ids": ids()}, {"input_ids": {0: "batch", 1: "length"}},
                ["logits", "last", "cell"])
