"""Pages of Markdown, rendered on terminals."""

import sys

import pytest

from netloop.tools.cli.pages import print_page

PAGE = """# Title

| name | what |
|---|---|
| `a` | first |
"""


def test_page_is_markdown_where_there_is_no_terminal(capsys):
    print_page(PAGE)

    assert capsys.readouterr().out == PAGE


def test_page_is_rendered_on_a_terminal(capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_page(PAGE)

    printed = capsys.readouterr().out
    assert "Title" in printed
    assert "|" not in printed
    assert "`" not in printed
