"""Names that TensorRT removed since version 8 and their replacements, which error messages suggest."""

from netloop.values.foreign_names import FOREIGN_NAMES

_ENGINE = "build_serialized_network, and deserialize_cuda_engine of a Runtime"
_WORKSPACE = "set_memory_pool_limit(MemoryPoolType.WORKSPACE, size) of the builder's config"
_NAMES = "the names of tensors instead of binding numbers"

# fmt: off
REPLACEMENTS = {
    # builders and their configs
    "build_cuda_engine":           _ENGINE,
    "build_engine":                _ENGINE,
    "fp16_mode":                   "set_flag(BuilderFlag.FP16) of the builder's config",
    "int8_mode":                   "set_flag(BuilderFlag.INT8) of the builder's config",
    "max_batch_size":              "an axis of length -1, and an optimization profile",
    "max_workspace_size":          _WORKSPACE,

    # networks
    "add_convolution":             "add_convolution_nd",
    "add_deconvolution":           "add_deconvolution_nd",
    "add_fully_connected":         "add_matrix_multiply, and add_elementwise for the bias",
    "add_padding":                 "add_padding_nd",
    "add_pooling":                 "add_pooling_nd",
    "add_rnn":                     "add_loop, with a recurrence for each state",
    "add_rnn_v2":                  "add_loop, with a recurrence for each state",

    # engines and contexts
    "binding_is_input":            "get_tensor_mode",
    "execute":                     "execute_v2",
    "execute_async":               "set_tensor_address and execute_async_v3",
    "execute_async_v2":            "set_tensor_address and execute_async_v3",
    "get_binding_dtype":           "get_tensor_dtype",
    "get_binding_index":           _NAMES,
    "get_binding_name":            "get_tensor_name",
    "get_binding_shape":           "get_tensor_shape",
    "get_profile_shape":           "get_tensor_profile_shape",
    "num_bindings":                "num_io_tensors",
    "set_binding_shape":           "set_input_shape",

    # the module
    "CaffeParser":                 "OnnxParser",
    "ResizeMode":                  "InterpolationMode",
    "SliceMode":                   "SampleMode",
    "UffParser":                   "OnnxParser",
}
# fmt: on
"""The replacement of each removed name."""


def unknown(owner: str, name: str, purpose: str = "", hint: str = "") -> str:
    """Return the message for an unknown attribute, with what replaces a name that TensorRT removed or others have."""
    if name in REPLACEMENTS:
        hint = f"TensorRT removed it; use {REPLACEMENTS[name]}"
    elif name in FOREIGN_NAMES and owner == "INetworkDefinition":
        hint = f"use {FOREIGN_NAMES[name]}"
    return f"{owner} has no attribute {name!r}{purpose}" + (hint and f"; {hint}")
