"""ONNX's operators on strings against onnxruntime, and hostile strings."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import netloop
from netloop import ModelError
from tests.support.onnx_models import model, of_node, runs, session_gives
from tests.support.onnx_runtime import export, run

PAIRS = np.array([["a", "b"], ["é\0", "long " * 20]], object)


NOT_SAVED = {"Slice", "Tile", "Expand", "Compress"}
"""Operators whose layers are not saved and run: of a row of strings, onnxruntime 1.32 gathers only the first."""


def words(*given):
    return np.array(given, object)


def index(*numbers):
    return np.array(numbers, np.int64)


def check(op, *arrays, **options):
    """Check that a node gives what it gives in onnxruntime, also when it is saved and loaded again."""
    made, given = of_node(op, *arrays, **options)
    network = netloop.onnx.load(made)
    expected = list(session_gives(made, given).values())
    for found in (netloop.compile(network)(given), netloop.evaluate(network, given)):
        for one, other in zip(found.values(), expected, strict=True):
            assert (one.dtype, one.shape, one.tolist()) == (other.dtype, other.shape, other.tolist())
    if not options.get("domain") and op not in NOT_SAVED:
        for one, other in zip(run(export(network), given).values(), expected, strict=True):
            assert one.tolist() == other.tolist()


# ---------------------------------------------------------------------------- operators that move elements


@pytest.mark.parametrize(
    ("op", "arrays", "options"),
    [
        ("Concat", [PAIRS, PAIRS], {"axis": 1}),
        ("Transpose", [PAIRS], {}),
        ("Reshape", [PAIRS, index(-1)], {}),
        ("Flatten", [PAIRS], {"axis": 0}),
        ("Gather", [PAIRS, index(-1, 0)], {"axis": 1}),
        ("GatherElements", [PAIRS, index(1, 0).reshape(1, 2)], {}),
        ("GatherND", [PAIRS, index(1, 1).reshape(1, 2)], {}),
        ("ScatterElements", [PAIRS, index(1, 0).reshape(1, 2), words(["u", "v"])], {}),
        ("ScatterND", [PAIRS, index(1).reshape(1, 1), words(["u", "v"])], {}),
        ("Slice", [PAIRS, index(0), index(2), index(1), index(2)], {}),
        ("Split", [PAIRS], {"outputs": 2, "num_outputs": 2}),
        ("Squeeze", [PAIRS[:1]], {}),
        ("Unsqueeze", [PAIRS, index(1)], {}),
        ("Tile", [PAIRS, index(2, 1)], {}),
        ("Expand", [PAIRS, index(3, 1, 2)], {}),
        ("Identity", [PAIRS], {}),
        ("Shape", [PAIRS], {}),
        ("Size", [PAIRS], {}),
        ("Compress", [PAIRS, np.array([False, True])], {"axis": 0}),
        ("Where", [np.array([True, False]), PAIRS, PAIRS[::-1]], {}),
        ("Equal", [PAIRS, words("a", "x")], {}),
        ("Unique", [words("b", "é", "a", "b")], {"outputs": 4}),
        ("Unique", [words("b", "é", "a", "b")], {"outputs": 4, "sorted": 0}),
        ("ReverseSequence", [PAIRS, index(1, 2)], {}),
        ("OneHot", [index(0, 2), index(3), words("off", "on")], {}),
        ("Cast", [words("1.5", "-INF", "1e-3")], {"to": TensorProto.FLOAT}),
        ("Cast", [words("100.5", "-7")], {"to": TensorProto.INT64}),
        ("Cast", [np.float32([1.5, -np.inf, 3.14])], {"to": TensorProto.STRING}),
        ("Cast", [np.array([True, False])], {"to": TensorProto.STRING}),
        ("CastLike", [index(1, 2), PAIRS], {}),
    ],
    ids=lambda name: name if isinstance(name, str) else "",
)
def test_operator_moves_strings_as_onnxruntime_does(op, arrays, options):
    check(op, *arrays, **options)


# ---------------------------------------------------------------------------- operators on strings


@pytest.mark.parametrize("shapes", [((2, 1), (1, 3)), ((), ()), ((3,), (2, 3)), ((0,), (1,))], ids=str)
def test_strings_are_concatenated(shapes):
    arrays = [np.full(shape, f"é{number}\0", object) for number, shape in enumerate(shapes)]

    check("StringConcat", *arrays, opset=20)


@pytest.mark.parametrize("options", [{}, {"delimiter": ""}, {"delimiter": "--"}, {"delimiter": "é", "maxsplit": 1}])
def test_strings_are_split(options):
    """At spaces only: onnxruntime 1.32 takes no other white space for white space, against the standard."""
    check("StringSplit", words("a--b  c", "", "éé", " x "), opset=20, outputs=2, **options)


def test_strings_are_split_at_any_white_space():
    """As the standard says, and Python splits."""
    made, given = of_node("StringSplit", words("a\tb\n c"), opset=20, outputs=2)

    assert [array.tolist() for array in runs(made, given)] == [[["a", "b", "c"]], [3]]


@pytest.mark.parametrize("case", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stopwords", [None, ["monday", "É"], ["Monday", "é", "İ", "ΣΑΣ", "ß"]])
@pytest.mark.parametrize("batch", [False, True])
def test_strings_are_normalized(case, sensitive, stopwords, batch):
    given = words("Monday", "é", "ß", "İ", "ΣΑΣ", "ǅ")
    options = {} if stopwords is None else {"stopwords": stopwords}
    made, given = of_node(
        "StringNormalizer", given[None] if batch else given, case_change_action=case, is_case_sensitive=sensitive,
        locale="C.UTF-8", **options,
    )  # fmt: skip

    assert [array.tolist() for array in runs(made, given)] == [
        give.tolist() for give in session_gives(made, given).values()
    ]


@pytest.mark.parametrize("seed", range(12))
def test_grams_are_counted(seed):
    chance = random.Random(seed)
    vocabulary = ["a", "b", "é", ""]
    lengths = range(1, chance.randint(2, 4))
    grams = [{tuple(chance.choices(vocabulary, k=n)) for _ in range(3)} for n in lengths]
    starts = [
        sum(len(gram) * n for n, gram in zip(lengths, grams[:before], strict=False)) for before in range(len(grams))
    ]
    count = sum(map(len, grams))
    places = chance.sample(range(2 * count), count)
    x = np.array(chance.choices(vocabulary, k=12), object).reshape(chance.choice([(12,), (2, 6)]))

    check(
        "TfIdfVectorizer", x, mode=chance.choice(["TF", "IDF", "TFIDF"]), min_gram_length=chance.choice(lengths[:2]),
        max_gram_length=lengths[-1], max_skip_count=chance.randint(0, 2), ngram_counts=starts, ngram_indexes=places,
        pool_strings=[name for group in grams for gram in sorted(group) for name in gram],
        weights=[chance.randint(1, 9) / 2 for _ in range(count)],
    )  # fmt: skip


TOKENS = {"domain": "com.microsoft", "opset": 1, "mark": 0, "mincharnum": 1, "pad_value": "#"}


@pytest.mark.parametrize(
    "options",
    [
        {"separators": [" "]}, {"separators": [" ", "[,;]+"]}, {"separators": [""]},
        {"separators": ["a|ab"], "mark": 1}, {"separators": [r"\s"], "mincharnum": 2},
        {"tokenexp": "[a-z]+"}, {"tokenexp": "a|ab", "mark": 1}, {"tokenexp": "."},
        {"tokenexp": r"\w\w", "mark": 1, "mincharnum": 3}, {"separators": ["b"], "tokenexp": "a"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("batch", [False, True])
def test_strings_are_tokenized(options, batch):
    given = words("one,two;  three", "", "abé\nxab b")

    check("Tokenizer", given[None] if batch else given, **TOKENS | options)


def test_constants_are_strings():
    text = """
    g (string[N] x) => (string y, string[m] z) {
        y = Constant <value_string = "one"> ()
        k = Constant <value_strings = ["two", "three"]> ()
        z = Concat <axis = 0> (k, x)
    }
    """

    y, z = runs(model(text), {"x": words("é")})
    assert (y.tolist(), z.tolist()) == ("one", ["two", "three", "é"])


# ---------------------------------------------------------------------------- loops, conditionals, sequences


LOOP = """
g (string[k] x, int64 n) => (string last, string[m] rows) {
    true = Constant <value = bool {1}> ()
    first = Constant <value_string = ">"> ()
    last, rows = Loop (n, true, first) <body = b (int64 i, bool c, string s) => (bool d, string t, string r) {
        d = Identity (c)
        r = Gather <axis = 0> (x, i)
        t = StringConcat (s, r)
    }>
}
"""

SCAN = """
g (string[k] x) => (string last, string[k] rows) {
    first = Constant <value_string = ""> ()
    last, rows = Scan <num_scan_inputs = 1, body = b (string s, string e) => (string t, string r) {
        t = StringConcat (s, e)
        r = Identity (t)
    }> (first, x)
}
"""

SEQUENCE = """
g (string[k] x, bool c) => (seq(string) s, string[m] y, int64 n) {
    parts = SplitToSequence <axis = 0, keepdims = 1> (x)
    s = SequenceInsert (parts, x)
    zero = Constant <value_int = 0> ()
    y = SequenceAt (s, zero)
    n = SequenceLength (s)
}
"""

BRANCH = """
g (string[k] x, bool c) => (string[k] y) {
    y = If (c) <then_branch = t () => (string[k] a) { a = Identity (x) },
                else_branch = e () => (string[k] b) { b = StringConcat (x, x) }>
}
"""


def plain(value):
    return [plain(element) for element in value] if isinstance(value, list) else np.asarray(value).tolist()


@pytest.mark.parametrize(
    ("text", "others"),
    [(LOOP, {"n": np.int64(3)}), (SCAN, {}), (SEQUENCE, {"c": np.array(True)}), (BRANCH, {"c": np.array(False)})],
    ids=["loop", "scan", "sequence", "branch"],
)
def test_graph_carries_strings_as_in_onnxruntime(text, others):
    given = {"x": words("a", "é", "c"), **others}
    made = model(text)
    expected = {name: plain(give) for name, give in session_gives(made, given).items()}

    network = netloop.onnx.load(made)
    for found in (netloop.compile(network)(given), netloop.evaluate(network, given)):
        assert {name: plain(array) for name, array in found.items()} == expected
    assert {name: plain(array) for name, array in run(export(network), given).items()} == expected


# ---------------------------------------------------------------------------- hostile models


def with_initializer(tensor):
    output = helper.make_tensor_value_info("y", TensorProto.STRING, None)
    graph = helper.make_graph([helper.make_node("Identity", ["s"], ["y"])], "g", [], [output], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def strings(*data, dims=None):
    return TensorProto(name="s", data_type=TensorProto.STRING, dims=dims or [len(data)], string_data=data)


def test_string_that_is_no_utf8_is_refused():
    with pytest.raises(ModelError, match="a string is not valid UTF-8"):
        netloop.onnx.load(with_initializer(strings(b"a", b"\xff")))


def test_surrogates_in_a_model_are_refused():
    with pytest.raises(ModelError, match="a string is not valid UTF-8"):
        netloop.onnx.load(with_initializer(strings(b"\xed\xa0\x80")))


def test_attribute_that_is_no_utf8_is_refused():
    made, _ = of_node("RegexFullMatch", words("a"), opset=20, pattern="a")
    made.graph.node[0].attribute[0].s = b"\xff"

    with pytest.raises(ModelError, match="a string is not valid UTF-8"):
        netloop.onnx.load(made)


@pytest.mark.parametrize("dims", [[1], [3], [2, 2], [1 << 50]], ids=str)
def test_strings_that_do_not_fill_the_shape_are_refused(dims):
    with pytest.raises(ModelError, match="the tensor has"):
        netloop.onnx.load(with_initializer(strings(b"a", b"b", dims=dims)))


def test_raw_bytes_are_no_strings():
    tensor = TensorProto(name="s", data_type=TensorProto.STRING, dims=[2], raw_data=b"ab")

    with pytest.raises(ModelError, match=r"the tensor has 0 strings, and the shape \(2,\)"):
        netloop.onnx.load(with_initializer(tensor))


def test_nothing_is_read_from_a_file_of_strings(tmp_path):
    tensor = TensorProto(name="s", data_type=TensorProto.STRING, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="pickle")
    path = tmp_path / "model.onnx"
    path.write_bytes(with_initializer(tensor).SerializeToString())

    with pytest.raises(ModelError, match="the tensor has 0 strings"):
        netloop.onnx.load(path)


def test_long_string_and_one_with_a_nul_are_kept():
    text = b"x" * (1 << 22) + b"\0"

    network = netloop.onnx.load(with_initializer(strings(text, b"")))
    saved = onnx.ModelProto.FromString(netloop.onnx.to_model(network).SerializeToString())
    for definition in (network, netloop.onnx.load(saved)):
        assert netloop.compile(definition)({})["y"].tolist() == [text.decode(), ""]


def test_long_strings_that_differ_are_saved_one_by_one():
    network = netloop.INetworkDefinition()
    for end in "ab":
        network.mark_output(network.add_constant((1,), words("x" * 100 + end)).get_output(0))

    saved = netloop.onnx.to_model(network)
    assert [initializer.string_data[0][-1:] for initializer in saved.graph.initializer] == [b"a", b"b"]


def test_column_far_away_is_refused():
    made, _ = of_node(
        "TfIdfVectorizer", words("a"), mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
        ngram_counts=[0], ngram_indexes=[1 << 40], pool_strings=["a"],
    )  # fmt: skip

    with pytest.raises(ModelError, match="ngram_indexes"):
        netloop.onnx.load(made)


@pytest.mark.parametrize(
    ("op", "options", "message"),
    [
        ("StringNormalizer", {"case_change_action": "TITLE"}, "case_change_action is 'TITLE'"),
        ("RegexFullMatch", {"opset": 20}, "pattern"),
        ("RegexFullMatch", {"opset": 20, "pattern": "(?=a)"}, "has a group that RE2 does not have"),
        ("StringSplit", {"opset": 20, "maxsplit": -1, "outputs": 2}, "max_splits is -1"),
        ("Tokenizer", {**TOKENS}, "either separators or token must be given"),
        ("Exp", {}, r"input 0 takes no string\[1\]"),
        ("ReduceMax", {}, r"takes no string\[1\]"),
    ],
)
def test_node_that_means_nothing_is_refused(op, options, message):
    made, _ = of_node(op, words("a"), **options)

    with pytest.raises(ModelError, match=message):
        netloop.onnx.load(made)
