"""The service of an engine, by options."""

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Sequences, Server, Streams
from netloop.tools.serve.hosting import service_of
from tests.support.networks import combine, mark
from tests.tools.serve.test_sequences import mixing
from tests.tools.serve.test_server import affine, of_scaled, rows, scaled
from tests.tools.serve.test_streams import doubling


@pytest.mark.parametrize(
    ("make", "options", "kind"),
    [
        (affine, {"sizes": [1]}, Server),
        (mixing, {"states": {"s": "sn"}, "sizes": [1], "idle": 3.0}, Sequences),
        (doubling, {"stream": True, "slots": 2, "queue": 3}, Streams),
    ],
)
def test_options_choose_the_service(network, make, options, kind):
    with service_of(trt.compile(make(network)), **options) as service:
        assert type(service) is kind


def test_wrong_options_are_refused(network):
    engine = trt.compile(affine(network))
    with pytest.raises(TypeError, match="queues"):
        service_of(engine, queues=3)
    with pytest.raises(ValueError, match="no input 'z'"):
        service_of(engine, shapes={"z": (1,)})
    with pytest.raises(ValueError, match="no input 'z'"):
        service_of(engine, shared=["z"])
    with pytest.raises(trt.NetworkError, match="NL623"):
        service_of(engine, stream=True)


def test_a_service_with_programs_compiles_none_for_requests(network):
    engine = trt.compile(affine(network))
    with service_of(engine, sizes=[1, 4]) as service:
        assert engine.program_count == 2
        service(rows(1, 2, 3))
        assert engine.program_count == 2


def wide(network):
    x = network.add_input("x", trt.float32, (-1, -1))
    return mark(network, y=network.add_activation(x, trt.ActivationType.RELU).get_output(0))


def test_shapes_are_those_to_compile_programs_for(network):
    engine = trt.compile(wide(network))
    with service_of(engine, sizes=[2], shapes={"x": (1, 5)}) as service:
        assert engine.program_count == 1
        service(x=np.ones((2, 5), np.float32))
        assert engine.program_count == 1
    with pytest.raises(trt.InputError, match="NL603"):
        service_of(engine, sizes=[2], shapes={"x": (5,)})


def test_unknown_shapes_are_compiled_when_they_come(network):
    engine = trt.compile(wide(network))
    with service_of(engine, sizes=[2]) as service:
        assert engine.program_count == 0
        np.testing.assert_array_equal(service(x=np.ones((1, 3), np.float32))["y"], np.ones((1, 3)))


def test_a_model_without_rows_is_served_one_request_at_a_time(network):
    with service_of(trt.compile(mixing(network))) as service:
        assert service.sizes == ()
        assert service(s=np.int64(2), x=np.int64(5))["y"] == 74


def test_an_input_that_rows_share_leaves_them_their_rows(network):
    engine = trt.compile(scaled(network))
    with service_of(engine, sizes=[2], shared=["factor"]) as service:
        assert service.sizes == (2,)
        assert engine.program_count == 1
        assert service(of_scaled(3, 4))["y"].tolist() == [[12, 12]]
    with service_of(engine, sizes=[2]) as service:
        assert service.sizes == ()


def test_values_that_decide_shapes_are_not_made_up(network):
    x, shape = network.add_input("x", trt.float32, (6,)), network.add_input("shape", trt.int64, (2,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, shape)
    engine = trt.compile(mark(network, y=combine(network, shuffle.get_output(0), shuffle.get_output(0))))
    with service_of(engine) as service:
        assert engine.program_count == 0
        assert service(x=np.ones(6, np.float32), shape=np.array([2, 3]))["y"].shape == (2, 3)
