"""Random networks of layers that both ONNX and onnxruntime support."""

import netloop as trt
from netloop.model.graph.tensor import ITensor
from tests.support.layer_specs import RECIPES
from tests.support.strategies import Grower
from tests.support.tensor_drawing import DTYPES, NUMBERS

NOT_CARRIED = {trt.fp4, trt.e8m0, trt.int4, trt.uint4, trt.int2, trt.uint2}
"""The types that loops and conditionals of onnxruntime do not support."""

NOT_SAVED = {"random", "turn", "quantize_dynamically", "tokenize", "decode", "look_up"}
"""The recipes of layers that draw random numbers, run code, have scales that are powers of two, or that ONNX lacks."""

SINGLE = [trt.float32, trt.float16, trt.bfloat16]


class Exportable(Grower):
    """Grows networks that can be saved as ONNX, and that onnxruntime has kernels for."""

    dtypes = [dtype for dtype in DTYPES if dtype not in NOT_CARRIED]
    divided = [trt.float32, trt.float64, trt.int32, trt.int64]
    arithmetic = [*NUMBERS, trt.int8]
    share_on_host = 1
    recipes = [recipe for recipe in RECIPES if recipe.__name__ not in NOT_SAVED]

    def fold(self, tensor: ITensor, least: int, most: int) -> ITensor:
        """Clipped, as onnxruntime lacks remainders of some types."""
        return self.clip(tensor, least, most)

    def real(self, tensor: ITensor) -> ITensor:
        """Small floats, without float64, which many functions lack."""
        return self.small(tensor, tensor.dtype if tensor.dtype in SINGLE else self.choose(*SINGLE))


NOT_LOADED = {
    "lrn", "convolve", "deconvolve", "point", "shrink", "quantize", "dequantize", "suppress", "resize", "sample",
}  # fmt: skip
"""The recipes of operators that can be saved, and not loaded."""


class Loadable(Exportable):
    """Grows networks that can be saved as ONNX and loaded again."""

    recipes = [recipe for recipe in Exportable.recipes if recipe.__name__ not in NOT_LOADED]
