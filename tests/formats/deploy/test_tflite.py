"""Networks as models of LiteRT."""

import numpy as np
import pytest

import netloop as trt
from tests.formats.deploy.examples import EXAMPLES_WITHOUT_DOUBLES, of_doubles, same

tensorflow = pytest.importorskip("tensorflow")


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
@pytest.mark.parametrize("example", EXAMPLES_WITHOUT_DOUBLES)
def test_litert_gives_the_outputs_of_the_engine(example, tmp_path):
    network, inputs, outputs = example()
    trt.export(network, tmp_path / "a.tflite")
    runner = tensorflow.lite.Interpreter(model_path=str(tmp_path / "a.tflite")).get_signature_runner()

    same(runner(**inputs), outputs)


def test_operation_that_it_lacks_is_refused(tmp_path):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 2))
    network.mark_output(network.add_unary(x, trt.UnaryOperation.ERF).get_output(0))
    network.mark_output(network.add_cumulative(x, network.add_constant((), np.int32(0)).get_output(0),
                                               trt.CumulativeOperation.SUM, False, True).get_output(0))  # fmt: skip

    with pytest.raises(trt.NetworkError, match="NL733: LiteRT's converter refuses it"):
        trt.export(network, tmp_path / "a.tflite")
    assert not [*tmp_path.iterdir()]


def test_doubles_that_it_cannot_compute_are_refused(tmp_path):
    network, *_ = of_doubles()

    with pytest.raises(trt.NetworkError, match="NL733: LiteRT's converter refuses it"):
        trt.export(network, tmp_path / "a.tflite")


def test_batch_is_refused(network, tmp_path):
    with pytest.raises(ValueError, match="has fixed shapes: leave out batch, and give shapes"):
        trt.export(network, tmp_path / "a.tflite", batch="b")
