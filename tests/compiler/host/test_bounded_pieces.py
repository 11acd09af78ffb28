"""A layer whose number of results depends on data, in one program with what follows it."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.host import bounded_pieces
from netloop.compiler.host.compiled_pieces import Pieces
from netloop.model.layers import suppression
from tests.support.devices import only_on_cpus
from tests.support.networks import Op, combine, constant, counted, mark, stacked

pytestmark = only_on_cpus("elsewhere the host selects")

CORNERS, CENTERS = trt.BoundingBoxFormat.CORNER_PAIRS, trt.BoundingBoxFormat.CENTER_SIZES


def boxes_and_scores(batch, boxes, classes, seed=0, own=False, dtype=np.float32):
    """Boxes that overlap, of which some have equal scores."""
    random = np.random.default_rng(seed)
    shape = (batch, boxes, classes, 4) if own else (batch, boxes, 4)
    first, sizes = random.uniform(0, 8, (2, *shape[:-1], 2))
    corners = np.concatenate([first, first + sizes], -1).astype(dtype)
    scores = (random.integers(0, 8, (batch, boxes, classes)) / 8).astype(dtype)
    return {"boxes": corners, "scores": scores}


def selected(inputs, most=3, overlap=0.2, least=0.25, own_number=False, **named):
    """A network that selects boxes, and the layer."""
    network = trt.INetworkDefinition()
    tensors = [network.add_input(name, trt.float32 if array.dtype == np.float32 else trt.float16, array.shape)
               for name, array in inputs.items() if name != "most"]  # fmt: skip
    number = network.add_input("most", trt.int32, ()) if own_number else constant(network, most, np.int32)
    layer = network.add_nms(*tensors, number)
    dtype = tensors[0].type.dtype
    layer.set_input(3, constant(network, overlap, dtype))
    layer.set_input(4, constant(network, least, dtype))
    for name, value in named.items():
        setattr(layer, name, value)
    return network, layer


@pytest.fixture
def bounded(monkeypatch):
    """The pieces that begin with bounded results from now on."""
    results, find = [], bounded_pieces.BoundedPieces.find

    def noted(self, *given):
        run = find(self, *given)
        results.append(run)
        return run

    monkeypatch.setattr(bounded_pieces.BoundedPieces, "find", noted)
    return results


def agree(network, inputs):
    engine, meant = trt.compile(network), trt.evaluate(network, inputs)
    for _ in range(2):
        for name, array in engine(inputs).items():
            # a mean is rounded in another order
            np.testing.assert_allclose(np.asarray(array), meant[name], rtol=3e-7, err_msg=name, strict=True)
    return meant


CASES = {
    "one class": ((1, 30, 1), {}),
    "classes and images": ((3, 9, 4), {}),
    "boxes of their own for each class": ((2, 9, 3), {"own": True}),
    "half precision": ((2, 12, 2), {"dtype": np.float16}),
    "centers": ((2, 12, 2), {"bounding_box_format": CENTERS}),
    "no box": ((2, 6, 2), {"least": 1.0}),
    "nothing is asked for": ((2, 6, 2), {"most": 0}),
    "less than nothing is asked for": ((1, 6, 1), {"most": -2}),
    "all boxes": ((1, 8, 2), {"most": 100, "overlap": 1.0, "least": -1.0}),
    "no overlap": ((1, 20, 1), {"overlap": 0.0}),
    "any overlap is too large": ((1, 8, 1), {"overlap": -1.0}),
    "few pairs": ((2, 12, 3), {"topk_box_limit": 5}),
    "one box": ((1, 1, 1), {"indices_type": trt.int64}),
    "a number of the call": ((1, 12, 2), {"own_number": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_program_selects_what_the_reference_selects(case, bounded):
    shape, named = CASES[case]
    inputs = boxes_and_scores(*shape, **{name: named[name] for name in ("own", "dtype") if name in named})
    network, layer = selected(inputs, **{name: value for name, value in named.items() if name not in ("own", "dtype")})
    mark(network, indices=layer.get_output(0), count=layer.get_output(1))
    if "own_number" in named:
        inputs["most"] = np.int32(2)

    meant = agree(network, inputs)
    # there is no program without room for a result
    assert bool([*filter(None, bounded)]) == (named.get("most", 1) > 0)
    assert len(meant["indices"]) == meant["count"]


def test_what_cannot_be_compared_is_not_selected_or_does_not_overlap(bounded):
    inputs = boxes_and_scores(1, 6, 1)
    inputs["scores"][0, :, 0] = np.nan, np.inf, 0.0, -0.0, 0.5, -np.inf
    inputs["boxes"][0, 4] = np.nan, 0, np.inf, 1
    network, layer = selected(inputs, least=-np.inf, overlap=0.0, most=6)
    mark(network, indices=layer.get_output(0))

    assert agree(network, inputs)["indices"][:2].tolist() == [[0, 0, 1], [0, 0, 4]]
    assert None not in bounded


def following(network, layer, boxes):
    """The boxes that are selected, as models read them, with what depends on their number."""
    indices, _ = layer.get_output(0), layer.get_output(1)
    column = network.add_slice(indices, (0, 2), (0, 1), (1, 1))
    size = network.add_concatenation([
        network.add_gather(network.add_shape(indices).get_output(0), constant(network, [0], np.int64), 0).get_output(0),
        constant(network, [1], np.int64),
    ])  # fmt: skip
    column.set_input(2, size.get_output(0))
    gathered = network.add_gather(indices, constant(network, 2, np.int32), 1).get_output(0)
    flat = network.add_shuffle(boxes)
    flat.reshape_dims = (-1, 4)
    rows = network.add_gather(flat.get_output(0), gathered, 0).get_output(0)
    twice = network.add_concatenation([rows, constant(network, np.ones((2, 4)), np.float32), rows])
    twice.axis = 0
    means = network.add_reduce(rows, trt.ReduceOperation.AVG, 0b01, False).get_output(0)
    return mark(
        network,
        rows=rows,
        twice=twice.get_output(0),
        means=means,
        count=combine(network, network.add_cast(layer.get_output(1), trt.float32).get_output(0), 2.0, Op.PROD),
        column=column.get_output(0),
    )


@pytest.mark.parametrize("least", [0.1, 0.8, 0.99])
def test_what_follows_is_in_the_same_program(least, bounded):
    inputs = boxes_and_scores(1, 20, 1)
    network, layer = selected(inputs, least=least, most=20)
    following(network, layer, network.inputs[0])

    agree(network, inputs)
    assert bounded[0].length >= 10


def test_lengths_of_all_numbers_of_boxes_need_one_program(bounded, monkeypatch):
    monkeypatch.setattr(Pieces, "find", lambda *given: pytest.fail("another piece was compiled"))
    inputs = boxes_and_scores(1, 20, 1)
    network, layer = selected(inputs, most=20)
    gathered = network.add_gather(layer.get_output(0), constant(network, 2, np.int32), 1).get_output(0)
    mark(network, y=combine(network, gathered, 1, Op.SUM))
    engine = trt.compile(network)

    for number in (20, 0, 1, 7, 2):
        inputs["scores"][0, :, 0] = np.where(np.arange(20) < number, 0.9, 0.0)
        np.testing.assert_array_equal(np.asarray(engine(inputs)["y"]), trt.evaluate(network, inputs)["y"])
    assert len(bounded) == 1


def test_what_reads_another_length_of_the_run_is_in_another_piece(bounded):
    inputs = boxes_and_scores(1, 20, 1)
    network, layer = selected(inputs)
    mask = network.add_input("mask", trt.bool, (9,))
    others = network.add_cast(network.add_non_zero(mask).get_output(0), trt.int32).get_output(0)
    turned = network.add_shuffle(others)
    turned.first_transpose = (1, 0)
    column = network.add_gather(layer.get_output(0), constant(network, [2], np.int32), 1).get_output(0)
    joined = network.add_concatenation([turned.get_output(0), column])
    joined.axis = 0
    mark(network, y=combine(network, joined.get_output(0), 1, Op.SUM))

    engine = trt.compile(network)
    for number in (5, 0, 9):
        call = {**inputs, "mask": np.arange(9) < number}
        np.testing.assert_array_equal(np.asarray(engine(call)["y"]), trt.evaluate(network, call)["y"])
    assert len({run.action for run in bounded}) == 1
    assert "y" not in {tensor.name for run in bounded for tensor in run.action.__self__.outputs}


@pytest.mark.parametrize("is_before", [True, False])
def test_shape_that_data_decide_before_or_behind_the_results_is_that_of_the_call(is_before, bounded):
    inputs = boxes_and_scores(1, 6, 1)
    network, layer = selected(inputs, most=6)
    # of more elements than a call has as a part of its types
    numbers = network.add_input("numbers", trt.float32, (1000,))
    number = network.add_reduce(numbers, trt.ReduceOperation.SUM, 0b1, True).get_output(0)
    length = network.add_cast(number, trt.int32).get_output(0)
    sizes = network.add_concatenation([constant(network, [3], np.int32), length])
    image = network.add_input("image", trt.float32, (3, 4))
    if not is_before:
        count = network.add_shuffle(network.add_cast(layer.get_output(1), trt.float32).get_output(0))
        count.reshape_dims = (1, 1)
        image = combine(network, image, count.get_output(0))
    whole = network.add_resize(image)
    whole.set_input(1, sizes.get_output(0))
    part = network.add_slice(whole.get_output(0), (0, 0), (3, 8), (1, 1))
    part.mode = trt.SampleMode.FILL
    mark(network, y=part.get_output(0), indices=layer.get_output(0))
    if is_before:
        highest = network.add_reduce(part.get_output(0), trt.ReduceOperation.MAX, 0b11, True).get_output(0)
        least = network.add_shuffle(combine(network, highest, 0.0, Op.PROD))
        least.reshape_dims = ()
        layer.set_input(4, least.get_output(0))

    engine = trt.compile(network)
    for count in (3, 1, 9, 2):
        numbers = (np.arange(1000) < count).astype(np.float32)
        call = {**inputs, "numbers": numbers, "image": np.arange(12, dtype=np.float32).reshape(3, 4)}
        wanted = trt.evaluate(network, call)
        for name, array in engine(call).items():
            np.testing.assert_array_equal(np.asarray(array), wanted[name], strict=True)


def test_loop_that_fails_before_the_boxes_are_selected_does_fail(bounded):
    inputs = boxes_and_scores(1, 6, 1)
    network, layer = selected(inputs)
    trips = network.add_input("trips", trt.int32, ())
    rows = stacked(counted(network, trips), network.inputs[1], constant(network, 2, np.int32))
    mark(network, indices=layer.get_output(0), rows=rows)

    for run in (trt.compile(network), lambda inputs: trt.evaluate(network, inputs)):
        with pytest.raises(trt.ExecutionError, match="NL601"):
            run({**inputs, "trips": np.int32(3)})


def test_assertion_before_or_behind_the_results_holds_in_each_call(bounded):
    inputs = boxes_and_scores(1, 6, 1)
    network, layer = selected(inputs, most=6)
    highest = network.add_reduce(network.inputs[1], trt.ReduceOperation.MAX, 0b111, False).get_output(0)
    network.add_assertion(combine(network, highest, 2.0, Op.LESS), "scores below 2")
    network.add_assertion(combine(network, layer.get_output(1), 1, Op.GREATER), "two boxes")
    mark(network, indices=layer.get_output(0))
    engine = trt.compile(network)

    agree(network, inputs)
    for scores, message in (inputs["scores"] * 9, "scores below 2"), (inputs["scores"] * 0, "two boxes"):
        with pytest.raises(trt.ExecutionError, match=message):
            engine({**inputs, "scores": scores})
    assert any(run is not None for run in bounded)


def test_many_boxes_are_selected_on_the_host(bounded):
    inputs = boxes_and_scores(1, suppression.MOST_PAIRS + 1, 1)
    network, layer = selected(inputs)
    mark(network, indices=layer.get_output(0))

    agree(network, inputs)
    assert [*filter(None, bounded)] == []
