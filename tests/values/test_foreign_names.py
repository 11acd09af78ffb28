"""What messages tell scripts to write is there: methods of networks, and members of enumerations."""

import re

import pytest

import netloop as trt
from netloop.model.graph.python_operators import BINARY, COMPARISONS, UNARY, PythonOperators
from netloop.values.foreign_names import FOREIGN_NAMES


def names_in(text):
    """The methods and the members that a text names."""
    methods = re.findall(r"\b(add_\w+|mark_output)", text)
    return methods, re.findall(r"\b([A-Z]\w+)\.([A-Z_0-9]+)\b", text)


def assert_there(text):
    methods, members = names_in(text)
    assert methods
    for method in methods:
        assert method == "add_iterator" or hasattr(trt.INetworkDefinition, method), method
    for enum, member in members:
        assert member in getattr(trt, enum).__members__, (enum, member)


@pytest.mark.parametrize("name", FOREIGN_NAMES)
def test_call_for_a_foreign_name_is_there(name):
    assert not hasattr(trt.INetworkDefinition, name)
    assert_there(FOREIGN_NAMES[name])


@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS, *UNARY, "matmul", "getitem", "contains", "len"])
def test_call_for_an_operator_is_there(name):
    with pytest.raises(TypeError) as raised:
        getattr(PythonOperators(), f"__{name}__")()
    assert_there(str(raised.value))
