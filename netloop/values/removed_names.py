"""Names of older versions of TensorRT that version 11 lacks: the one table of what they become.

Error messages suggest from it, ``netloop.compat`` runs scripts that use these names by it, and the documentation lists
it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from netloop.values.foreign_names import FOREIGN_NAMES


class RemovedName(NamedTuple):
    """A name that versions of TensorRT before 11 have.

    Attributes:
        owner: its class or enumeration; empty for a name of the module.
        name: the name.
        last: the last major version that has it.
        instead: the code that a script for TensorRT 11 has instead of it.
        reason: why it has no meaning in netloop; empty for a name that runs in ``python -m netloop.compat --tensorrt``.
    """

    owner: str
    name: str
    last: int
    instead: str
    reason: str = ""


_ENGINE = "build_serialized_network, and deserialize_cuda_engine of a Runtime"
_WORKSPACE = "set_memory_pool_limit(MemoryPoolType.WORKSPACE, size) of the builder's config"
_NAMES = "the names of tensors instead of binding numbers"
_TIMING = "avg_timing_iterations of the builder's config"
_PRODUCT = "add_matrix_multiply, and add_elementwise for the bias"
_BATCH = "an axis of length -1, and an optimization profile"
_CONFIG = "set_flag({}) of the builder's config"
_LOOP = "add_loop, with a recurrence for each state"
_CUDNN = "its weights are one array in a layout of cuDNN's"
_MODELS = "its parser reads model formats that netloop does not read"
_FILES = "OnnxParser, after a conversion of the model to ONNX"

# fmt: off
REMOVED = (
    # ---------------------------------------------------------------- in TensorRT 7, removed in 8
    RemovedName("Builder",             "build_cuda_engine",               7, _ENGINE),
    RemovedName("Builder",             "max_workspace_size",              7, _WORKSPACE),
    RemovedName("Builder",             "fp16_mode",                       7, _CONFIG.format("BuilderFlag.FP16")),
    RemovedName("Builder",             "int8_mode",                       7, _CONFIG.format("BuilderFlag.INT8")),
    RemovedName("Builder",             "strict_type_constraints",         7, "the types of a network's tensors"),
    RemovedName("Builder",             "refittable",                      7, _CONFIG.format("BuilderFlag.REFIT")),
    RemovedName("Builder",             "debug_sync",                      7, _CONFIG.format("BuilderFlag.DEBUG")),
    RemovedName("Builder",             "int8_calibrator",                 7, "add_quantize and add_dequantize"),
    RemovedName("Builder",             "average_find_iterations",         7, _TIMING),
    RemovedName("Builder",             "min_find_iterations",             7, _TIMING),
    RemovedName("INetworkDefinition",  "add_rnn",                         7, _LOOP, _CUDNN),
    RemovedName("IResizeLayer",        "align_corners",                   7, "coordinate_transformation"),

    # ---------------------------------------------------------------- in TensorRT 7 and 8, removed in 10
    RemovedName("Builder",             "build_engine",                    8, _ENGINE),
    RemovedName("Builder",             "max_batch_size",                  8, _BATCH),
    RemovedName("IBuilderConfig",      "max_workspace_size",              8, _WORKSPACE),
    RemovedName("IBuilderConfig",      "min_timing_iterations",           8, "avg_timing_iterations"),

    RemovedName("INetworkDefinition",  "add_convolution",                 8, "add_convolution_nd"),
    RemovedName("INetworkDefinition",  "add_deconvolution",               8, "add_deconvolution_nd"),
    RemovedName("INetworkDefinition",  "add_fully_connected",             8, _PRODUCT),
    RemovedName("INetworkDefinition",  "add_padding",                     8, "add_padding_nd"),
    RemovedName("INetworkDefinition",  "add_pooling",                     8, "add_pooling_nd"),
    RemovedName("INetworkDefinition",  "add_rnn_v2",                      8, _LOOP),
    RemovedName("INetworkDefinition",  "has_explicit_precision",          8, "nothing: networks are strongly typed"),
    RemovedName("IConvolutionLayer",   "kernel_size",                     8, "kernel_size_nd"),
    RemovedName("IConvolutionLayer",   "stride",                          8, "stride_nd"),
    RemovedName("IConvolutionLayer",   "padding",                         8, "padding_nd"),
    RemovedName("IConvolutionLayer",   "dilation",                        8, "dilation_nd"),
    RemovedName("IDeconvolutionLayer", "kernel_size",                     8, "kernel_size_nd"),
    RemovedName("IDeconvolutionLayer", "stride",                          8, "stride_nd"),
    RemovedName("IDeconvolutionLayer", "padding",                         8, "padding_nd"),
    RemovedName("IPoolingLayer",       "window_size",                     8, "window_size_nd"),
    RemovedName("IPoolingLayer",       "stride",                          8, "stride_nd"),
    RemovedName("IPoolingLayer",       "padding",                         8, "padding_nd"),
    RemovedName("IPaddingLayer",       "pre_padding",                     8, "pre_padding_nd"),
    RemovedName("IPaddingLayer",       "post_padding",                    8, "post_padding_nd"),

    RemovedName("ICudaEngine",         "__len__",                         8, "num_io_tensors"),
    RemovedName("ICudaEngine",         "num_bindings",                    8, "num_io_tensors"),
    RemovedName("ICudaEngine",         "max_batch_size",                  8, _BATCH),
    RemovedName("ICudaEngine",         "binding_is_input",                8, "get_tensor_mode"),
    RemovedName("ICudaEngine",         "get_binding_index",               8, _NAMES),
    RemovedName("ICudaEngine",         "get_binding_name",                8, "get_tensor_name"),
    RemovedName("ICudaEngine",         "get_binding_shape",               8, "get_tensor_shape"),
    RemovedName("ICudaEngine",         "get_binding_dtype",               8, "get_tensor_dtype"),
    RemovedName("ICudaEngine",         "get_binding_format",              8, "get_tensor_format"),
    RemovedName("ICudaEngine",         "get_binding_format_desc",         8, "get_tensor_format_desc"),
    RemovedName("ICudaEngine",         "get_binding_vectorized_dim",      8, "get_tensor_vectorized_dim"),
    RemovedName("ICudaEngine",         "get_binding_bytes_per_component", 8, "get_tensor_bytes_per_component"),
    RemovedName("ICudaEngine",         "get_binding_components_per_element", 8, "get_tensor_components_per_element"),
    RemovedName("ICudaEngine",         "get_location",                    8, "get_tensor_location"),
    RemovedName("ICudaEngine",         "get_profile_shape",               8, "get_tensor_profile_shape"),
    RemovedName("ICudaEngine",         "get_profile_shape_input",         8, "get_tensor_profile_values"),
    RemovedName("ICudaEngine",         "is_shape_binding",                8, "is_shape_inference_io"),
    RemovedName("ICudaEngine",         "is_execution_binding",            8, "get_tensor_location"),
    RemovedName("IExecutionContext",   "execute",                         8, "execute_v2"),
    RemovedName("IExecutionContext",   "execute_async",                   8, "set_tensor_address and execute_async_v3"),
    RemovedName("IExecutionContext",   "execute_async_v2",                8, "set_tensor_address and execute_async_v3"),
    RemovedName("IExecutionContext",   "get_binding_shape",               8, "get_tensor_shape"),
    RemovedName("IExecutionContext",   "set_binding_shape",               8, "set_input_shape"),
    RemovedName("IExecutionContext",   "get_shape",                       8, "get_tensor_address"),
    RemovedName("IExecutionContext",   "set_shape_input",                 8, "set_tensor_address"),
    RemovedName("IExecutionContext",   "get_strides",                     8, "get_tensor_strides"),
    RemovedName("IGpuAllocator",       "free",                            8, "deallocate"),

    RemovedName("",                    "IFullyConnectedLayer",            8, "IMatrixMultiplyLayer"),
    RemovedName("",                    "IRNNv2Layer",                     8, _LOOP),
    RemovedName("",                    "RNNOperation",                    8, _LOOP),
    RemovedName("",                    "RNNDirection",                    8, _LOOP),
    RemovedName("",                    "RNNInputMode",                    8, _LOOP),
    RemovedName("",                    "RNNGateType",                     8, _LOOP),
    RemovedName("",                    "ResizeMode",                      8, "InterpolationMode"),
    RemovedName("",                    "SliceMode",                       8, "SampleMode"),
    RemovedName("",                    "CaffeParser",                     8, _FILES, _MODELS),
    RemovedName("",                    "UffParser",                       8, _FILES, _MODELS),

    RemovedName("BuilderFlag",         "STRICT_TYPES",                    8, "the types of a network's tensors"),
    RemovedName("BuilderFlag",         "ENABLE_TACTIC_HEURISTIC",         8, "builder_optimization_level"),
    RemovedName("EngineCapability",    "DEFAULT",                         8, "EngineCapability.STANDARD"),
    RemovedName("EngineCapability",    "SAFE_GPU",                        8, "EngineCapability.SAFETY"),
    RemovedName("EngineCapability",    "SAFE_DLA",                        8, "EngineCapability.DLA_STANDALONE"),
    RemovedName("LayerType",           "FULLY_CONNECTED",                 8, "LayerType.MATRIX_MULTIPLY"),
    RemovedName("LayerType",           "RNN_V2",                          8, "the types of a loop's layers"),
    RemovedName("NetworkDefinitionCreationFlag", "EXPLICIT_PRECISION",    8, "nothing: networks are strongly typed"),
    RemovedName("PaddingMode",         "CAFFE_ROUND_DOWN",                8, "PaddingMode.EXPLICIT_ROUND_DOWN"),
    RemovedName("PaddingMode",         "CAFFE_ROUND_UP",                  8, "PaddingMode.EXPLICIT_ROUND_UP"),
    RemovedName("PreviewFeature",      "FASTER_DYNAMIC_SHAPES_0805",      8, "nothing: it is always on"),
    RemovedName("PreviewFeature",      "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805", 8, "set_tactic_sources"),
    RemovedName("ProfilingVerbosity",  "DEFAULT",                         8, "ProfilingVerbosity.LAYER_NAMES_ONLY"),
    RemovedName("ProfilingVerbosity",  "VERBOSE",                         8, "ProfilingVerbosity.DETAILED"),
    RemovedName("SampleMode",          "DEFAULT",                         8, "SampleMode.STRICT_BOUNDS"),

    # ---------------------------------------------------------------- in TensorRT 7, 8 and 10, removed in 11
    RemovedName("IPluginRegistry",     "plugin_creator_list",            10, "all_creators"),
    RemovedName("IPluginRegistry",     "get_plugin_creator",             10, "get_creator"),
    RemovedName("OnnxParser",          "parse_with_weight_descriptors",  10, "parse"),
    RemovedName("Refitter",            "get_dynamic_range",              10, "add_quantize and add_dequantize"),
    RemovedName("Refitter",            "set_dynamic_range",              10, "add_quantize and add_dequantize"),
    RemovedName("Refitter",            "get_tensors_with_dynamic_range", 10, "add_quantize and add_dequantize"),
    RemovedName("PreviewFeature",      "MULTIDEVICE_RUNTIME_10_16",      10, "nothing: it is always on"),
    RemovedName("ICudaEngine",         "weight_streaming_budget",        10, "weight_streaming_budget_v2"),
    RemovedName("ICudaEngine",         "minimum_weight_streaming_budget", 10, "weight_streaming_scratch_memory_size"),
)
# fmt: on
"""The removed names of TensorRT 7.2 to 10.16, by the version that removed them."""

OPTION = "python -m netloop.compat --tensorrt {} SCRIPT runs it as it is"

GENERAL = frozenset({"execute", "stride", "padding", "dilation", "refittable", "debug_sync", "DEFAULT", "VERBOSE"})
"""The names that other classes and libraries have too, which say nothing without their owner."""


def removed(owner: str, name: str) -> RemovedName | None:
    """The entry of a name of a class; of another class unless others have the name too; None if there is none."""
    entries: Sequence[RemovedName] = [entry for entry in REMOVED if entry.name == name]
    own = next((entry for entry in entries if entry.owner == owner), None)
    return own or (next(iter(entries), None) if name not in GENERAL else None)


def removal(owner: str, name: str) -> str:
    """The sentence about a removed name: its replacement, and how a script runs as it is; empty for any other name."""
    entry = removed(owner, name)
    if entry is None:
        return ""
    option = "" if entry.reason else f"; or {OPTION.format(entry.last)}"
    return f"TensorRT removed it; use {entry.instead}{option}"


def unknown(owner: str, name: str, purpose: str = "", hint: str = "") -> str:
    """Return the message for an unknown attribute, with what replaces a name that TensorRT removed or others have."""
    hint = removal(owner.removeprefix("module "), name) or hint
    if name in FOREIGN_NAMES and owner == "INetworkDefinition":
        hint = f"use {FOREIGN_NAMES[name]}"
    return f"{owner} has no attribute {name!r}{purpose}" + (hint and f"; {hint}")
