"""How many launches a layer takes of what exporters write (exporter_cases.py), in each precision: from the first attention of one of
two layers to that of the next (docs/rationale/fusion.md)."""
import re

from exporter_cases import ZOO
from exporter_option_cases import newest
from kit import Skip, case, expect, tool

OPTIONS = ("", "--precision=bf16", "--precision=f16", "--quantize=int8", "--quantize=int4", "--quantize=int8 --activations=int8")
# The most that a layer may take: 5, 3 more with an attention to the encoder, and one that makes its keys and values; rows of
# bytes of a layer whose halves are beside each other take one more. In Keras' models masks have a batch of their own: what attention
# gives is repeated for it before the next product; and Llama's heads are turned in kernels of their own.
# Gemma 2 normalizes what its blocks read and what they give: the second kind are kernels.
MOST = {"bert": 5, "bert-sdpa": 5, "gpt2": 5, "gpt2-past": 5, "gpt-neox": 6, "llama": 5, "llama-past": 5, "qwen2": 5, "qwen3": 5, "t5-encoder": 5, "vit": 5,
        "whisper-encoder": 5, "whisper-decoder": 9, "optimum-bert": 5, "optimum-gpt2": 5, "optimum-gpt2-past": 5, "optimum-gpt-neo-past": 5,
        "optimum-llama": 5, "optimum-llama-past": 5, "optimum-t5-encoder": 5, "optimum-t5-decoder": 9, "optimum-t5-decoder-past": 8,
        "optimum-vit": 5, "optimum-whisper-encoder": 5, "optimum-whisper-decoder": 9, "optimum-whisper-decoder-past": 8, "keras-vit": 5,
        "keras-gpt2": 6, "keras-gqa": 6, "keras-bert": 7, "keras-llama": 7, "gemma2": 7}


@case(seconds=60, slow=True)
def launches_of_a_layer(folder):
    found = {family: newest(family) for family in MOST}
    if not any(found.values()):
        raise Skip(f"no models in {ZOO}; utils/check-models exporters writes them")
    wrong = []
    for family, paths in found.items():
        for path in paths:
            for options in OPTIONS:
                tool("ds-opt", path, "--stop-after=memory", "-o", folder / "m.mlir", *options.split(), timeout=120)
                kernels = re.findall(r"ds\.launch @(\w+)\(", (folder / "m.mlir").read_text())
                attentions = [i for i, name in enumerate(kernels) if name.startswith("attention")]
                layer = attentions[len(attentions) // 2] - attentions[0] if len(attentions) > 1 else 0
                if not 0 < layer <= MOST[family]:
                    wrong.append(f"{path.stem} {options}: {layer}, expected {MOST[family]}")
    expect(not wrong, "; ".join(wrong))
