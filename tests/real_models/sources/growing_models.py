"""Decoders of transformers that run step by step, with a cache of keys and values that grows by a row in each step."""

from pathlib import Path
from typing import Any

import onnx
import torch
import transformers
from onnx import TensorProto, helper
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache

from tests.real_models.feedback import Feedback, save_steps
from tests.real_models.recipe import Inputs, Recipes, Sizes, load_inputs
from tests.real_models.sources.decoder_models import HEADS, LAYERS, WIDTH, Cached, made
from tests.real_models.sources.exporting import DYNAMO, SCRIPT, write
from tests.real_models.sources.language_models import SEQUENCE_TO_SEQUENCE, mask, tokens
from tests.real_models.sources.onnxruntime_tools import Convert, Level, QuantFormat, dynamic, few_bits, half, optimized

RECIPES = Recipes()
LARGE = 400
"""The bytes from which on constants are weights, which branches share."""
Start = tuple[int, int, int]
"""The batch, the length of the past and the number of new tokens of the first step."""


def cache_names(part: str, layers: int = LAYERS) -> list[str]:
    return [f"{part}.{layer}.{kind}" for layer in range(layers) for kind in ("key", "value")]


FEEDBACK: Feedback = dict(zip(cache_names("present"), cache_names("past"), strict=True))


