"""The check of the precision of products on a device goes on after what fails."""

import numpy as np
import pytest

from tests.gpu import check_precision


def test_facts_are_checked_one_by_one_and_failures_count(monkeypatch, capsys):
    def fails():
        yield True, "first"
        raise ValueError("no device\nat all")

    def is_wrong():
        yield check_precision.fact("wrong", np.ones(3), np.zeros(3) + 2, "float32")

    monkeypatch.setattr(check_precision, "CHECKS", [fails, is_wrong, check_precision.device_is_known])

    assert check_precision.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok    first"
    assert lines[1].startswith("error fails: ")
    assert lines[1].endswith("ValueError: no device | at all")
    assert lines[2].startswith("FAIL  wrong: relative error 5.00e-01, of float32 from 0e+00 to 5e-06")
    assert [line[:5].strip() for line in lines[3:]] == ["ok", "ok", "ok", "2 fac"]


@pytest.mark.parametrize("kind", ["product", "convolution"])
def test_expected_numbers_are_those_of_the_reference(kind):
    network, inputs, right = check_precision.network(kind)
    network.outputs[0].name = "y"

    assert right.shape == network.outputs[0].shape
    assert check_precision.error(check_precision.by_to_jax(network, inputs, False), right) < check_precision.EXACT
