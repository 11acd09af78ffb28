"""``netloop passes`` prints a section for each pass."""

from netloop.compiler.passes import PASSES
from netloop.tools.cli import main


def test_every_pass_has_a_section_in_the_order_of_application(capsys):
    assert main(["passes"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("#")]

    assert headings == [f"### `{name}`" for name in PASSES]
