"""Small networks and engines for tests of TensorRT's classes."""

import numpy as np

import netloop as trt
from tests.support import networks
from tests.support.log import Log


def doubling(network):
    """``y = x + x``, with x of two elements, added to an empty network."""
    x = network.add_input("x", trt.float32, (2,))
    return networks.mark(network, y=networks.combine(network, x, x))


def doubling_network(builder, shape=(-1, 3)):
    """``y = x + x``, with x of any number of rows."""
    network = builder.create_network(0)
    network.name = "doubling"
    x = network.add_input("x", trt.float32, shape)
    return networks.mark(network, y=networks.combine(network, x, x))


def config_with_profile(builder, minimum=(1, 3), optimum=(2, 3), maximum=(4, 3)):
    """A config with a profile for the input of ``doubling_network``."""
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", minimum, optimum, maximum)
    assert config.add_optimization_profile(profile) == 0
    return config


def length_by_value(builder):
    """A loop whose stacked output has a length that is an input."""
    network = builder.create_network()
    n = network.add_input("n", trt.int32, ())
    loop = network.add_loop()
    loop.add_trip_limit(n, trt.TripLimit.COUNT)
    state = loop.add_recurrence(network.add_constant((), np.ones(1, np.int32)).get_output(0))
    now = state.get_output(0)
    state.set_input(1, networks.combine(network, now, now))
    return networks.mark(network, powers=networks.stacked(loop, now, n))


def swap_engine(log=None):
    """An engine of ``networks.swap``."""
    builder = trt.Builder(log or Log())
    return builder.build_engine_with_config(networks.swap(), builder.create_builder_config())
