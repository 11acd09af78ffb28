"""Why tests of other projects fail: for each suite, patterns of names and the reasons, of which the first counts."""

import re

SCRIPT = "the script itself is at fault, and does not run on TensorRT either"
FILES = "needs files or packages that are not there"
MUTABLE = "the module changes its input, which the engine then reads"

INNER_LAYER = "TensorRT counts one more layer in an attention, and its number is in the name of the output"
LLM_PLUGINS = "needs the plugin `GPTAttention` of TensorRT-LLM's compiled library"

# fmt: off
REASONS: dict[str, dict[str, str]] = {
    "polygraphy": {
        r"test_config\.py::.*::test_flags\[True-allow_gpu_fallback.*":
            "Polygraphy sets the flag only for a DLA, and there is none",
        r"test_config\.py::.*::test_use_dla": "Polygraphy refuses a DLA where there is none",
        r"test_util\.py::test_str_from_config\[dla\]": "Polygraphy refuses a DLA where there is none",
        r"test_loader\.py::TestOnnxLikeFromNetwork::.*\[empty_tensor_expand\]":
            "Polygraphy cannot convert bool weights to ONNX, and netloop computes this shape with some",
    },
    "onnx_tensorrt": {
        r".*_((u?int(8|16|32|64)|bfloat16|string|float64)(_.*)?|with_dtype|log_sum_exp_default_axes.*)_cuda":
            "the backend knows no unsigned or short integers, BF16, float64 and strings, nor do TensorRT's layers",
        r".*::test_identity_(opt|sequence)_cuda": "sequences and optional values, of which the backend makes arrays",
        r".*::test_(reduce_|squeeze_|unsqueeze_).*":
            "axes that are an input of the graph, which TensorRT's parser refuses; here the lengths of the result "
            "follow in the run, and the backend allocates it before",
    },
    "torch2trt": {
        r"test_converters\.py::(test_iadd|test_scalar_op\[.*__ipow__\])": MUTABLE,
        r"test_converters\.py::test_conv_transpose\[.-3-1-1-2-1-True-False\]":
            "torch2trt does not pass the dilation on",
        r"test_converters\.py::test_floordiv_scalar\[.*":
            "torch2trt rounds towards zero, as PyTorch did before 1.13; it now rounds down",
        r"test_converters\.py::test_log_softmax\[1\]":
            "torch2trt sets no axis; TensorRT's default for a matrix is its first one, and PyTorch's here the second",
        r"test_converters\.py::test_instance_norm\[4-1\]":
            "a scale layer of three axes; TensorRT's documentation asks for at least four",
        r"test_converters\.py::test_narrow\[-1--1-1\]":
            "a slice that starts at -1: in TensorRT it is out of bounds, and does not count from the end",
        r"test_converters\.py::test_pad\[.*":
            "`add_padding`, which TensorRT dropped; and the converter reads paddings of exactly two axes",
    },
    "torch_tensorrt": {
        r"test_embedding_bag_aten\.py::.*::test_embedding_bag_with_ITensor_offsets_1":
            "the converter replaces the last offset by the length; PyTorch on a CPU keeps it",
        r"test_softmax_aten\.py::.*": "PyTorch has no softmax of float16 with float32 results on a CPU",
    },
    "model_connect": {
        r"test_graph_blocks\.py::.*::test_silu_activation":
            "the test passes a parameter that its function does not have",
    },
    "tensorrt_llm": {
        r"test_graph_rewriter\.py::.*|test_layer\.py::.*::test_attention_[45]": LLM_PLUGINS,
        r"test_expand\.py::.*::test_expand_2": "runs with a value of a shape input that is outside of its profile",
        r"test_layer\.py::.*::test_linear_[23]_bfloat16":
            "of 3840 numbers one differs in its last bit: a product is rounded to BF16, and then its sum with the bias",
    },
    "faked streamdiffusion": {
        r".*::test_engine\[True\]": "captures a graph of CUDA's runtime, and the faked one has no graphs",
    },
    "cookbook": {
        r"AttentionStructure::case_mask": INNER_LAYER,
        r"AttentionStructure::case_quantization":
            f"{INNER_LAYER}; and a weight halfway between two numbers of FP8 is rounded to the other one",
        r"Cast::case_int8": "TensorRT scales by dynamic ranges, which have no effect here",
        r"Convolution::case_3d": "sums that are 0 except for rounding, which is to TensorFloat-32 in the log",
        r"Fill::case_random_.*": "random numbers of another generator",
        r"(Gather::case_element_mode|GridSample::.*|NMS::.*|TopK::.*)": "the inputs are random numbers without a seed",
        r"MoE::.*": "the log says that TensorRT adds this layer on other GPUs only",
        r"RaggedSoftMax::.*": "a length beyond the row, after which the GPU reads the next one",
    },
    "cookbook_networks": {
        r"test_attentionstructure\.py::.*":
            "the serializer counts the parameters of a method in the documentation of TensorRT's bindings",
        r"test_dynamicquantize\.py::.*::test_case_v2_double_quantization":
            "expects that TensorRT refuses this quantization, and netloop computes it",
        r"test_(gather\.py::.*::test_case_gather_nonzeros|shuffle\.py::.*::test_case_(dynamic|shape_input))":
            "dims that an input stands for are None here, and in TensorRT an object without a length",
        r"test_topk\.py::.*::test_case_shape_input":
            "sets an attribute for which an input stands, and expects that the input counts",
    },
    "cookbook8": {
        r"Layer/NMSLayer/.*|ONNXParser/.*|Refit/main-Onnx.*|INT8-PTQ/main.*": FILES,
        r"INT8-PTQ/calibrator\.py|TacticSource/main\.py": SCRIPT,
        r"Layer/(SelectLayer/SimpleExample|ShuffleLayer/(First_transpose|SimpleExample|StaticShuffle))\.py": SCRIPT,
        r"Layer/QuantizeDequantizeLayer/Set_input\+ZeroPt\.py":
            "quantizes with zero points other than 0, which TensorRT 8 ignores",
        r"OptimizationProfile/main-ShapeInput\.py": "reads an address whose memory numpy has freed already",
    },
}
# fmt: on
"""The reasons, by the name of the suite."""


def reason(suite: str, name: str) -> str | None:
    """Why a test of a suite fails; None if nobody has looked."""
    patterns = REASONS.get(suite, {}).items()
    return next((why for pattern, why in patterns if re.fullmatch(pattern, name)), None)
