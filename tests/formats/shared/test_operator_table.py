"""Operator tables: registration, and lookup by version."""

import pytest

from netloop.formats.shared.operator_table import OperatorTable


@pytest.fixture
def table():
    table = OperatorTable()

    @table.register("Cast", since=6)
    def cast():
        """Version 6."""

    @table.register("Cast", "CastLike", since=15)
    def later():
        """Version 15."""

    return table


@pytest.mark.parametrize(
    ("version", "wanted"), [(5, None), (6, "cast"), (14, "cast"), (15, "later"), (99, "later"), (None, "later")]
)
def test_function_serves_up_to_the_next_one(table, version, wanted):
    found = table.find("Cast", version)

    assert (found and found.__name__) == wanted


@pytest.mark.parametrize(("version", "wanted"), [(5, None), (6, 6), (14, 6), (15, 15), (None, 15)])
def test_version_is_the_newest_that_is_not_above(table, version, wanted):
    assert table.version_at("Cast", version) == wanted


def test_unknown_operator_has_no_function(table):
    assert table.find("Gather") is None
    assert table.versions("Gather") == {}
    assert "Gather" not in table


def test_operators_are_iterated_in_the_order_of_their_registration(table):
    assert [(value, sorted(table.versions(value))) for value in table] == [("Cast", [6, 15]), ("CastLike", [15])]


def test_decorator_returns_the_function(table):
    def gather():
        """Any function."""

    assert table.register("Gather")(gather) is gather


def test_function_can_be_imported_again_after_an_interrupt(table):
    again = table.find("Cast", 15)
    table.register("Cast", "CastLike", since=15)(again)

    assert table.find("Cast", 15) is again


def test_version_cannot_be_registered_twice(table):
    with pytest.raises(AssertionError, match="since version 15 already"):
        table.register("CastLike", since=15)(lambda: None)
