"""Fixtures of the tests of the command line."""

from typing import NamedTuple

import pytest

from netloop.tools.cli import main
from tests.support import cli_models


class Ran(NamedTuple):
    """A command that ended."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def models_once(tmp_path_factory):
    """The folder of the models."""
    folder = tmp_path_factory.mktemp("models")
    cli_models.write_all(folder)
    return folder


@pytest.fixture
def models(models_once, tmp_path, monkeypatch):
    """A current folder with the models."""
    for value in models_once.iterdir():
        if value.is_file():
            (tmp_path / value.name).write_bytes(value.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Runs a command, written as in a shell without quotes."""

    def run_command(line: str) -> Ran:
        try:
            status = main(line.split())
        except SystemExit as ended:  # of argparse
            status = int(ended.code or 0)
        printed = capsys.readouterr()
        return Ran(status, printed.out, printed.err)

    return run_command
