"""The schemas of onnxruntime's operators, against those of the installed onnxruntime."""

import json

import onnxruntime
import pytest

import netloop
from netloop.formats.onnx.importer.microsoft_schemas import FILE, facts
from tests.project import microsoft_schemas as recorded
from tests.support.microsoft import MICROSOFT, floats
from tests.support.onnx_models import of_node

INSTALLED = recorded.installed()
OPERATORS = [(domain, name) for domain, names in facts().items() for name in names]


def test_operators_with_functions_are_those_with_schemas():
    assert recorded.imported() == {domain: sorted(names) for domain, names in facts().items()}


@pytest.mark.parametrize(("domain", "name"), [operator for operator in OPERATORS if operator in INSTALLED])
def test_schema_is_that_of_onnxruntime(domain, name):
    ours, theirs = facts()[domain][name], recorded.facts_of(INSTALLED[domain, name])
    if json.loads(FILE.read_text(encoding="utf-8"))["onnxruntime"] == onnxruntime.__version__:
        assert ours == theirs
    for kind in ("inputs", "outputs"):
        shared = min(len(ours[kind]), len(theirs[kind]))
        assert ours[kind][:shared] == theirs[kind][:shared]
    for attribute in ours["attributes"].keys() & theirs["attributes"].keys():
        assert ours["attributes"][attribute] == theirs["attributes"][attribute]


def refusal(op, *inputs, **attributes):
    made, _ = of_node(op, *inputs, **attributes)
    with pytest.raises(netloop.ModelError) as error:
        netloop.onnx.load(made)
    return str(error.value)


def test_attributes_and_inputs_are_checked():
    x = floats(2, 2)

    assert "did you mean 'alpha'" in refusal("FusedMatMul", x, x, alpah=1.0, **MICROSOFT)
    assert "'alpha' is int, but must be float" in refusal("FusedMatMul", x, x, alpha=1, **MICROSOFT)
    assert "needs the attributes ['num_heads']" in refusal("MultiHeadAttention", x, **MICROSOFT)
    assert "1 inputs, and com.microsoft::BiasGelu-1 2" in refusal("BiasGelu", x, **MICROSOFT)
    assert "input 4 is left out" in refusal("QLinearAdd", x, x, None, x, None, x, x, **MICROSOFT)


def test_operator_of_the_memory_of_one_machine_says_how_to_save_the_model():
    made, _ = of_node("ReorderInput", floats(1, 8, 2, 2), domain="com.microsoft.nchwc", opset=1)
    with pytest.raises(netloop.ModelError, match="ORT_ENABLE_EXTENDED or below") as error:
        netloop.onnx.load(made)

    assert error.value.findings[0].code == "NL744"
