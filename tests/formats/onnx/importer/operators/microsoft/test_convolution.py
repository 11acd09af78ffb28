"""Convolutions of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, as_constants, check_like_onnxruntime, floats, slow
from tests.support.onnx_models import check_node, of_node

IMAGE, KERNEL, BIAS = floats(1, 4, 6, 5), floats(6, 2, 3, 3), floats(6)
PADDED = {"group": 2, "pads": [1, 1, 1, 1]}
STEPS, OWN = floats(2, 3, 5), floats(3, 1, 4)


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.2]), ("Clip", [-1.0, 2.0]),
     ("HardSigmoid", [0.3, 0.4])],
)  # fmt: skip
def test_fused_convolution_is_that_of_onnxruntime(activation, numbers):
    check_node(
        "FusedConv", IMAGE, KERNEL, BIAS, activation=activation, activation_params=numbers or None,
        rtol=1e-4, atol=1e-5, **PADDED, **MICROSOFT
    )  # fmt: skip


@pytest.mark.parametrize("bias", [None, BIAS])
def test_fused_convolution_adds_another_tensor_before_the_activation(bias):
    check_node(
        "FusedConv", IMAGE, KERNEL, bias, floats(1, 6, 3, 3), activation="Relu", group=2, strides=[2, 2],
        pads=[1, 1, 1, 1], rtol=1e-4, atol=1e-5, **MICROSOFT
    )  # fmt: skip


@pytest.mark.parametrize("activation", [slow("none"), "silu"])
@pytest.mark.parametrize(
    ("rest", "dilation"), [((), 1), ((floats(3), floats(2, 3, 3)), 1), ((None, floats(2, 3, 6)), 2)]
)
def test_causal_convolution_is_that_of_onnxruntime(rest, dilation, activation):
    check_node(
        "CausalConvWithState", STEPS, OWN, *rest, outputs=2, dilation=dilation, activation=activation, rtol=1e-4,
        atol=1e-5, **MICROSOFT
    )  # fmt: skip


def test_causal_convolution_may_have_one_step():
    check_node("CausalConvWithState", STEPS[:, :, :1], OWN, None, floats(2, 3, 3), outputs=2, **MICROSOFT)


@pytest.mark.parametrize("more", [{}, {"strides": [2, 3], "output_padding": [1, 2]}, {"group": 2}])
def test_transposed_convolution_trimmed_by_an_input_is_that_of_onnxruntime(more):
    made, given = of_node(
        "ConvTransposeWithDynamicPads",
        floats(1, 4, 5, 6),
        floats(4, 3, 3, 2),
        np.array([1, 0, 2, 1]),
        **more,
        **MICROSOFT,
    )
    as_constants(made, given, ["x2"])

    check_like_onnxruntime(made, given)
