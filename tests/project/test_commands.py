"""The page of the command line is what the parsers say."""

from tests.project import commands


def test_page_has_the_commands_of_today():
    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), "python -m tests.project.commands"


def test_every_argument_has_a_meaning():
    for command in commands.COMMANDS:
        assert [action.dest for action in commands.parser_of(command)._actions if not action.help] == []
