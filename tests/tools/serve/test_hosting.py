"""Services that outlive the models that use them."""

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Closed, Sequences, Server, Streams
from netloop.tools.serve.hosting import Hosting
from tests.tools.serve.test_sequences import mixed, mixing, number
from tests.tools.serve.test_server import affine, rows
from tests.tools.serve.test_streams import doubled, doubling

STATES = {"states": {"s": "sn"}, "sizes": [1]}


@pytest.fixture
def hosting():
    return Hosting()


@pytest.fixture
def save(tmp_path):
    """A function that writes the plan of a network; it returns the path."""

    def written(make, *arguments):
        trt.compile(make(trt.INetworkDefinition(), *arguments)).save(tmp_path / "model.plan")
        return str(tmp_path / "model.plan")

    return written


def test_options_choose_the_service(hosting, save):
    for make, options, kind in (
        (affine, {"sizes": [1]}, Server),
        (mixing, STATES, Sequences),
        (doubling, {"stream": True, "slots": 2, "queue": 3}, Streams),
    ):
        service = hosting.take(kind, save(make), options)
        assert type(service) is kind
        assert hosting.leave(service)
        service.close()


def test_wrong_options_are_refused(hosting, save):
    with pytest.raises(TypeError, match="queues"):
        hosting.take("model", save(affine), {"queues": 3})
    with pytest.raises(trt.NetworkError, match="NL623"):
        hosting.take("model", save(affine), {"stream": True})


def test_a_service_with_programs_compiles_none_for_requests(hosting, save):
    service = hosting.take("model", save(affine), {"sizes": [1, 4]})
    engine = service._batches.engine
    assert engine.program_count == 2
    service(rows(1, 2, 3))
    assert engine.program_count == 2
    service.close()


def test_a_model_taken_again_keeps_states_and_gets_new_weights(hosting, save):
    service = hosting.take("steps", save(mixing), STATES)
    service.step(1, number(5), start=True)
    again = hosting.take("steps", save(mixing), STATES)

    assert again is service
    assert not hosting.leave(service)
    assert again.step(1, number(6))["y"] == mixed([5, 6])
    assert hosting.leave(again)
    again.close()


def test_rows_of_the_next_call_have_new_weights_and_their_programs_are_there(hosting, save):
    service = hosting.take("rows", save(affine, 2), {"sizes": [1, 4]})
    assert service(rows(1))["y"][0, 0] == 2
    hosting.take("rows", save(affine, 3), {"sizes": [1, 4]})
    assert service._batches.engine.program_count == 2
    assert service(rows(1))["y"][0, 0] == 3
    service.close()


def test_streams_of_the_next_request_have_new_weights(hosting, save):
    options = {"stream": True, "slots": 2}
    service = hosting.take("texts", save(doubling, 2), options)
    hosting.take("texts", save(doubling, 3), options)
    assert [int(row["all"]) for row in service.rows(number(1))] == doubled(1, 3)[0]
    service.close()


@pytest.mark.parametrize(("make", "options"), [(mixing, {**STATES, "slots": 7}), (affine, {"sizes": [1]})])
def test_another_network_or_options_are_another_service(hosting, save, make, options):
    old = hosting.take("model", save(mixing), STATES)
    new = hosting.take("model", save(make), options)

    assert new is not old
    assert hosting.leave(old)
    old.close()
    with pytest.raises(Closed):
        old.step(1, number(1), start=True)
    assert not new._is_closed
    assert hosting.leave(new)
    new.close()


def test_another_network_with_the_same_options_is_another_service(hosting, save):
    def wide(network):
        x = network.add_input("x", trt.float32, (-1, 5))
        y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
        y.name = "y"
        network.mark_output(y)
        return network

    old = hosting.take("model", save(affine), {"sizes": [1]})
    new = hosting.take("model", save(wide), {"sizes": [1]})
    assert new is not old
    np.testing.assert_array_equal(new(x=np.ones((1, 5), np.float32))["y"], np.ones((1, 5)))
    assert old(rows(4))["y"][0, 0] == 8
    for value in (old, new):
        assert hosting.leave(value)
        value.close()


def test_service_whose_thread_has_ended_gives_way_to_another_when_its_model_is_taken_again(hosting, save):
    old = hosting.take("model", save(affine), {"sizes": [1]})
    old.close()
    new = hosting.take("model", save(affine), {"sizes": [1]})

    assert new is not old
    assert new(rows(4))["y"][0, 0] == 8
    assert hosting.leave(old)
    assert hosting.leave(new)
    new.close()


@pytest.mark.parametrize("value", ["false", "true", "", 0, 1, None, []])
def test_settings_are_flags_only_as_true_or_false(hosting, save, value):
    with pytest.raises(TypeError, match="stream must be true or false, not"):
        hosting.take("model", save(affine), {"sizes": [1], "stream": value})


def test_stream_may_be_false(hosting, save):
    service = hosting.take("model", save(affine), {"sizes": [1], "stream": False})
    assert type(service) is Server
    service.close()
