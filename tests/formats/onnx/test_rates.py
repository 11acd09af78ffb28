"""The table of ONNX's tests that pass."""

from pathlib import Path
from unittest import SkipTest

import pytest
from onnx.backend.base import Backend
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

import netloop
from tests.formats.onnx.rates import ALL, OF_LOOPS, counted_alone, honest, rows_of
from tests.support.onnx_models import model

PAGE = Path(netloop.__file__).parent.parent / "docs" / "onnx.md"


def recorded():
    """The numbers on the page: all tests, and those that netloop passes, for each row."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    start = next(number for number, cells in enumerate(rows) if cells[:3] == ["tests", "number", "netloop"])
    end = next(number for number in range(start + 2, len(rows)) if len(rows[number]) < 3)
    return {name: (int(number), int(passed)) for name, number, passed, *_ in rows[start + 2 : end]}


def test_models_of_pytorch_pass_all():
    numbers = recorded()

    for row in ("models from PyTorch", "operators from PyTorch"):
        assert numbers[row][0] == numbers[row][1] > 0


def test_all_but_a_few_pass():
    number, passed = recorded()[ALL]

    assert passed >= 0.95 * number


@pytest.mark.slow
def test_page_lists_what_passes():
    assert {row: (number, passed) for row, (passed, number) in counted_alone("netloop").items()} == recorded()


def test_loop_in_a_branch_counts_as_one():
    nested = model("""
        nested (bool c, int64 n) => (float x) {
            x = If (c) <
                then_branch = yes () => (float a) {
                    one = Constant <value_float = 1.0> ()
                    a = Loop (n, , one) <body = b (int64 i, bool on, float v) => (bool on2, float w)
                        { on2 = Identity(on)  w = Add(v, v) }>
                },
                else_branch = no () => (float b) { b = Constant <value_float = 2.0> () }>
        }
    """)

    assert list(rows_of("NodeModel", nested)) == ["operators", ALL, OF_LOOPS]


def test_backend_that_need_not_have_something_does_not_pass_by_it():
    class Choosy(Backend):
        @classmethod
        def prepare(cls, model, device="CPU", **options):
            raise BackendIsNotSupposedToImplementIt("that")

    with pytest.raises(SkipTest, match="that"):
        honest(Choosy).prepare(None)
