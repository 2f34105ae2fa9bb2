#!/usr/bin/env python3
"""Writes tiny transformers as optimum exports them from a checkpoint, each part of a model as a file of its own.

usage: write_optimum.py FOLDER [--family F,...]
Writes FOLDER/FAMILY_optimum_OPSET.onnx, or FOLDER/FAMILY_optimum_0.failed with the exporter's message. What is there
already is left alone.
"""
import argparse
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path

import onnx
import torch
import transformers as t
from optimum.exporters.onnx import main_export

VOCABULARY, HIDDEN = 101, 48
SHAPE = dict(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
LLAMA = dict(SHAPE, num_key_value_heads=2, max_position_embeddings=64)


def bert():
    return t.BertModel(t.BertConfig(**SHAPE, max_position_embeddings=64))


def distilbert():
    return t.DistilBertModel(t.DistilBertConfig(vocab_size=VOCABULARY, dim=HIDDEN, n_layers=2, n_heads=4, hidden_dim=96,
                                                max_position_embeddings=64))


def gpt2():
    return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=HIDDEN, n_layer=2, n_head=4,
                                          bos_token_id=1, eos_token_id=2))


def gpt_neo():
    return t.GPTNeoForCausalLM(t.GPTNeoConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=4,
        window_size=3, max_position_embeddings=64, bos_token_id=1, eos_token_id=2))


def llama():
    return t.LlamaForCausalLM(t.LlamaConfig(**LLAMA))


def qwen2():
    return t.Qwen2ForCausalLM(t.Qwen2Config(**LLAMA))


def t5():
    return t.T5ForConditionalGeneration(t.T5Config(
        vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=12, d_ff=96, num_layers=2, num_heads=4, decoder_start_token_id=0,
        relative_attention_num_buckets=8, relative_attention_max_distance=16, feed_forward_proj="gated-gelu"))


def vit():
    return t.ViTForImageClassification(t.ViTConfig(
        hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=24, patch_size=8))


def whisper():
    return t.WhisperForConditionalGeneration(t.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=10, d_model=HIDDEN, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96,
        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=[], begin_suppress_tokens=[]))


PROCESSORS = {vit: lambda: t.ViTImageProcessor(size={"height": 24, "width": 24}),
              whisper: lambda: t.WhisperFeatureExtractor(feature_size=10)}
CAUSAL, SEQUENCES, SPEECH = "text-generation", "text2text-generation", "automatic-speech-recognition"
# family: the model, optimum's task, the file that it writes
FAMILIES = {"optimum-bert": (bert, "feature-extraction", "model"),
            "optimum-distilbert": (distilbert, "feature-extraction", "model"),
            "optimum-gpt2": (gpt2, CAUSAL, "model"),
            "optimum-gpt2-past": (gpt2, CAUSAL + "-with-past", "model"),
            "optimum-gpt-neo-past": (gpt_neo, CAUSAL + "-with-past", "model"),
            "optimum-llama": (llama, CAUSAL, "model"),
            "optimum-llama-past": (llama, CAUSAL + "-with-past", "model"),
            "optimum-qwen2-past": (qwen2, CAUSAL + "-with-past", "model"),
            "optimum-t5-encoder": (t5, SEQUENCES, "encoder_model"),
            "optimum-t5-decoder": (t5, SEQUENCES, "decoder_model"),
            "optimum-t5-decoder-past": (t5, SEQUENCES + "-with-past", "decoder_with_past_model"),
            "optimum-t5-merged": (t5, SEQUENCES + "-with-past", "decoder_model_merged"),
            "optimum-vit": (vit, "image-classification", "model"),
            "optimum-whisper-encoder": (whisper, SPEECH, "encoder_model"),
            "optimum-whisper-decoder": (whisper, SPEECH, "decoder_model"),
            "optimum-whisper-decoder-past": (whisper, SPEECH + "-with-past", "decoder_with_past_model")}


def randomized(model):
    """Weights large enough that every part of the model matters, also those that start as zeros or ones."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, value in model.named_parameters():
            spread = 0.4 if value.ndim == 1 else 1.2 / value.shape[-1] ** 0.5 if value.ndim == 2 else 0.3
            noise = torch.randn(value.shape, generator=generator) * spread
            value.copy_(value + noise if value.ndim == 1 else noise)
    return model.eval()


def export(make, task, file, family, folder):
    with tempfile.TemporaryDirectory() as temporary:
        saved, written = Path(temporary, "checkpoint"), Path(temporary, "onnx")
        randomized(make()).save_pretrained(saved)
        if make in PROCESSORS:
            PROCESSORS[make]().save_pretrained(saved)
        main_export(str(saved), written, task=task, do_validation=False)
        model = onnx.load(written / f"{file}.onnx")
        opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
        path = folder / f"{family}_optimum_{opset}.onnx"
        onnx.save(model, path)
        return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--family", default=",".join(FAMILIES))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for family in arguments.family.split(","):
        if family not in FAMILIES:
            parser.error(f"expected families of {', '.join(FAMILIES)}, found {family}")
        if list(arguments.folder.glob(f"{family}_optimum_*")):
            continue
        start = time.time()
        try:
            path = export(*FAMILIES[family], family, arguments.folder)
            print(f"{path.name}: {path.stat().st_size >> 10} KiB in {time.time() - start:.1f} s", flush=True)
        except Exception as error:
            (arguments.folder / f"{family}_optimum_0.failed").write_text(f"{type(error).__name__}: {error}\n")
            print(f"{family}: export failed: {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
