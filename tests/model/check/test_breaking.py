"""A valid network that breaks a rule in one place has one more finding, with the code of the rule."""

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import netloop as trt
from netloop.model.check.rule import RULES
from netloop.values.diagnostics import CODES
from tests.support.examples import examples, same_examples
from tests.support.rule_violations import BREAKERS, NOT_OF_A_NETWORK, REFUSED_BY_CALLS, REFUSED_BY_JAX, Wrecker
from tests.support.strategies import Grower, is_pure

SEEDS = st.integers(0, 1 << 32)


def grown(seed):
    """A right network, to be broken, and arrays for its inputs."""
    grow = Grower(Random(seed), depth=3, most=50, has_entries=seed % 4 == 0)
    inputs = grow.grow().inputs
    assume(not any(finding.severity is trt.Severity.ERROR for finding in trt.check(grow.network)))
    return Wrecker(grow), inputs


def told(findings):
    return [(finding.code, finding.what) for finding in findings]


def check_break(code, seed):
    wrecker, inputs = grown(seed)
    network = wrecker.network
    before = told(trt.check(network))
    places = [(finding.code, finding.at) for finding in trt.check(network)]

    at = BREAKERS[code](wrecker)

    assume(at is not None)
    found = [finding for finding in trt.check(network) if (finding.code, finding.what) not in before]
    # of the layers that a finding is about it names one, and the break may have changed which one
    found = [finding for finding in found if finding.code == code or (finding.code, finding.at) not in places]
    found = [
        finding for finding in found if code == "NL402" or finding.code != "NL402"
    ]  # what is added may be of any type
    # what is added may need what only an output that nothing needed read before
    found = [finding for finding in found if finding.code != "NL222" or finding.at is at]
    # an error changes what is inside of which loop, and with it what TensorRT would say of others
    found = [finding for finding in found if finding.severity is trt.Severity.ERROR] or found
    assert [finding.code for finding in found] == [code], "\n".join(map(str, found))
    assert at is ... or found[0].at is at
    assert found[0].severity is CODES[code].severity
    if found[0].severity is trt.Severity.ERROR:
        check_refused(network, inputs)
    else:
        assert (code, found[0].what) in told(trt.check(network, target="tensorrt"))


def check_refused(network, inputs):
    """Every function that runs the network reports the same errors as ``check``."""
    errors = [(finding.code, finding.at) for finding in trt.check(network) if finding.severity is trt.Severity.ERROR]
    for run in (lambda: trt.evaluate(network, inputs), lambda: trt.compile(network)):
        with pytest.raises(trt.NetworkError) as caught:
            run()
        assert [(finding.code, finding.at) for finding in caught.value.findings] == errors


def run_as_function(network, inputs):
    function, weights = trt.to_jax(network)
    return function(weights, inputs)


def test_every_code_has_a_break_or_is_not_of_a_network():
    broken = [code for entry in (BREAKERS, REFUSED_BY_CALLS, REFUSED_BY_JAX) for code in entry]
    others = [code for code in CODES if code.startswith(tuple(NOT_OF_A_NETWORK))]

    assert sorted([*broken, *others]) == sorted(CODES)
    assert set(RULES) <= set(BREAKERS)


@pytest.mark.parametrize("code", BREAKERS)
@same_examples(1, nightly=100)
@given(seed=SEEDS)
def test_one_break_is_one_finding(code, seed):
    check_break(code, seed)


@pytest.mark.slow
@pytest.mark.parametrize("code", BREAKERS)
@examples(20)
@given(seed=SEEDS)
def test_one_break_is_one_finding_at_length(code, seed):
    check_break(code, seed)


@pytest.mark.parametrize("code", REFUSED_BY_CALLS)
@same_examples(5, nightly=100)
@given(seed=SEEDS)
def test_call_that_is_refused_leaves_the_network_as_it_was(code, seed):
    wrecker, _ = grown(seed)
    before = repr(wrecker.network.layers), told(trt.check(wrecker.network))

    with pytest.raises(trt.NetworkError) as caught:
        REFUSED_BY_CALLS[code](wrecker)

    assert [finding.code for finding in caught.value.findings] == [code]
    assert (repr(wrecker.network.layers), told(trt.check(wrecker.network))) == before


@pytest.mark.parametrize("code", REFUSED_BY_JAX)
@same_examples(1, nightly=50)
@given(seed=SEEDS)
def test_network_that_is_no_pure_function_is_refused_by_to_jax_alone(code, seed):
    wrecker, inputs = grown(seed)
    assume(is_pure(wrecker.network, inputs))
    before = told(trt.check(wrecker.network))
    at = REFUSED_BY_JAX[code](wrecker)
    inputs["found"] = np.zeros((2, 3), np.float32)
    inputs = {tensor.name: inputs[tensor.name] for tensor in wrecker.network.inputs}

    assert told(trt.check(wrecker.network)) == before
    with pytest.raises(trt.NetworkError) as caught:
        run_as_function(wrecker.network, inputs)
    assert {finding.code for finding in caught.value.findings} == {code}
    assert at.name in [finding.at.name for finding in caught.value.findings]
