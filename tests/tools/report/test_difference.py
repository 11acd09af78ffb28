"""Two networks, engines or reports side by side."""

import json
import re

import numpy as np
import pytest

import netloop as trt
from netloop.tools.report.difference import aligned, difference_model, layers_of, read_report, report_difference
from netloop.tools.report.model import page_model
from tests.support.networks import COUNT, X, constant, last, mark, running_sum


def chain(operation=trt.UnaryOperation.SIN, has_more=False, trips=3, names=True):
    """Three sines, one of which may be another operation, perhaps a ReLU after them, and a loop."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2,))
    for number in range(3):
        unary = network.add_unary(x, operation if number == 1 else trt.UnaryOperation.SIN)
        if names:
            unary.name = f"unary {number}"
        x = unary.get_output(0)
    if has_more:
        x = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    loop = network.add_loop()
    loop.name = "steps"
    loop.add_trip_limit(constant(network, np.int32(trips)), COUNT)
    state = loop.add_recurrence(x)
    state.set_input(1, network.add_unary(state.get_output(0), trt.UnaryOperation.NEG).get_output(0))
    return mark(network, y=last(loop, state.get_output(0)))


def model(before, after, inputs=None):
    return difference_model(page_model(before, inputs), page_model(after, inputs))


def differences(before, after):
    return [row for row in model(before, after)["layers"] if row[0] != "equal"]


@pytest.mark.parametrize("names", [True, False])
def test_equal_networks_have_no_differences(names):
    assert differences(chain(names=names), chain(names=names)) == []
    assert model(chain(), chain())["counts"] == {"added": 0, "removed": 0, "changed": 0}


@pytest.mark.parametrize("names", [True, False])
def test_added_and_removed_layers_are_one_difference_each(names):
    short, long = chain(names=names), chain(has_more=True, names=names)

    assert differences(short, long) == [["insert", "", "Activation RELU -> float32[2]"]]
    assert differences(long, short) == [["delete", "Activation RELU -> float32[2]", ""]]


def test_changed_attribute_is_shown_on_both_sides():
    ((kind, before, after),) = differences(chain(), chain(trt.UnaryOperation.COS))

    assert kind == "replace"
    assert before.splitlines()[0] == "Unary SIN unary 1 -> float32[2]"
    assert "SIN" in before.splitlines()[1]
    assert after.splitlines()[0] == "Unary COS unary 1 -> float32[2]"


def test_other_trip_count_is_a_difference():
    assert "numbers = 3" in str(differences(chain(), chain(trips=4)))


def test_strategies_of_loops_differ():
    rows = differences(trt.compile(running_sum()), trt.compile(running_sum(), passes=()))

    assert all("runs as" in text for _, *texts in rows for text in texts)


def test_layers_are_in_their_boxes():
    lines = [layer.line for layer in layers_of(page_model(chain()))]

    assert "loop steps" in lines
    assert "  Recurrence -> float32[2]" in lines


def test_many_equal_layers_are_aligned_in_time(monkeypatch):
    monkeypatch.setattr("netloop.tools.report.difference.MOST_REPEATED", 2)

    layers = layers_of(page_model(chain(names=False)))
    assert [kind for kind, *_ in aligned(layers, layers[:2] + layers[3:])].count("delete") == 1


def test_numbers_and_times_of_both_sides():
    found = model(chain(), chain(has_more=True), {"x": np.float32([1, 2])})
    numbers = {name: values for name, *values in found["numbers"]}

    assert numbers["layers"] == [8, 9, ""]
    assert numbers["call"][2] == "s"
    assert min(numbers["call"][:2]) > 0
    assert all(len(row) == 4 for row in found["times"])


def test_reports_of_files_are_compared(tmp_path):
    trt.report(running_sum(), tmp_path / "before.html", {"x": X})
    text = report_difference(tmp_path / "before.html", running_sum(), tmp_path / "page.html")

    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert data["summaries"][0] == read_report(tmp_path / "before.html")["summary"]
    assert data["counts"]["added"] == 0


@pytest.mark.parametrize("content", ["", "<script>", '<script type="application/json" id="data">[]</script>',
                                     '<script type="application/json" id="data">{"nodes": 1}</script>'])  # fmt: skip
def test_other_file_is_refused(tmp_path, content):
    (tmp_path / "page.html").write_text(content)

    with pytest.raises(ValueError, match="is no report of a network"):
        report_difference(tmp_path / "page.html", running_sum())


def test_a_hostile_name_stays_in_the_data(network):
    name = "</script><img src=x>"
    network.name = name
    layer = network.add_identity(network.add_input(name, trt.float32, ()))
    layer.name = name
    text = report_difference(mark(network, y=layer.get_output(0)), running_sum())

    assert text.count("</script>") == 2
    assert "<img" not in text
