from netloop.formats.from_jax.primitive_page import primitives_page
from netloop.formats.from_jax.rule_table import COMPLEX
from netloop.formats.from_jax.rules import REFUSED, TABLE


def test_page_has_every_primitive_once():
    rows = [line for line in primitives_page().splitlines() if line.startswith("| `")]
    listed = [name for line in rows for name in line.split(" | ")[0].replace("`", "").removeprefix("| ").split(", ")]

    assert sorted(listed) == sorted({*TABLE, *COMPLEX, *REFUSED})


def test_every_rule_says_what_it_means():
    assert [name for name in TABLE if not (TABLE.find(name).__doc__ or "").strip()] == []
