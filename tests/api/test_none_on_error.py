"""With ``Builder.none_on_error``, a method that adds an invalid layer logs an error and returns None."""

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import Op, constant

FORMS = trt.AttentionIOForm


class Log(trt.ILogger):
    """A logger that keeps its errors."""

    def __init__(self):
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity, msg):
        if severity <= trt.Logger.ERROR:
            self.errors.append(msg)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def network(log):
    builder = trt.Builder(log)
    builder.none_on_error = True
    return builder.create_network()


@pytest.fixture
def x(network):
    return network.add_input("x", trt.float32, (2, 3))


@pytest.fixture
def ids(network):
    return network.add_input("ids", trt.int32, (2, 3))


def test_layer_that_cannot_be_made_is_none_with_its_line_in_the_log(network, x, ids, log):
    made = network.add_elementwise(x, ids, Op.SUM)

    assert made is None
    assert log.errors[0].startswith(
        "NL401: SUM takes two inputs of the same element type, not float32[2,3] and int32[2,3]"
    )
    assert f"at {__file__}:" in log.errors[0]
    assert "fix: convert one input with add_cast" in log.errors[0]
    assert len(log.errors) == 1


def test_layer_that_cannot_be_made_leaves_no_trace(network, x, ids):
    network.add_attention(x, x, ids, trt.AttentionNormalizationOp.SOFTMAX, False)

    assert len(network) == 0
    assert not x.uses
    assert not ids.uses
    assert network.add_identity(x).name == "(Unnamed Layer* 0) [Identity]"


@pytest.mark.parametrize(
    "add",
    [
        lambda network, x, ids: network.add_unary(ids, trt.UnaryOperation.EXP),
        lambda network, x, ids: network.add_reduce(x, trt.ReduceOperation.NONE, 0b1, False),
        lambda network, x, ids: network.add_matrix_multiply(
            x, *[trt.MatrixOperation.NONE, x, trt.MatrixOperation.NONE]
        ),
        lambda network, x, ids: network.add_concatenation([x, ids]),
        lambda network, x, ids: network.add_convolution_nd(ids, 1, (1, 1), np.ones(1, np.float32)),
        lambda network, x, ids: network.add_pooling_nd(x, trt.PoolingType.MAX, (2, 2)),
        lambda network, x, ids: network.add_topk(x, trt.TopKOperation.MAX, 1, 0b11),
        lambda network, x, ids: network.add_gather(x, x, 0),
        lambda network, x, ids: network.add_quantize(ids, constant(network, np.float32(1)), trt.int8),
        lambda network, x, ids: network.add_softmax(ids),
        lambda network, x, ids: network.add_constant((3,), np.ones(2, np.float32)),
        lambda network, x, ids: network.add_einsum([x, x], "ij,jk"),
        lambda network, x, ids: network.add_loop().add_trip_limit(x, trt.TripLimit.WHILE),
        lambda network, x, ids: network.add_loop().add_iterator(constant(network, np.float32(1))),
        lambda network, x, ids: network.add_if_conditional().set_condition(x),
        lambda network, x, ids: network.add_input("x", trt.float32, (1,)),
        lambda network, x, ids: network.add_identity(trt.INetworkDefinition().add_input("y", trt.int32, ())),
    ],
)
def test_what_nothing_set_later_can_mend_is_none(network, x, ids, add, log):
    assert add(network, x, ids) is None
    assert len(log.errors) == 1
    assert not [layer for layer in network if trt.check(network) and not isinstance(layer, trt.IConstantLayer)]


def test_branches_of_two_types_are_none(network, x, ids, log):
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", trt.bool, ()))

    assert choice.add_output(x, ids) is None
    assert len(choice.layers) == 1
    assert "the branches of" in log.errors[0]


def test_branches_of_two_types_wait_for_a_condition(network, x, ids):
    choice = network.add_if_conditional()

    assert choice.add_output(x, ids) is not None


def complete_convolution(network, x):
    image = network.add_input("image", trt.float32, (1, 1, 2, 2))
    layer = network.add_convolution_nd(image, 1, (3, 3), trt.Weights())
    layer.padding_nd = (1, 1)
    layer.set_input(1, constant(network, np.ones((1, 1, 3, 3), np.float32)))
    return layer