def cache(batch: int, heads: int, past: int, width: int = WIDTH // HEADS) -> dict[str, Tensor]:
    """Random keys and values of earlier tokens."""
    chance = torch.Generator().manual_seed(past)
    return {name: torch.randn(batch, heads, past, width, generator=chance) for name in cache_names("past")}


def inputs_of_step(heads: int, start: Start) -> dict[str, Tensor]:
    batch, past, new = start
    return {
        "input_ids": tokens(batch, new),
        "attention_mask": mask(batch, past + new).flip(1),
        **cache(batch, heads, past),
    }


def arrays(inputs: dict[str, Tensor]) -> Inputs:
    return {name: tensor.numpy() for name, tensor in inputs.items()}


def export(
    path: Path, model: nn.Module, sizes: list[dict[str, Tensor]], dynamo: bool, presents: list[str], **options: Any
) -> None:
    """Export a step whose first output is the logits and whose others are the cache."""
    write(path, lambda: (model, sizes), dynamo, output_names=["logits", *presents], **options)


def decoder(kind: str, heads: int, dynamo: bool, start: Start, **more: Any) -> Any:
    """The recipe of a decoder; where more than one token begins, the number of new tokens is open."""

    def write_steps(path: Path) -> Sizes:
        torch.manual_seed(0)
        new = (3, 4) if start[2] > 1 else (1, 1)
        sizes = [inputs_of_step(heads, (2, 6, new[0])), inputs_of_step(heads, (3, 9, new[1]))]
        export(path, Cached(made(kind, **more)), sizes, dynamo, cache_names("present"))
        return save_steps(path, arrays(inputs_of_step(heads, start)), FEEDBACK)

    return write_steps


def add(name: str, kind: str, heads: int, *, dynamo: bool = False, start: Start = (2, 6, 1), **more: Any) -> None:
    """Add the recipe of a decoder."""
    suffix = "" if dynamo else "_script"
    RECIPES.add(f"hf_{name}{suffix}", DYNAMO if dynamo else SCRIPT, decoder(kind, heads, dynamo, start, **more))


class Translator(nn.Module):
    """The decoder of an encoder-decoder: the cache of its own tokens grows, and that of the encoder's stays."""

    variadic = True

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        ids, hidden, *past = inputs
        pairs = list(zip(past[::2], past[1::2], strict=True))
        both = EncoderDecoderCache(DynamicCache(pairs[:LAYERS]), DynamicCache(pairs[LAYERS:]))
        answer = self.model(decoder_input_ids=ids, encoder_outputs=(hidden,), past_key_values=both, use_cache=True)
        layers = answer.past_key_values.self_attention_cache.layers
        return answer.logits, *(value for layer in layers for value in (layer.keys, layer.values))


def translator(kind: str, dynamo: bool) -> Any:
    """The recipe of the decoder of an encoder-decoder."""

    def size(batch: int, past: int, source: int) -> dict[str, Tensor]:
        chance = torch.Generator().manual_seed(source)
        crossed = [torch.randn(batch, HEADS, source, WIDTH // HEADS, generator=chance) for _ in range(2 * LAYERS)]
        return {
            "decoder_input_ids": tokens(batch, 1),
            "encoder_hidden_states": torch.randn(batch, source, WIDTH, generator=chance),
            **cache(batch, HEADS, past),
            **dict(zip(cache_names("crossed"), crossed, strict=True)),
        }

    def write_steps(path: Path) -> Sizes:
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(
            **{**SEQUENCE_TO_SEQUENCE[kind], "attn_implementation": "eager"}
        )
        head = "MTModel" if kind == "Marian" else "ForConditionalGeneration"
        model = Translator(getattr(transformers, kind + head)(config))
        sizes = [size(2, 6, 5), size(3, 9, 7)]
        export(path, model, sizes, dynamo, cache_names("present"))
        kept = {info.name for info in onnx.load(path).graph.input}
        start = {name: array for name, array in arrays(sizes[0]).items() if name in kept}
        return save_steps(path, start, FEEDBACK)

    return write_steps


def merged(kind: str, heads: int) -> Any:
    """The recipe of a decoder with and without a past in one file, as branches of a conditional that share weights."""

    def write_steps(path: Path) -> Sizes:
        torch.manual_seed(0)
        model, parts = Cached(made(kind)), []
        for name, sizes in {
            "first": [inputs_of_step(heads, (2, 0, 3)), inputs_of_step(heads, (3, 0, 4))],
            "later": [inputs_of_step(heads, (2, 6, 1)), inputs_of_step(heads, (3, 9, 1))],
        }.items():
            part = path.with_suffix(f".{name}.onnx")
            export(part, model, sizes, False, cache_names("present"))
            parts.append(onnx.load(part))
            part.unlink()
        onnx.save(one_of(*parts), path)
        start = {**arrays(inputs_of_step(heads, (2, 0, 4))), "use_cache_branch": torch.tensor([False]).numpy()}
        return save_steps(path, start, FEEDBACK)

    return write_steps


def one_of(first: onnx.ModelProto, later: onnx.ModelProto) -> onnx.ModelProto:
    """A model that runs one of two, by its input ``use_cache_branch``."""
    branches, weights = [], dict[bytes, onnx.TensorProto]()
    for prefix, part in (("first_", first), ("later_", later)):
        names = {name: prefix + name for node in part.graph.node for name in node.output if name}
        for item in part.graph.initializer:
            kind = item.SerializeToString().replace(item.name.encode(), b"")
            names[item.name] = weights.setdefault(kind, item).name if len(kind) > LARGE else prefix + item.name
        own = [item for item in part.graph.initializer if names[item.name].startswith(prefix)]
        for item in own:
            item.name = names[item.name]
        outputs = [helper.make_value_info(names[info.name], info.type) for info in part.graph.output]
        branches.append(helper.make_graph([renamed(node, names) for node in part.graph.node], prefix, [], outputs, own))
    choice = helper.make_node(
        "If",
        ["use_cache_branch"],
        [info.name for info in later.graph.output],
        then_branch=branches[1],
        else_branch=branches[0],
    )
    inputs = [opened(info) for info in later.graph.input]
    flag = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    graph = helper.make_graph(
        [choice], "merged", [*inputs, flag], list(map(opened, later.graph.output)), [*weights.values()]
    )
    return helper.make_model(graph, opset_imports=later.opset_import, ir_version=later.ir_version)


def opened(info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """An input or output of the same rank with open lengths."""
    kind = info.type.tensor_type
    return helper.make_tensor_value_info(info.name, kind.elem_type, [None] * len(kind.shape.dim))


def renamed(node: onnx.NodeProto, names: dict[str, str]) -> onnx.NodeProto:
    """A node with other names of its values, those in its branches too."""
    copy = onnx.NodeProto.FromString(node.SerializeToString())
    for values in (copy.input, copy.output):
        values[:] = [names.get(name, name) for name in values]
    for attribute in copy.attribute:
        if attribute.HasField("g"):
            inner = [renamed(nested, names) for nested in attribute.g.node]
            del attribute.g.node[:]
            attribute.g.node.extend(inner)
            for info in attribute.g.output:
                info.name = names.get(info.name, info.name)
    return copy


GROUPED = {"Llama": 2, "Mistral": 2, "Qwen2": 2, "Qwen3": 2, "Phi3": 2, "Gemma2": 2, "Granite": 2, "StableLm": 2}
PLAIN = {"GPT2": 4, "OPT": 4, "GPTNeoX": 4, "GPTJ": 4, "CodeGen": 4, "Phi": 2, "Olmo2": 2, "Mixtral": 2}
for name, heads in {**GROUPED, **PLAIN}.items():
    add(f"{name.lower()}_steps", name, heads)
for name in ("GPT2", "Llama", "Qwen3", "Phi3", "Cohere", "Gemma2"):
    add(f"{name.lower()}_steps", name, 4 if name == "GPT2" else 2, dynamo=True)
for name in ("Llama", "GPT2", "Qwen3"):
    add(f"{name.lower()}_from_nothing", name, 4 if name == "GPT2" else 2, start=(2, 0, 5))
    add(f"{name.lower()}_from_nothing", name, 4 if name == "GPT2" else 2, start=(2, 0, 5), dynamo=True)
for name in ("T5", "Bart", "Marian"):
    RECIPES.add(f"hf_{name.lower()}_steps_script", SCRIPT, translator(name, False))
    RECIPES.add(f"hf_{name.lower()}_steps", DYNAMO, translator(name, True))
for name in ("GPT2", "Llama"):
    RECIPES.add(f"hf_{name.lower()}_merged_script", SCRIPT, merged(name, 4 if name == "GPT2" else 2))


def converted(base: str, convert: Convert, kind: str = "float32") -> Any:
    """The recipe of a decoder that is made from another one."""

    def write_steps(path: Path) -> Sizes:
        source = path.with_name(f"{base}.onnx")
        convert(source, path)
        start = load_inputs(source)[0]
        return save_steps(path, {n: a.astype(kind) if a.dtype == "float32" else a for n, a in start.items()}, FEEDBACK)

    return write_steps


for name, convert in {
    "4bits_qoperator": few_bits(QuantFormat.QOperator),
    "4bits_qdq": few_bits(QuantFormat.QDQ),
    "dynamic": dynamic,
    "extended": optimized(Level.ORT_ENABLE_EXTENDED),
}.items():
    for base in ("hf_gpt2_steps",) if name == "4bits_qdq" else ("hf_llama_steps_script", "hf_gpt2_steps"):
        RECIPES.add(f"ort_{name}_{base}", f"onnxruntime: {name}", converted(base, convert), base)
HALVED = converted("hf_llama_steps_script", half(keep_io_types=False), "float16")
RECIPES.add("ort_half_inputs_hf_llama_steps_script", "onnxruntime: half_inputs", HALVED, "hf_llama_steps_script")
