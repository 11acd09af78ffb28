"""The line that says what is being done."""

import io
import re
import time

import pytest

import netloop as trt
from netloop.tools.cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "PERIOD", 0.01)


def shown(terminal):
    return re.findall(r"\x1b\[K([^\r]+)", terminal.getvalue())


def test_line_appears_on_a_terminal_and_goes(soon):
    terminal = Terminal()
    with progress.Status("adding", terminal).shown() as line:
        while "adding ... 0 s" not in shown(terminal):
            time.sleep(0.001)
        line.says = "subtracting"
        while "subtracting ... 0 s" not in shown(terminal):
            time.sleep(0.001)

    assert terminal.getvalue().endswith(progress.CLEAR)


def test_what_is_fast_shows_nothing():
    terminal = Terminal()
    with progress.Status("adding", terminal).shown():
        pass

    assert terminal.getvalue() == ""


def test_pipe_gets_nothing(soon):
    pipe = io.StringIO()
    with progress.Status("adding", pipe).shown():
        time.sleep(0.1)

    assert pipe.getvalue() == ""


def test_line_goes_when_an_error_ends_the_work(soon):
    terminal = Terminal()

    def fail():
        with progress.Status("adding", terminal).shown():
            while not shown(terminal):
                time.sleep(0.001)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert terminal.getvalue().endswith(progress.CLEAR)


def test_compilation_names_its_phases(soon, monkeypatch, network):
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    lines = []

    class Line(progress.Status):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            lines.append(value) if name == "says" else None

    monkeypatch.setattr(progress, "Status", Line)
    engine = progress.compiled(network, "model.py")

    assert isinstance(engine, trt.ICudaEngine)
    assert lines[0] == "compiling model.py"
    assert "compiling model.py: compile by xla" in lines