def complete_slice(network, x):
    layer = network.add_slice(x, [0, 0], [2, 9], [1, 1])
    layer.mode = trt.SampleMode.CLAMP
    return layer


def complete_concatenation(network, x):
    layer = network.add_concatenation([x, network.add_input("y", trt.float32, (2, 5))])
    layer.axis = 1
    return layer


def complete_quantize(network, x):
    layer = network.add_quantize(x, constant(network, np.ones(3, np.float32)), trt.int8)
    layer.axis = 1
    return layer


def complete_resize(network, x):
    layer = network.add_resize(x)
    layer.shape = (4, 6)
    return layer


def complete_fill(network, x):
    layer = network.add_fill((2, 2), trt.FillOperation.LINSPACE)
    layer.set_input(1, constant(network, np.float32(0)))
    layer.set_input(2, constant(network, np.ones(2, np.float32)))
    return layer


def complete_squeeze(network, x):
    layer = network.add_squeeze(network.add_input("y", trt.float32, (-1, 1)))
    layer.set_input(1, constant(network, [1], np.int32))
    return layer


def complete_loop_output(network, x):
    loop = network.add_loop()
    layer = loop.add_loop_output(loop.add_recurrence(x).get_output(0), trt.LoopOutput.CONCATENATE)
    layer.set_input(1, constant(network, 3, np.int32))
    return layer


def complete_rotary_embedding(network, x):
    tokens = network.add_input("tokens", trt.float32, (1, 1, 2, 4))
    cache = network.add_input("cache", trt.float32, (5, 2))
    layer = network.add_rotary_embedding(tokens, cache, cache, False, 0)
    layer.set_input(3, network.add_input("places", trt.int64, (1, 2)))
    return layer


def complete_attention(network, x):
    tokens, lengths = network.add_input("tokens", trt.float32, (5, 1, 2)), network.add_input("lengths", trt.int32, (3,))
    layer = network.add_attention(tokens, tokens, tokens, trt.AttentionNormalizationOp.SOFTMAX, False)
    layer.query_form = layer.key_value_form = FORMS.PACKED_NHD
    layer.query_lengths = layer.key_value_lengths = lengths
    return layer


def complete_moe(network, x):
    hidden, weights = (network.add_input(name, trt.float32, (1, 2, 2)) for name in ("hidden", "weights"))
    chosen = network.add_input("chosen", trt.int32, (1, 2, 1))
    layer = network.add_moe(hidden, chosen, network.add_input("scores", trt.float32, (1, 2, 1)))
    layer.set_gated_weights(weights, weights, weights, trt.MoEActType.SILU)
    return layer


@pytest.mark.parametrize(
    "complete", [global_ for name, global_ in sorted(globals().items()) if name.startswith("complete_")]
)
def test_layer_that_is_completed_later_is_there(network, x, complete, log):
    layer = complete(network, x)

    assert log.errors == []
    assert layer.get_output(0).shape is not None


def test_wrong_python_type_is_a_type_error(network, x):
    with pytest.raises(TypeError, match="input1 must be an ITensor"):
        network.add_elementwise(None, x, Op.SUM)

    assert len(network) == 0


def test_switch_holds_for_networks_that_are_there(network, x, ids):
    network.builder.none_on_error = False

    assert network.add_elementwise(x, ids, Op.SUM) is not None


def test_switch_is_off_at_first():
    assert trt.Builder(Log()).none_on_error is False


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_switch_is_a_bool(value):
    with pytest.raises(TypeError, match=r"Builder.none_on_error must be bool"):
        trt.Builder(Log()).none_on_error = value


def test_error_recorder_receives_the_error(network, x, ids):
    told: list[str] = []

    class Recorder(trt.IErrorRecorder):
        def report_error(self, arg0, arg1):
            told.append(arg1)
            return False

    network.builder.error_recorder = Recorder()
    network.add_elementwise(x, ids, Op.SUM)

    assert [name[:5] for name in told] == ["NL401"]


def test_copy_of_a_network_answers_as_the_network_does(network, x, ids):
    twin = network.copy()

    assert twin.add_elementwise(twin.get_input(0), twin.get_input(1), Op.SUM) is None
