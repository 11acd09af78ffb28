"""Findings name the line of the user's script, also for layers that an importer adds."""

import inspect

import pytest

import netloop
import netloop.onnx
import netloop.openvino
from tests.support.networks import nested


@pytest.mark.parametrize("format", [netloop.onnx, netloop.openvino], ids=["onnx", "openvino"])
def test_layers_of_a_model_have_the_line_that_loads_it(format, tmp_path):
    path = tmp_path / f"model.{'onnx' if format is netloop.onnx else 'xml'}"
    format.save(nested(), path)
    network, line = format.load(path), inspect.currentframe().f_lineno

    locations = {each.source_location for each in (*network.layers, *network.loops)}
    assert {(each.file, each.line) for each in locations} == {(__file__, line)}
