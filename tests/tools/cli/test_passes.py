"""``netloop passes`` prints the table of passes."""

from netloop.compiler.passes import PASSES
from netloop.tools.cli import main


def test_every_pass_has_a_row_in_the_order_of_application(capsys):
    assert main(["passes"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]

    assert [row.split("`")[1] for row in rows] == list(PASSES)
