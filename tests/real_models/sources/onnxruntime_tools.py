"""What onnxruntime's optimizer, quantizer and tools for transformers make of other models."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime import GraphOptimizationLevel as Level
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers import float16, optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

from tests.real_models.recipe import Inputs, Recipes, Sizes, load_inputs

RECIPES = Recipes()
Convert = Callable[[Path, Path], Any]
"""Makes a model at the second path from the one at the first."""


def add(kind: str, base: str, convert: Convert, halve: bool = False) -> None:
    """Add the recipe of a model that is made from another one, whose inputs it takes."""

    def write(path: Path) -> Sizes:
        source = path.with_name(f"{base}.onnx")
        convert(source, path)
        sizes = load_inputs(source)
        return [
            {
                name: array.astype("float16") if halve and array.dtype == "float32" else array
                for name, array in inputs.items()
            }
            for inputs in sizes
        ]

    RECIPES.add(f"ort_{kind}_{base}", f"onnxruntime: {kind}", write, base)


def optimized(level: Level) -> Convert:
    """A model as the optimizer of a session saves it."""

    def convert(source: Path, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 4
        onnxruntime.InferenceSession(str(source), options, ["CPUExecutionProvider"])

    return convert


def fused(kind: str, heads: int, width: int) -> Convert:
    """A transformer with the fusions of onnxruntime.transformers."""

    def convert(source: Path, path: Path) -> None:
        made = optimizer.optimize_model(str(source), kind, heads, width, FusionOptions(kind), opt_level=0)
        made.save_model_to_file(str(path))

    return convert


def half(keep_io_types: bool) -> Convert:
    """A model in float16."""

    def convert(source: Path, path: Path) -> None:
        made = float16.convert_float_to_float16(onnx.load(source), keep_io_types=keep_io_types)
        onnx.save(made, path)

    return convert


class Reader(CalibrationDataReader):
    """The inputs of a model as those that calibrate its quantization."""

    def __init__(self, source: Path) -> None:
        self.inputs: Iterator[Inputs] = iter(load_inputs(source))

    def get_next(self) -> Inputs | None:
        return next(self.inputs, None)


def dynamic(source: Path, path: Path) -> None:
    """Dynamic quantization."""
    quantize_dynamic(str(source), str(path), weight_type=QuantType.QInt8)


def static(form: QuantFormat, activations: QuantType, per_channel: bool = False) -> Convert:
    """Static quantization, calibrated with the inputs of the model."""

    def convert(source: Path, path: Path) -> None:
        prepared = path.with_suffix(".prepared.onnx")
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_static(
            str(prepared),
            str(path),
            Reader(source),
            quant_format=form,
            activation_type=activations,
            weight_type=QuantType.QInt8,
            per_channel=per_channel,
        )
        prepared.unlink()

    return convert


def few_bits(form: QuantFormat, bits: int = 4, symmetric: bool = True) -> Convert:
    """Weights of few bits in blocks."""

    def convert(source: Path, path: Path) -> None:
        quantizer = MatMulNBitsQuantizer(
            onnx.load(source), block_size=16, is_symmetric=symmetric, quant_format=form, bits=bits, accuracy_level=0
        )
        quantizer.process()
        quantizer.model.save_model_to_file(str(path))

    return convert


IMAGES = ("tv_resnet18_script", "tv_mobilenet_v3_small")
BERT, GPT2, LLAMA = "hf_bert_classifier_script", "hf_gpt2_cache_script", "hf_llama_cache_script"
TEXTS = (BERT, GPT2, LLAMA)
for image in (*IMAGES, *TEXTS, "timm_vit_tiny_patch16_224", "rnn_lstm_script", "nn_unet"):
    add("basic", image, optimized(Level.ORT_ENABLE_BASIC))
    add("extended", image, optimized(Level.ORT_ENABLE_EXTENDED))
    add("float16", image, half(keep_io_types=True))
for text in (*TEXTS, "rnn_lstm_script", "hf_t5", "nn_transformer"):
    add("dynamic", text, dynamic)
for image in (*IMAGES, BERT, "nn_unet"):
    add("qdq", image, static(QuantFormat.QDQ, QuantType.QUInt8))
for image in (*IMAGES, "nn_unet"):
    add("qoperator", image, static(QuantFormat.QOperator, QuantType.QUInt8))
add("qdq_int8_channels", IMAGES[0], static(QuantFormat.QDQ, QuantType.QInt8, per_channel=True))
add("qdq_int16", "nn_unet", static(QuantFormat.QDQ, QuantType.QInt16))
for name in (LLAMA, BERT, "hf_llama_cache"):
    add("4bits_qoperator", name, few_bits(QuantFormat.QOperator))
for name in (BERT, "hf_llama_cache"):
    add("4bits_qdq", name, few_bits(QuantFormat.QDQ))
add("4bits_zero_points", LLAMA, few_bits(QuantFormat.QOperator, symmetric=False))
add("8bits_qoperator", LLAMA, few_bits(QuantFormat.QOperator, bits=8))
add("fused", BERT, fused("bert", 4, 32))
add("fused", "hf_bert", fused("bert", 4, 32))
add("fused", "hf_gpt2_script", fused("gpt2", 4, 32))
add("fused", GPT2, fused("gpt2", 4, 32))
add("fused", "timm_vit_tiny_patch16_224_script", fused("vit", 3, 192))
add("half_inputs", LLAMA, half(keep_io_types=False), halve=True)
