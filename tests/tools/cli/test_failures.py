"""Messages of one screen."""

from netloop.tools.cli import main
from netloop.tools.cli.failures import LINES, one_screen


def test_short_message_is_whole():
    text = "\n".join(map(str, range(LINES)))

    assert one_screen(text) == text


def test_middle_of_a_long_message_is_left_out():
    lines = one_screen("\n".join(map(str, range(100)))).splitlines()

    assert len(lines) == LINES
    assert lines[:2] == ["0", "1"]
    assert lines[-2:] == ["98", "99"]
    assert "... 71 more lines ..." in lines


def test_model_with_many_errors_is_one_screen(tmp_path, capsys):
    lines = ["import netloop as trt", "def build():"]
    lines += ["    raise trt.NetworkError(*(trt.Finding('NL104', f'number {n}') for n in range(200)))"]
    (tmp_path / "model.py").write_text("\n".join(lines))

    assert main(["run", str(tmp_path / "model.py")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == LINES
