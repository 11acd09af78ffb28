"""What the fuzzer found, replayed by the same oracle; the targets work without the fuzzer."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import onnx
import pytest
from google.protobuf.message import DecodeError

import netloop as trt
from netloop import plan
from tests.fuzz.targets import TARGETS

FINDS = sorted(path for path in (Path(__file__).parents[1] / "data" / "fuzz").rglob("*") if path.is_file())
LARGEST_FIND = 8000


@pytest.mark.parametrize("path", FINDS, ids=lambda path: f"{path.parent.name}, {path.stem}")
def test_find_stays_mended(path):
    assert path.stat().st_size <= LARGEST_FIND

    TARGETS[path.parent.name].check(path.read_bytes())


def bytes_of(chance):
    """A change of one byte, in place of the fuzzer's changes."""

    def change(data):
        at = chance.randrange(len(data) + 1)
        return data[:at] + chance.randbytes(1) + data[at + 1 :]

    return change


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_are_accepted_or_refused(name):
    target, chance = TARGETS[name], Random(1)
    for data in islice(target.seeds(), 10):
        target.check(data)
        for _ in range(3):
            data = target.mutate(data, chance, bytes_of(chance))
            target.check(data)


def test_changes_of_a_plan_get_past_its_hashes():
    target, chance, codes = TARGETS["plan"], Random(2), []
    for data in islice(target.seeds(), 30):
        try:
            plan.loads(target.mutate(data, chance, bytes_of(chance)))
        except trt.FileFormatError as error:
            codes += [finding.code for finding in error.findings]

    assert codes.count("NL713") > 10
    assert codes.count("NL711") < 10


def test_changes_of_an_onnx_model_give_messages():
    target, chance, broken = TARGETS["onnx"], Random(3), 0
    for data in islice(target.seeds(), 40):
        try:
            onnx.ModelProto.FromString(target.mutate(data, chance, bytes_of(chance)))
        except DecodeError:
            broken += 1

    assert broken < 10


def failing(error):
    def fail(data):
        raise error

    return fail


@pytest.mark.parametrize("error", [RuntimeError("x"), MemoryError(), AssertionError(), KeyError("x")])
def test_oracle_finds_other_exceptions(error):
    with pytest.raises(type(error)):
        replace(TARGETS["plan"], run=failing(error)).check(b"")


def test_oracle_finds_faults_that_importers_report():
    fault = trt.ModelError(trt.Finding("NL754", "netloop cannot import it"))

    with pytest.raises(AssertionError, match="an importer has a fault"):
        replace(TARGETS["onnx"], run=failing(fault)).check(b"")
