"""Fixtures and settings of all tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

import netloop
from tests.support.peers import openvino as openvino  # importing it forks, which JAX forbids once it runs

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def network() -> netloop.INetworkDefinition:
    """An empty network."""
    return netloop.INetworkDefinition()
