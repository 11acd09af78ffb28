"""Fixtures of the tests of TensorRT's classes."""

import pytest

import netloop as trt
from tests.support.builds import config_with_profile, doubling_network
from tests.support.log import Log


@pytest.fixture
def log():
    """A logger that keeps its messages."""
    return Log()


@pytest.fixture
def engine(log):
    """An engine of a plan of ``doubling_network``."""
    builder = trt.Builder(log)
    plan = builder.build_serialized_network(doubling_network(builder), config_with_profile(builder))
    return trt.Runtime(log).deserialize_cuda_engine(plan)


@pytest.fixture
def context(engine):
    """A context of ``engine``."""
    return engine.create_execution_context()
