"""Fixtures of the tests of host execution."""

import pytest

from netloop.compiler.host.compiled_pieces import Pieces


@pytest.fixture
def compiled(monkeypatch):
    """The lengths of the pieces that are compiled from now on."""
    lengths, compile_piece = [], Pieces._compile

    def compile_counted(self, steps, *given):
        lengths.append(len(steps))
        return compile_piece(self, steps, *given)

    monkeypatch.setattr(Pieces, "_compile", compile_counted)
    return lengths
