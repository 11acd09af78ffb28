"""ONNX's tests of control flow, as OpenVINO converts them."""

import warnings
from functools import cache

import numpy as np
import pytest
from onnx.backend.test.case.node import collect_testcases

import netloop
from tests.support.examples import mostly_slow
from tests.support.openvino_models import document, ov

NAMES = [
    "test_if",
    "test_loop11",
    "test_scan_sum",
    "test_scan9_sum",
    "test_scan9_multi_state",
    "test_scan9_scalar",
    "test_gru_defaults",
    "test_gru_with_initial_bias",
    "test_gru_seq_length",
    "test_gru_reverse",
    "test_gru_bidirectional",
    "test_lstm_defaults",
    "test_lstm_with_initial_bias",
    "test_lstm_reverse",
    "test_lstm_bidirectional",
    "test_simple_rnn_defaults",
    "test_simple_rnn_with_initial_bias",
    "test_simple_rnn_reverse",
    "test_simple_rnn_bidirectional",
    "test_rnn_seq_length",
]
"""The tests that OpenVINO converts; it drops peepholes, and gives batch-first tensors another shape."""


@cache
def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, while the package makes its data
        return {testcase.name: testcase for testcase in collect_testcases()}


@pytest.mark.parametrize("name", mostly_slow(10, NAMES))
def test_converted_model_gives_what_onnx_says(name):
    case = cases()[name]
    converted = ov.Core().read_model(case.model.SerializeToString())
    engine = netloop.compile(netloop.openvino.load(*document(converted)))

    for inputs, outputs in case.data_sets:
        names = [info.name for info in case.model.graph.input]
        found = engine(dict(zip(names, map(np.asarray, inputs), strict=True)))
        for made, expected in zip(found.values(), outputs, strict=True):
            np.testing.assert_allclose(made, expected, rtol=case.rtol, atol=1e-6)
