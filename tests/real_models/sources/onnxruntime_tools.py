"""What onnxruntime's optimizer, quantizer and tools for transformers make of other models."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import onnx
import onnx.version_converter
import onnxruntime
import onnxsim
import onnxslim
from onnx import helper, numpy_helper
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


def simplified(source: Path, path: Path) -> None:
    """onnxsim."""
    model, _ = onnxsim.simplify(onnx.load(source))
    onnx.save(model, path)


def slim(source: Path, path: Path) -> None:
    """onnxslim."""
    onnx.save(onnxslim.slim(onnx.load(source)), path)


def newer(source: Path, path: Path) -> None:
    """ONNX's own conversion to operator set 21."""
    onnx.save(onnx.version_converter.convert_version(onnx.load(source), 21), path)


def dynamic_of_bytes(source: Path, path: Path) -> None:
    """Dynamic quantization with unsigned weights."""
    quantize_dynamic(str(source), str(path), weight_type=QuantType.QUInt8)


def in_brain_floats(source: Path, path: Path) -> None:
    """Weights in bfloat16, cast to float32 where they are read."""
    model = onnx.load(source)
    casts = []
    for weight in [item for item in model.graph.initializer if item.data_type == onnx.TensorProto.FLOAT]:
        array = numpy_helper.to_array(weight)
        if array.size >= 64:
            name = weight.name
            weight.CopyFrom(numpy_helper.from_array(array.astype(ml_dtypes.bfloat16), f"{name}_bf16"))
            casts.append(helper.make_node("Cast", [weight.name], [name], to=onnx.TensorProto.FLOAT))
    for at, node in enumerate(casts):
        model.graph.node.insert(at, node)
    onnx.save(model, path)


LOOPS = (
    "own_deepar_script",
    "own_lstm_lm_script",
    "own_convlstm_script",
    "own_ssm_loop_script",
    "own_bilstm_crf_script",
)
LARGER = ("df_vae_decoder_script", "timm_fastvit_t8_script", "hf_wav2vec2bert_script", "ta_conformer_script")
for base in (
    *LOOPS,
    *LARGER,
    "own_ntm_script",
    "own_act_script",
    "tv_regnet_y_400mf_script",
    "timm_mambaout_femto_script",
):
    add("all", base, optimized(Level.ORT_ENABLE_ALL))
for base in (*LOOPS, "timm_fastvit_t8_script", "hf_trocr_script", "hf_sam_script"):
    add("simplified", base, simplified)
for base in (*LOOPS, "df_vae_decoder_script", "own_act_script", "ta_conformer_script", "hf_jamba", "hf_clip_script"):
    add("slim", base, slim)
for base in ("own_deepar_script", "own_lstm_lm_script", "hf_trocr_script"):
    add("opset21", base, newer)
for base in ("own_convlstm_script", "own_deepar_script", "own_lstm_lm_script", "ta_conformer_script"):
    add("dynamic_bytes", base, dynamic_of_bytes)
add("float16", "timm_fastvit_t8_script", half(keep_io_types=True))
for base in ("timm_mambaout_femto_script", "tv_regnet_y_400mf_script"):
    add("qdq", base, static(QuantFormat.QDQ, QuantType.QUInt8))
add("qdq_int16", "timm_fastvit_t8_script", static(QuantFormat.QDQ, QuantType.QInt16))
for base in (
    "hf_jamba",
    "hf_trocr_script",
    "hf_siglip_script",
    "hf_qwen3_script",
    "hf_mamba_script",
    "hf_recurrentgemma",
):
    add("4bits_qoperator", base, few_bits(QuantFormat.QOperator))
    add("4bits_qdq", base, few_bits(QuantFormat.QDQ))
for base in (
    "hf_jamba",
    "hf_trocr_script",
    "hf_siglip_script",
    "hf_sam_script",
    "own_lstm_lm_script",
    "hf_llama_script",
):
    add("bfloat16", base, in_brain_floats)
