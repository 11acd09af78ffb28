"""Tensors of strings, against Python's strings and numpy, in the reference, in engines and in plans."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.gather import IScatterLayer
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer, ISelectLayer
from netloop.model.layers.strings import (
    IStringConcatenationLayer,
    IStringLookupLayer,
    IStringMatchLayer,
    IStringNgramsLayer,
    IStringNormalizationLayer,
    IStringSplitLayer,
    IStringTokenizationLayer,
)
from netloop.values.diagnostics import LayerError
from netloop.values.string_arrays import STRING, string_array
from netloop.values.types import NUMPY_TYPES, SequenceType, TensorType
from tests.support.laws import refuses
from tests.support.networks import constant, counted, last, mark

S = trt.DataType.STRING
F = np.float32
Op = trt.ElementWiseOperation
LONG = "long " * 100


def plain(value):
    return [plain(element) for element in value] if isinstance(value, list) else np.asarray(value).tolist()


def run(network, **given):
    """The outputs of the reference, after comparing those of an engine and of one from a plan with them."""
    expected = {name: plain(value) for name, value in trt.evaluate(network, given).items()}
    engine = trt.compile(network)
    again = trt.Runtime(trt.Logger()).deserialize_cuda_engine(engine.serialize())
    for other in (engine, again):
        assert {name: plain(value) for name, value in other(given).items()} == expected
    assert trt.compare(network, given).agrees
    return expected


def texts(network, *given):
    return network.add_constant((len(given),), string_array(given)).get_output(0)


def with_input(*shape):
    network = trt.INetworkDefinition()
    return network, network.add_input("x", S, shape)


def applied(add, *given):
    """The output of a layer on a list of strings, as a list."""
    network, x = with_input(-1)
    mark(network, y=add(network, x).get_output(0))
    return run(network, x=list(given))["y"]


# ---------------------------------------------------------------------------- inputs and outputs


@pytest.mark.parametrize("form", [list, lambda x: np.array(x, object), np.array, lambda x: np.array(x, STRING)])
def test_input_has_any_form_of_texts(form):
    network, x = with_input(2)
    mark(network, y=network.add_identity(x).get_output(0))

    assert run(network, x=form(["a", "é"]))["y"] == ["a", "é"]


def test_output_is_an_array_of_objects_of_its_own():
    network, x = with_input(2)
    mark(network, y=network.add_identity(x).get_output(0))
    given = string_array(["a\0", LONG])

    for found in (trt.compile(network)({"x": given})["y"], trt.evaluate(network, {"x": given})["y"]):
        assert (found.dtype, found.tolist()) == (np.dtype(object), ["a\0", LONG])
        found[0] = "other"
    assert given.tolist() == ["a\0", LONG]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", 1], "not every element is a str"),
        ([b"a", b"b"], "not every element is a str"),
        (np.array(["a", None], object), "not every element is a str; one is a NoneType"),
        (np.ones(2), "not every element is a str; one is a float"),
        (["a", "\udc80"], "it has a text that is no valid Unicode"),
        (["a"], "its value is string[1]"),
        ([["a"], ["b"]], "its value is string[2,1]"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("runs", [trt.evaluate, lambda network, inputs: trt.compile(network)(inputs)])
def test_input_that_is_no_text_is_refused(runs, given, message):
    network, x = with_input(2)
    mark(network, y=network.add_identity(x).get_output(0))

    with pytest.raises(trt.InputError, match="NL603") as error:
        runs(network, {"x": given})
    assert message in str(error.value)


def test_numbers_are_refused_where_strings_are_given():
    network = trt.INetworkDefinition()
    mark(network, y=network.add_identity(network.add_input("x", trt.float32, (1,))).get_output(0))

    with pytest.raises(trt.InputError, match="NL603"):
        trt.compile(network)({"x": np.array(["a"], object)})


@pytest.mark.parametrize("given", [np.array(["a", 1], object), np.array([None]), np.array([b"a"])], ids=repr)
def test_constant_that_is_no_text_is_refused(given):
    with pytest.raises(ValueError, match="weights cannot be of"):
        trt.INetworkDefinition().add_constant(given.shape, given)


def test_input_may_follow_another_call_with_other_texts():
    network, x = with_input(1)
    y = network.add_slice(constant(network, np.arange(5), np.int32), (0,), (0,), (1,))
    y.set_input(2, network.add_cast(x, trt.int64).get_output(0))
    mark(network, y=y.get_output(0))
    engine = trt.compile(network)

    for number in (2, 3, 2):
        assert engine({"x": [" " * 100 + str(number)]})["y"].shape == (number,)
    with pytest.raises(trt.NetworkError, match="STRICT_BOUNDS"):
        engine({"x": [" " * 100 + "9"]})


# ---------------------------------------------------------------------------- layers that move elements


def test_layers_move_strings_as_numpy_does():
    network, x = with_input(2, 2)
    given = np.array([["a", "b\0"], ["", LONG]], object)
    shuffle = network.add_shuffle(x)
    shuffle.first_transpose, shuffle.reshape_dims = (1, 0), (4,)
    joined = network.add_concatenation([x, x])
    joined.axis = 1
    fill = network.add_slice(x, (1, 0), (2, 3), (1, 1))
    fill.mode = trt.SampleMode.FILL
    pairs = constant(network, [[1, 1]], np.int32)
    mark(
        network,
        shuffle=shuffle.get_output(0),
        joined=joined.get_output(0),
        fill=fill.get_output(0),
        gather=network.add_gather(x, constant(network, [1, -1], np.int32), 1).get_output(0),
        pick=network.add_gather_v2(x, pairs, trt.GatherMode.ND).get_output(0),
        scatter=network.add_scatter(x, pairs, texts(network, "new"), trt.ScatterMode.ND).get_output(0),
        shape=network.add_shape(x).get_output(0),
        unsqueeze=network.add_unsqueeze(x, constant(network, [1], np.int32)).get_output(0),
    )

    assert run(network, x=given) == {
        "shuffle": given.T.reshape(-1).tolist(),
        "joined": np.concatenate([given, given], 1).tolist(),
        "fill": [["", LONG, ""], ["", "", ""]],
        "gather": given[:, [1, -1]].tolist(),
        "pick": [LONG],
        "scatter": [["a", "b\0"], ["", "new"]],
        "shape": [2, 2],
        "unsqueeze": given[:, None].tolist(),
    }


def test_strings_are_compared_and_selected():
    network, x = with_input(3)
    same = network.add_elementwise(x, texts(network, "a", "b\0", LONG), Op.EQUAL).get_output(0)
    mark(network, same=same, y=network.add_select(same, x, texts(network, "-")).get_output(0))

    assert run(network, x=["a", "b", LONG]) == {"same": [True, False, True], "y": ["a", "-", LONG]}


def test_unique_strings_are_in_the_order_of_their_characters():
    network, x = with_input(-1)
    layer = network.add_unique(x)
    mark(network, **{f"y{position}": layer.get_output(position) for position in range(4)})

    expected = np.unique(["é", "b", "", "b", "a\0", "a"], return_index=True, return_inverse=True, return_counts=True)
    assert expected[0].tolist()[0] == ""
    assert list(run(network, x=["é", "b", "", "b", "a\1", "a"]).values()) == [
        ["", "a", "a\1", "b", "é"], [2, 5, 4, 1, 0], [4, 3, 0, 3, 2, 1], [1, 1, 1, 2, 1],
    ]  # fmt: skip


def test_empty_tensors_stay_empty():
    network, x = with_input(-1, 2)
    split = network.add_string_split(x)
    mark(
        network,
        cast=network.add_cast(x, trt.float32).get_output(0),
        same=network.add_elementwise(x, x, Op.EQUAL).get_output(0),
        split=split.get_output(0),
        count=split.get_output(1),
        match=network.add_string_match(x, "a").get_output(0),
        found=network.add_string_lookup(x, []).get_output(0),
    )
    given = np.empty((0, 2), object)

    assert run(network, x=given) == {name: [] for name in ("cast", "same", "split", "count", "match", "found")}
    assert trt.evaluate(network, {"x": given})["split"].shape == (0, 2, 0)


# ---------------------------------------------------------------------------- loops, conditionals, sequences


def test_loop_carries_strings_and_stacks_them_with_empty_ones():
    network, x = with_input(3)
    loop = counted(network, 3)
    word = loop.add_iterator(x).get_output(0)
    state = loop.add_recurrence(network.add_constant((), string_array(">")).get_output(0))
    state.set_input(1, network.add_string_concatenation(state.get_output(0), word).get_output(0))
    rows = loop.add_loop_output(state.get_output(0), trt.LoopOutput.REVERSE)
    rows.set_input(1, constant(network, 5, np.int32))
    mark(network, last=last(loop, state.get_output(0)), rows=rows.get_output(0))

    assert run(network, x=["a", "b\0", "c"]) == {"last": ">ab\0c", "rows": [">ab\0", ">a", ">", "", ""]}


@pytest.mark.parametrize("taken", [True, False])
def test_branch_gives_strings(taken):
    network, x = with_input(1)
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    y = choice.add_output(choice.add_input(x).get_output(0), texts(network, "other"))
    mark(network, y=y.get_output(0))

    assert run(network, x=["a"], c=np.array(taken))["y"] == ["a" if taken else "other"]


def test_sequences_and_optional_values_hold_strings():
    network = trt.INetworkDefinition()
    s, x = network.add_sequence_input("s", S, (-1,)), network.add_optional_input("x", S, (1,))
    longer = network.add_sequence_insert(s, network.add_optional_get(x).get_output(0)).get_output(0)
    rows = network.add_sequence_split(texts(network, "u", "v\0"), keep_axis=False).get_output(0)
    whole = network.add_sequence_concatenation(longer, 0).get_output(0)
    mark(
        network,
        longer=longer,
        whole=whole,
        rows=rows,
        v=network.add_sequence_at(rows, constant(network, 1)).get_output(0),
    )

    assert run(network, s=[["a", "b"], []], x=["c"]) == {
        "longer": [["a", "b"], [], ["c"]], "whole": ["a", "b", "c"], "rows": ["u", "v\0"], "v": "v\0",
    }  # fmt: skip


def test_error_in_strings_counts_only_where_it_is_needed():
    network, x = with_input(1)
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.bool, ()))
    y = choice.add_output(network.add_cast(x, trt.float32).get_output(0), constant(network, [1], F))
    mark(network, y=y.get_output(0))
    engine = trt.compile(network)

    assert engine({"x": ["no"], "c": np.array(False)})["y"].tolist() == [1]
    with pytest.raises(trt.ExecutionError, match="'no' is no number"):
        engine({"x": ["no"], "c": np.array(True)})


# ---------------------------------------------------------------------------- conversions


TEXT_OF = {
    -0.0: "-0", 1.0: "1", 3.14: "3.1400001", 1e-5: "9.9999997e-06", 1e8: "1e+08", 16777216.0: "16777216",
    float("nan"): "NaN", float("inf"): "INF", -float("inf"): "-INF",
}  # fmt: skip


def test_floats_have_eight_digits():
    """Source of the expected texts: onnxruntime 1.32."""
    layer = ICastLayer(to_type=S)

    assert layer.evaluate(F(list(TEXT_OF))).tolist() == list(TEXT_OF.values())
    assert layer.evaluate(np.float16([0.1])).tolist() == ["0.099975586"]


@pytest.mark.parametrize(
    "dtype", [numpy_type for numpy_type in NUMPY_TYPES.values() if numpy_type.kind in "iu"], ids=str
)
def test_integers_keep_all_digits(dtype):
    ends = [int(np.iinfo(dtype).min), 0, int(np.iinfo(dtype).max)]

    made = ICastLayer(to_type=S).evaluate(np.array(ends, dtype))
    assert made.tolist() == list(map(str, ends))
    assert ICastLayer(to_type=trt.DataType.INT64 if dtype.kind == "i" else trt.uint64).evaluate(made).tolist() == ends


def test_bools_are_digits():
    assert ICastLayer(to_type=S).evaluate(np.array([True, False])).tolist() == ["1", "0"]


def read(text, to_type):
    return ICastLayer(to_type=to_type).evaluate(string_array([text])).tolist()[0]


@pytest.mark.parametrize("text", ["3.14", "1e-5", "1E8", ".5", "5.", "-0", " 12\t", "+7", "1e999", "-1e999", "1e-999"])
def test_text_is_the_number_that_python_reads(text):
    assert repr(read(text, trt.float64)) == repr(float(text))
    assert read(text, trt.float32) == F(float(text))


@pytest.mark.parametrize("text", ["INF", "+INF", "inf", "-Inf", "Infinity"])
def test_words_are_infinite(text):
    assert read(text, trt.float32) == (-1 if "-" in text else 1) * np.inf


def test_word_is_no_number():
    assert np.isnan(read("NaN", trt.float32))
    assert np.isnan(read("nan", trt.float16))


@pytest.mark.parametrize(
    ("text", "dtype", "number"),
    [
        ("100.5", trt.int64, 100), ("-7", trt.int32, -7), ("300", trt.int8, 44), ("-5", trt.uint8, 251),
        ("4294967296", trt.int32, 0), (str(2**64 - 1), trt.uint64, 2**64 - 1), ("2", trt.bool, True),
        ("0", trt.bool, False), ("0" * 5000 + "7", trt.int64, 7),
    ],
)  # fmt: skip
def test_text_is_an_integer_as_in_onnxruntime(text, dtype, number):
    assert read(text, dtype) == number


@pytest.mark.parametrize("text", ["", "abc", "1_0", "1,5", "1.5x", "\uff11", "0x10", "True", "1\0", "--1", "1e", "."])
@pytest.mark.parametrize("dtype", [trt.float32, trt.int32, trt.bool])
def test_text_that_is_no_number_is_an_error(text, dtype):
    with pytest.raises(LayerError, match="is no"):
        read(text, dtype)


@pytest.mark.parametrize("text", ["9" * 20, "-" + "9" * 20, "1" * 5000])
def test_text_of_more_than_64_bits_is_an_error(text):
    with pytest.raises(LayerError, match="more than 64 bits"):
        read(text, trt.int64)


# ---------------------------------------------------------------------------- layers for strings


def test_words_are_found_in_a_vocabulary():
    assert applied(lambda net, x: net.add_string_lookup(x, ["b", "a\0", "b", LONG]), "b", "a", "a\0", "", LONG) == [
        0, 4, 1, 4, 3,
    ]  # fmt: skip


def test_strings_are_joined_element_by_element():
    assert applied(lambda net, x: net.add_string_concatenation(x, texts(net, "é\0")), "a", "", LONG) == [
        "aé\0", "é\0", LONG + "é\0",
    ]  # fmt: skip


@pytest.mark.parametrize("delimiter", ["", " ", "ab", "\0"])
@pytest.mark.parametrize("most", [None, 0, 1, 2])
def test_strings_are_split_as_by_python(delimiter, most):
    given = [" a  b\tc ", "abcab", "", "x\0y\0z", "\u3000a\xa0"]
    network, x = with_input(len(given))
    layer = network.add_string_split(x, delimiter, most)
    mark(network, y=layer.get_output(0), n=layer.get_output(1))

    rows = [name.split(delimiter or None, -1 if most is None else most) if name else [] for name in given]
    longest = max(map(len, rows))
    assert run(network, x=given) == {
        "y": [row + [""] * (longest - len(row)) for row in rows], "n": list(map(len, rows)),
    }  # fmt: skip


def test_stop_words_are_removed():
    def add(net, x):
        return net.add_string_normalization(x, trt.StringCase.UPPER, ["b", "É"], is_case_sensitive=False)

    assert applied(add, "a", "B", "é", "ß", "ΣΑΣ") == ["A", "ß", "ΣΑΣ"]
    assert applied(add, "b", "É") == [""]


def test_stop_words_may_be_case_sensitive():
    assert applied(lambda net, x: net.add_string_normalization(x, stopwords=["b"]), "b", "B") == ["B"]


def test_each_character_becomes_one():
    made = applied(lambda net, x: net.add_string_normalization(x, trt.StringCase.LOWER), "İ", "AΣ", "ǅ", "ﬁ")

    assert made == ["i", "a\u03c3", "ǆ", "ﬁ"]


def test_batch_of_one_stays_a_batch():
    layer = IStringNormalizationLayer(stopwords=string_array(["a"]))

    assert layer.evaluate(string_array([["a", "b"]])).tolist() == [["b"]]
    assert layer.evaluate(string_array([["a"]])).tolist() == [[""]]


def test_whole_string_must_match():
    assert applied(lambda net, x: net.add_string_match(x, r"\d+"), "12", "12x", "", "x") == [True, False, False, False]


def test_tokens_are_between_separators():
    def add(net, x):
        layer = net.add_string_tokenization(x, [r"\s+", "[.,]"])
        layer.padding, layer.least_characters = "#", 2
        return layer

    assert applied(add, "one, two.3 four", "") == [["one", "two", "four"], ["#", "#", "#"]]


def test_tokens_are_matches_with_marks():
    def add(net, x):
        layer = net.add_string_tokenization(x, token="a|ab|[0-9]+")
        layer.marks = True
        return layer

    assert applied(add, "aabx17", "") == [["\2", "a", "ab", "17", "\3"], ["\2", "\3", "", "", ""]]
    assert applied(add, "x") == [[]]


def test_characters_are_tokens():
    assert applied(lambda net, x: net.add_string_tokenization(x, [""]), "é\n", "a") == [["é", "\n"], ["a", ""]]


def test_grams_are_counted():
    def add(net, x):
        layer = net.add_string_ngrams(x, ["a", "b", "a", "b", "b", "a"], [0, 2])
        layer.most_skips = 1
        return layer

    # a b b a: two of each; "a b" adjacent and over one string; "b a" likewise
    assert applied(add, "a", "b", "b", "a") == [2, 2, 2, 2]
    assert applied(add, "c") == applied(add) == [0, 0, 0, 0]


def test_lengths_of_grams_are_chosen():
    def add(net, x):
        layer = net.add_string_ngrams(x, ["a", "a", "a"], [0, 1])
        layer.least = 2
        return layer

    assert applied(add, "a", "a") == [0, 1]


# ---------------------------------------------------------------------------- refusals


WORDS = string_array(["a"])
NUMBER = F([1])


def test_numbers_are_refused():
    for layer in (
        IStringLookupLayer(vocabulary=WORDS), IStringSplitLayer(), IStringMatchLayer(pattern=""),
        IStringNormalizationLayer(), IStringTokenizationLayer(token="a"),
        IStringNgramsLayer(pool=WORDS, starts=np.int64([0])),
    ):  # fmt: skip
        refuses(layer, NUMBER, match="input 0 is float32[1], but must be of strings")
    refuses(IStringConcatenationLayer(), WORDS, NUMBER, match="input 1 is float32[1], but must be of strings")


def test_strings_are_mixed_with_nothing():
    refuses(IElementWiseLayer(op=Op.EQUAL), WORDS, NUMBER, match="same element type, not string[1] and float32[1]")
    refuses(IElementWiseLayer(op=Op.SUM), WORDS, WORDS, match="numbers and integers, not string")
    refuses(IElementWiseLayer(op=Op.LESS), WORDS, WORDS, match="numbers and integers, not string")
    refuses(ISelectLayer(), np.array([True]), WORDS, NUMBER, match="same element type")
    scatter = IScatterLayer(mode=trt.ScatterMode.ELEMENT, reduction=trt.ReduceOperation.MAX)
    refuses(scatter, WORDS, np.int64([0]), WORDS, match="the reduction MAX takes numbers, not string[1]")


def test_attributes_that_mean_nothing_are_refused():
    matrix = string_array([["a"]])
    refuses(IStringLookupLayer(vocabulary=NUMBER), WORDS, match="vocabulary is float32[1], but must be a list of")
    refuses(IStringLookupLayer(vocabulary=matrix), WORDS, match="vocabulary is string[1,1]")
    refuses(IStringSplitLayer(max_splits=-1), WORDS, match="max_splits is -1")
    refuses(IStringMatchLayer(pattern="("), WORDS, match="the pattern '(' has a ( without its )")
    refuses(IStringNormalizationLayer(), string_array([["a"], ["b"]]), match="must be a string[n] or string[1,n]")
    refuses(IStringTokenizationLayer(), WORDS, match="either separators or token")
    refuses(IStringTokenizationLayer(token="a", separators=WORDS), WORDS, match="either separators or token")
    refuses(IStringTokenizationLayer(separators=string_array(["a*"])), WORDS, match="'a*' matches an empty string")
    refuses(IStringTokenizationLayer(token="a"), string_array("a"), match="the input is string[]")


@pytest.mark.parametrize(
    ("starts", "message"),
    [([0, 2], "1 strings of the pool do not divide into 2-grams"), ([0, 4], "must rise from 0 to the 3 strings"),
     ([1], "must rise from 0"), ([0, 2, 1], "must rise from 0"), ([], "must rise from 0")],
)  # fmt: skip
def test_pool_that_has_no_grams_is_refused(starts, message):
    layer = IStringNgramsLayer(pool=string_array(["a", "b", "c"]), starts=np.array(starts, np.int64))

    refuses(layer, WORDS, match=message)


def test_strings_have_no_address():
    with pytest.raises(TypeError, match="strings have no address"):
        trt.Weights(trt.string, 1 << 20, 2)
    assert trt.Weights(trt.string).numpy().tolist() == []


def test_weight_files_have_no_strings(tmp_path):
    with pytest.raises(ValueError, match="buffer 'w' is string; the format has float32"):
        trt.wts.save(tmp_path / "text.wts", {"w": string_array(["a"])})


def test_other_layers_refuse_strings_with_a_finding():
    network, x = with_input(2)
    network.add_unary(x, trt.UnaryOperation.EXP)
    network.add_reduce(x, trt.ReduceOperation.SUM, 1, False)
    network.mark_output(network.add_identity(x).get_output(0))

    found = [finding for finding in trt.check(network) if finding.severity is trt.Severity.ERROR]
    assert [(finding.code, finding.what, finding.fix) for finding in found] == [
        ("NL401", "input 0 takes no string[2]", "convert texts that are numbers with add_cast")
    ] * 2


def test_sequences_of_strings_are_refused_like_strings():
    refuses(IStringSplitLayer(), TensorType(np.dtype(F)), match="must be of strings")
    network = trt.INetworkDefinition()
    network.add_string_split(network.add_sequence_input("s", S, (1,)))

    assert any("takes a tensor, not a sequence of string[1]" in finding.what for finding in trt.check(network))
    assert str(SequenceType(STRING)) == "sequence of string[...]"


def test_tensorrt_has_no_strings():
    network, x = with_input(1)
    mark(network, y=network.add_string_lookup(x, ["a"]).get_output(0))

    found = {finding.code: finding for finding in trt.check(network, target="tensorrt")}
    assert set(found) == {"NL402", "NL404"}
    assert found["NL402"].fix == "convert text outside of the network"
    assert "is a netloop extension for strings" in found["NL404"].what


def test_pure_functions_refuse_strings():
    network = trt.INetworkDefinition()
    text = network.add_cast(network.add_input("x", trt.float32, (1,)), S).get_output(0)
    mark(network, y=network.add_elementwise(text, texts(network, "1"), Op.EQUAL).get_output(0))
    function, weights = trt.to_jax(network)

    with pytest.raises(trt.NetworkError, match=r"NL503: .*ICastLayer with strings, which computes on the host"):
        function(weights, {"x": F([1])})


def test_pure_functions_refuse_inputs_of_strings():
    network, x = with_input(1)
    mark(network, y=network.add_identity(x).get_output(0))
    function, weights = trt.to_jax(network)

    with pytest.raises(trt.NetworkError, match="NL503: the input 'x' is string"):
        function(weights, {"x": ["a"]})


def test_contexts_refuse_strings():
    network, x = with_input(1)
    mark(network, y=network.add_identity(x).get_output(0))
    engine = trt.compile(network)

    with pytest.raises(trt.NetworkError, match=r"NL611: 'x' is string\[1\]"):
        engine.create_execution_context()


def test_openvino_refuses_strings():
    network, x = with_input(1)
    mark(network, y=network.add_identity(x).get_output(0))

    with pytest.raises(trt.NetworkError, match=r"NL732: .*OpenVINO has no tensors of string"):
        trt.openvino.to_model(network)


def test_debug_listener_gets_no_strings():
    network = trt.INetworkDefinition()
    text = network.add_cast(network.add_input("x", trt.int32, (1,)), S).get_output(0)
    number = network.add_cast(text, trt.int32).get_output(0)
    mark(network, y=number)
    for tensor in (text, number):
        network.mark_debug(tensor)
    engine = trt.compile(network)
    seen = []

    class Listener(trt.IDebugListener):
        def process_debug_tensor(self, addr, location, type, shape, name, stream):
            seen.append(type)
            return True

    context = engine.create_execution_context()
    context.set_debug_listener(Listener())
    for tensor in (text, number):
        context.set_tensor_debug_state(tensor.name, True)
    given, got = np.int32([5]), np.zeros(1, np.int32)
    context.execute_v2([given.ctypes.data, got.ctypes.data])

    assert (got.tolist(), seen) == ([5], [trt.int32])


def test_weights_that_are_strings_are_refitted():
    network, x = with_input(1)
    constant_layer = network.add_constant((1,), string_array(["old" * 100]))
    mark(network, y=network.add_string_concatenation(x, constant_layer.get_output(0)).get_output(0))
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, trt.Logger())

    assert engine({"x": [""]})["y"].tolist() == ["old" * 100]
    assert refitter.set_weights(constant_layer.name, trt.WeightsRole.CONSTANT, np.array(["new\0"], object))
    assert refitter.refit_cuda_engine()
    assert engine({"x": [""]})["y"].tolist() == ["new\0"]


def test_vocabulary_that_is_replaced_counts_at_once(network):
    layer = network.add_string_lookup(network.add_input("x", trt.string, (1,)), ["a", "b"])
    text = np.array(["b"], STRING)

    assert layer.host_value(text).tolist() == layer.host_value(text).tolist() == [1]
    layer.vocabulary = np.array(["b"], STRING)
    assert layer.host_value(text).tolist() == [0]


def test_pool_that_is_replaced_counts_at_once(network):
    layer = network.add_string_ngrams(network.add_input("x", trt.string, (2,)), ["a", "b"], [0])
    text = np.array(["b", "b"], STRING)

    assert layer.host_value(text).tolist() == layer.host_value(text).tolist() == [0, 2]
    layer.pool = np.array(["b", "a", "c"], STRING)
    assert layer.host_value(text).tolist() == [2, 0, 0]
