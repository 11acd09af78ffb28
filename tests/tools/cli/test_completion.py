"""What the shell is offered when the Tab key is pressed."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("argcomplete")


@pytest.fixture
def complete(tmp_path):
    """The words offered for a line, as the script that argcomplete gives to shells asks for them."""

    def offered(line: str) -> set[str]:
        answer = tmp_path / "answer"
        asked = {
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "_ARGCOMPLETE_IFS": "\n",
        }
        program = "import sys; from netloop.tools.cli import main; sys.argv[0] = 'netloop'; main()"
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **asked}, cwd=tmp_path, timeout=100, check=True
        )
        return {word.strip() for word in answer.read_text().split("\n")}

    return offered


def test_commands(complete):
    assert complete("netloop in") == {"inspect"}
    assert {"run", "bench", "demo"} <= complete("netloop ")


def test_options_of_a_command(complete):
    assert complete("netloop bench --warm") == {"--warmUp"}
    assert complete("netloop check --target ") == {"tensorrt"}


def test_files(complete, tmp_path):
    (tmp_path / "model.onnx").write_text("")

    assert complete("netloop run mod") == {"model.onnx"}
