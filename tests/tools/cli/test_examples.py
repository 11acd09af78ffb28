"""The examples in the help of the commands run as they are."""

import shlex
from importlib import import_module

import pytest

from netloop.tools.cli import COMMANDS, main

EXAMPLES = [(name, example) for name in COMMANDS for example in import_module(f"netloop.tools.cli.{name}").EXAMPLES]


@pytest.mark.parametrize(("command", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_example_runs(models, command, example, capsys):
    line, _, _ = example.partition(" > ")
    program, *words = shlex.split(line)

    assert (program, words[0]) == ("netloop", command)
    assert main(words) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_examples(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    said = capsys.readouterr().out

    assert ended.value.code == 0
    assert all(f"\n  {value}\n" in said for name, value in EXAMPLES if name == command)
