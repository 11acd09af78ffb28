"""DFT, STFT and MelWeightMatrix against numpy and PyTorch, in cases that ONNX's own tests lack."""

import numpy as np
import pytest

import netloop
from tests.support.onnx_models import check_node, of_node, runs
from tests.support.peers import needs_torch, torch

SIGNAL = np.random.default_rng(0).normal(size=(2, 20, 1)).astype(np.float32)


def joined(x):
    return x[..., 0] + 1j * x[..., 1]


@pytest.mark.parametrize("opset", [17, 20])
def test_length_of_a_transform_may_be_known_in_the_call_alone(opset):
    made, given = of_node("DFT", SIGNAL, np.array(32), onesided=1, opset=opset)
    engine = netloop.compile(netloop.onnx.load(made))

    for length in (32, 7):
        found = np.asarray(engine({**given, "x1": np.array(length)})["y0"])
        assert np.allclose(joined(found), np.fft.rfft(SIGNAL[..., 0], length), atol=1e-5)


@needs_torch
@pytest.mark.parametrize("onesided", [0, 1])
def test_short_transforms_are_those_of_pytorch(onesided):
    window = np.hanning(8).astype(np.float32)
    made, given = of_node("STFT", SIGNAL, np.array(3), window, np.array(8), onesided=onesided, opset=17)

    expected = torch.stft(
        torch.tensor(SIGNAL[..., 0]), 8, 3, window=torch.tensor(window), center=False, onesided=bool(onesided),
        return_complex=True,
    )  # fmt: skip
    assert np.allclose(joined(runs(made, given)[0]), expected.numpy().swapaxes(1, 2), atol=1e-5)


def test_short_transforms_of_open_lengths_are_those_of_onnxruntime():
    check_node("STFT", SIGNAL, np.array(5), np.hamming(6).astype(np.float32), open_lengths=True, opset=17, atol=1e-5)


def test_real_signals_may_have_no_last_axis():
    check_node("STFT", SIGNAL[..., 0], np.array(5), np.hamming(6).astype(np.float32), onesided=1, opset=17, atol=1e-5)


def test_frame_of_the_whole_signal_has_its_transform():
    made, given = of_node("STFT", SIGNAL, np.array(5), opset=17)

    assert np.allclose(joined(runs(made, given)[0])[:, 0], np.fft.rfft(SIGNAL[..., 0]), atol=1e-5)


@pytest.mark.parametrize("bands", [3, 12])
def test_weights_of_bands_are_those_of_onnxruntime(bands):
    scalars = np.array(bands), np.array(32), np.array(8000), np.float32(20), np.float32(3500)
    check_node("MelWeightMatrix", *scalars, opset=17)
