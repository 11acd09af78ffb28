"""NVIDIA's demo of Tacotron 2, whose decoder is a loop: its scripts export, build and run a model of random weights."""

import argparse
import functools
import math
import sys

import convert_onnx2trt
import convert_tacotron22onnx
import inference_trt
import models
import pytest
import tensorrt as trt
import torch
import trt_utils
from tacotron2 import arg_parser

from tests.other_projects.uses.models import agrees, expected

STEPS, RATE = 40, 0.02
TEXT = "Hello World, good day."


def ends_after(decoder, steps):
    """Let a decoder end after a number of steps: a unit of its last LSTM counts, and its gate reads that one only."""
    cell, gate = decoder.decoder_rnn, decoder.gate_layer.linear_layer
    rows = [cell.hidden_size * part for part in range(4)]
    cell.weight_ih[rows] = cell.weight_hh[rows] = cell.bias_hh[rows] = 0
    cell.bias_ih[rows] = torch.tensor([30, 30, RATE, 30])
    gate.weight.zero_()[0, 0] = 100
    gate.bias.fill_(-100 * math.tanh(math.tanh(RATE) * (steps - 0.5)))


def saved_model(path):
    """Save a model of random weights, but for a prenet of zeros: it drops numbers at random, in inference too."""
    torch.manual_seed(0)
    symbols = arg_parser.symbols
    arguments, _ = models.parse_model_args("Tacotron2", argparse.ArgumentParser()).parse_known_args([])
    model = models.get_model("Tacotron2", models.get_model_config("Tacotron2", arguments), to_cuda=False)
    arg_parser.symbols = symbols  # which the parser has replaced, and needs a second time
    with torch.no_grad():
        for layer in model.decoder.prenet.layers:
            layer.linear_layer.weight.zero_()
        ends_after(model.decoder, STEPS)
    torch.save({"state_dict": model.state_dict()}, path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the models, and with their engines."""
    folder = tmp_path_factory.mktemp("tacotron2")
    saved_model(folder / "model.pt")
    parts = [f"--{name}={folder / name}.onnx" for name in ("encoder", "decoder", "postnet")]
    run = [
        (convert_tacotron22onnx, [f"--tacotron2={folder / 'model.pt'}"]),
        (convert_onnx2trt, parts),
        (convert_onnx2trt, [f"--decoder={folder / 'decoder_iter.onnx'}", "--no-loop"]),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.onnx, "export", functools.partial(torch.onnx.export, dynamo=False))  # as at its time
        for script, options in run:
            patch.setattr(sys, "argv", [script.__name__, f"--output={folder}", *options])
            script.main()
    return folder


def engine(folder, name):
    """An engine and its context."""
    engine = trt_utils.load_engine(folder / f"{name}_fp32.engine", trt.Logger(trt.Logger.ERROR))
    return engine, engine.create_execution_context()


def spoken(folder, decoder, context, loop):
    """The frames of a text and their number, with a decoder."""
    (encoder, encodes), (postnet, ends) = engine(folder, "encoder"), engine(folder, "postnet")
    sequences, lengths = inference_trt.prepare_input_sequence([TEXT])
    sequences, lengths = sequences.to(torch.int32), lengths.to(torch.int32)
    parts = encoder, decoder, postnet, encodes, context, ends
    mel, count = inference_trt.infer_tacotron2_trt(*parts, sequences, lengths, {}, fp16=False, loop=loop)
    return mel.cpu().numpy(), int(count.max())


def test_frames_are_those_of_onnxruntime(folder):
    mel, count = spoken(folder, *engine(folder, "decoder_iter"), loop=False)
    wanted, wanted_count = spoken(folder, str(folder / "decoder.onnx"), None, loop=True)

    assert count == wanted_count == STEPS - 1
    agrees(mel[..., :count], wanted[..., :count])


def test_loop_is_an_engine(folder):
    decoder, context = engine(folder, "decoder_with_outer_loop")
    memory = torch.randn((1, 9, 512), generator=torch.Generator().manual_seed(1)).cuda()
    processed = torch.randn((1, 9, 128), generator=torch.Generator().manual_seed(2)).cuda()
    states = inference_trt.init_decoder_inputs(memory, processed, torch.tensor([9], dtype=torch.int32).cuda())
    inputs = dict(zip([f"{name}_0" for name in STATES] + ["memory", "processed_memory", "mask"], states, strict=True))
    frames, lengths = torch.zeros((1, 80, STEPS)).cuda(), torch.zeros(1, dtype=torch.int32).cuda()
    trt_utils.run_trt_engine(
        context, decoder, {"inputs": inputs, "outputs": {"mel_outputs": frames, "mel_lengths_t": lengths}}
    )
    wanted = expected(folder / "decoder.onnx", **{name: tensor.cpu().numpy() for name, tensor in inputs.items()})

    agrees(frames.cpu().numpy(), wanted["mel_outputs"])
    assert lengths.tolist() == wanted["mel_lengths_t"].reshape(-1).tolist() == [STEPS - 1]


STATES = (
    *("decoder_input", "attention_hidden", "attention_cell", "decoder_hidden", "decoder_cell", "attention_weights"),
    *("attention_weights_cum", "attention_context"),
)
"""The states of the loop, in the order of the demo."""
