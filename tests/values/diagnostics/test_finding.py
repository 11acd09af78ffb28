"""Findings and errors in other processes: pickled, copied, and raised by a worker."""

import copy
import importlib
import multiprocessing
import pickle
import pkgutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import netloop as trt
from netloop.values.diagnostics import LayerError, SourceLocation
from tests.support import networks

OPTIONAL = {"google", "grpc", "iree", "tensorflow", "uvicorn"}
"""Packages that modules of ``netloop.deploy`` and ``netloop.serve`` import, and that tests need not have."""


def exception_classes() -> list[type[Exception]]:
    """Every exception class that netloop defines."""
    for module in pkgutil.walk_packages(trt.__path__, "netloop."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] not in OPTIONAL:
                    raise

    def below(cls: type[Exception]) -> Iterator[type[Exception]]:
        for subclass in cls.__subclasses__():
            yield subclass
            yield from below(subclass)

    found = {kind for kind in below(Exception) if kind.__module__.startswith("netloop.")}
    return sorted(found, key=lambda kind: kind.__qualname__)


def made(cls: type[Exception]) -> Exception:
    if not issubclass(cls, trt.NetloopError):
        return cls("what")
    layer = networks.swap().get_layer(0)
    first = trt.Finding("NL401", "what", "here", "why", "fix", at=layer, cause=ValueError("own"))
    return cls(first, trt.Finding("NL402", "more"))


def carried(error: Exception) -> Exception:
    return pickle.loads(pickle.dumps(error))


each_class = pytest.mark.parametrize("cls", exception_classes(), ids=lambda cls: cls.__qualname__)


@each_class
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_can_be_pickled(cls, protocol):
    error = made(cls)
    error.add_note("a note")
    got = pickle.loads(pickle.dumps(error, protocol))

    assert (type(got), str(got), got.__notes__) == (cls, str(error), ["a note"])
    if isinstance(error, trt.NetloopError):
        assert [str(finding) for finding in got.findings] == [str(finding) for finding in error.findings]
        assert [finding.as_json() for finding in got.findings] == [finding.as_json() for finding in error.findings]
        assert repr(got.__cause__) == "ValueError('own')"


@each_class
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_every_error_can_be_copied(cls, copied):
    error = made(cls)
    error.add_note("a note")
    got = copied(error)

    assert (type(got), str(got), got.__notes__) == (cls, str(error), ["a note"])
    assert getattr(got, "findings", ()) == getattr(error, "findings", ())


def test_layer_error_keeps_its_parts():
    got = carried(LayerError("what", "why", "fix", "NL402"))

    assert vars(got) == {"what": "what", "why": "why", "fix": "fix", "code": "NL402"}


def test_finding_travels_without_its_network():
    layer = networks.swap().get_layer(0)
    finding = trt.Finding("NL401", "what", at=layer)
    got = carried(finding)

    assert (got.at.name, got.at.source_location) == (layer.name, layer.source_location)
    assert isinstance(got.at.source_location, SourceLocation)
    assert len(pickle.dumps(finding)) < 1000
    assert carried(got).at == got.at
    assert carried(trt.Finding("NL401", "what")).at is None


def test_copied_finding_keeps_its_layer():
    finding = trt.Finding("NL401", "what", at=networks.swap().get_layer(0))

    assert copy.deepcopy([finding]) == [copy.copy(finding)] == [finding]


class Own(Exception):
    """An exception that pickle cannot restore."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__(f"{first} and {second}")


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (KeyError("x"), "KeyError('x')"),
        (OSError(28, "full", "some.plan"), "OSError(28, 'full')"),
        (Own(1, 2), "RuntimeError('tests.values.diagnostics.test_finding.Own: 1 and 2')"),
        (ValueError(lambda: 0), "RuntimeError('ValueError: <function"),
        (trt.NetworkError(trt.Finding("NL401", "inner")), "NetworkError('NL401: inner')"),
        (ExceptionGroup("several", [Own(1, 2)]), "RuntimeError('ExceptionGroup: several (1 sub-exception)"),
    ],
)
def test_cause_travels_as_itself_or_as_its_text(cause, text):
    got = carried(trt.ExecutionError(trt.Finding("NL607", "what", cause=cause)))

    assert isinstance(got, trt.ExecutionError)
    assert repr(got.__cause__).startswith(text)
    assert got.findings[0].cause is got.__cause__


def failing(kind: str) -> None:
    """What a worker does: raise each error in the way that users meet it."""
    network = networks.running_sum()
    if kind == "input":
        trt.evaluate(network, {"x": np.zeros((5, 4), np.float32)})
    if kind == "file":
        trt.plan.loads(b"no plan")
    if kind == "attribute":
        network.get_layer(0).nme = 3


KINDS = {"input": trt.InputError, "file": trt.FileFormatError, "attribute": AttributeError}


@pytest.mark.slow
def test_pool_passes_errors_on():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for kind, cls in KINDS.items():
            with pytest.raises(cls):
                pool.apply_async(failing, [kind]).get(timeout=100)


@pytest.mark.slow
def test_executor_passes_errors_on():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for kind, cls in KINDS.items():
            with pytest.raises(cls):
                pool.submit(failing, kind).result(timeout=100)


# ---------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("severity", "title"),
    [
        (trt.FindingSeverity.ERROR, "NL402"),
        (trt.FindingSeverity.WARNING, "NL402 (warning)"),
        (trt.FindingSeverity.PORTABILITY, "NL402 (portability)"),
    ],
)
def test_severity_is_in_the_text_unless_it_is_an_error(severity, title):
    found = trt.Finding("NL402", "'x' makes float64[3]", "m.py:3", severity=severity)

    assert str(found) == f"{title}: 'x' makes float64[3]\n  at m.py:3"
    assert repr(found) == f"<Finding {title}: 'x' makes float64[3]>"


def test_callers_cross_processes():
    def add(network):
        return network.add_identity(network.add_input("x", trt.float32, (3,)))

    found = add(trt.INetworkDefinition()).finding("NL401", "wrong")

    assert "\n  called from " in str(found)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
