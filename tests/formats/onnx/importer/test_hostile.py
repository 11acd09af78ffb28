"""Damaged and malicious models: each is refused with a ModelError, in bounded time and memory."""

import contextlib
import os
import random
import time
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import netloop
from netloop import ModelError, ModelWarning
from tests.support.onnx_models import model, of_node

ADD = "g (float[2] x) => (float[2] y) { y = Add (x, w) }"


def refused(given, **options):
    """The findings of a model that is refused."""
    with pytest.raises(ModelError) as caught:
        netloop.onnx.load(given, **options)
    return [(finding.code, finding.what) for finding in caught.value.findings]


def external(location, **entries):
    """A model that adds a tensor from a file."""
    made = model(ADD)
    tensor = made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return made


@pytest.fixture
def folder(tmp_path):
    """A folder with a model's files, next to a secret."""
    (tmp_path / "secret.bin").write_bytes(bytes(8))
    (tmp_path / "model" / "inner").mkdir(parents=True)
    (tmp_path / "model" / "w.bin").write_bytes(np.float32([5, 6, 7]).tobytes())
    return tmp_path / "model"


# ---------------------------------------------------------------------------- files


def test_tensor_in_a_file_next_to_the_model_is_read(folder):
    (folder / "inner" / "w.bin").write_bytes(np.float32([1, 5, 6]).tobytes())
    onnx.save(external("inner/w.bin", offset=4, length=8, checksum="any"), folder / "model.onnx")

    found = netloop.compile(netloop.onnx.load(folder / "model.onnx"))({"x": np.float32([1, 1])})

    assert found["y"].tolist() == [6, 7]


@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin",
        "inner/../../secret.bin",
        "inner/../w.bin",
        "/etc/passwd",
        "C:\\secret.bin",
        "C:secret.bin",
        "\\\\server\\share",
        "..\\secret.bin",
        "w.bin\0",
        "",
        ".",
        "inner",
        "missing.bin",
        "w.bin/more",
    ],
)
def test_location_that_leads_out_or_nowhere_is_refused(folder, location):
    ((code, _),) = refused(external(location), base_dir=folder)

    assert code == "NL743"


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_link_to_a_file_is_refused(folder, make):
    make(folder.parent / "secret.bin", folder / "linked.bin")

    assert refused(external("linked.bin"), base_dir=folder)[0][0] == "NL743"


def test_link_to_a_folder_is_refused(folder):
    os.symlink(folder.parent, folder / "up")

    assert refused(external("up/secret.bin"), base_dir=folder)[0][0] == "NL743"


def test_pipe_is_refused_without_waiting(folder):
    os.mkfifo(folder / "pipe")

    assert refused(external("pipe"), base_dir=folder)[0][0] == "NL743"


@pytest.mark.parametrize(
    "entries",
    [
        {"length": 1 << 62},
        {"length": 4},
        {"length": "9" * 400},
        {"length": -8},
        {"offset": 8},
        {"offset": "1 << 3"},
        {"offset": 1 << 62},
        {"__class__": "x"},
    ],
)
def test_part_that_the_file_does_not_have_is_refused(folder, entries):
    assert refused(external("w.bin", **entries), base_dir=folder)[0][0] == "NL743"


def test_model_in_memory_reads_no_files_without_a_folder():
    assert refused(external("w.bin").SerializeToString())[0] == (
        "NL743",
        "the tensor is in a file, and the model is not",
    )


def test_tensor_of_a_node_in_a_branch_reads_no_other_files_either(folder):
    made = model("""
      g (bool c) => (float[2] y) { y = If (c) <
        then_branch = a () => (t) { t = Constant <value = float[2] {1, 2}> () },
        else_branch = b () => (e) { e = Constant <value = float[2] {1, 2}> () }
      > }
    """)
    branch = made.graph.node[0].attribute[0].g
    branch.node[0].attribute[0].t.CopyFrom(external("../secret.bin").graph.initializer[0])

    assert refused(made, base_dir=folder)[0][0] == "NL743"


# ---------------------------------------------------------------------------- tensors


@pytest.mark.parametrize(
    "changes",
    [
        {"dims": [10**6, 10**6]},
        {"dims": [-2]},
        {"dims": [3]},
        {"dims": [2], "raw_data": b"1234567"},
        {"dims": [2], "float_data": [1.0, 2.0, 3.0], "raw_data": None},
        {"dims": [1 << 40, 0, 1 << 40], "raw_data": b"x"},
        {"data_type": 999},
        {"data_type": TensorProto.STRING},
    ],
)
def test_tensor_whose_shape_and_data_do_not_fit_is_refused(changes):
    made = model(ADD)
    made.graph.initializer.append(numpy_helper.from_array(np.float32([1, 2]), "w"))
    tensor = made.graph.initializer[0]
    for name, value in changes.items():
        tensor.ClearField(name)
        if isinstance(value, list):
            getattr(tensor, name).extend(value)
        elif value is not None:
            setattr(tensor, name, value)

    assert refused(made)


def test_sparse_tensor_is_made_dense():
    made = model(ADD)
    values = numpy_helper.from_array(np.float32([5]), "w")
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.int64([1]), "i"), [2])
    )

    assert netloop.evaluate(netloop.onnx.load(made), {"x": np.float32([1, 1])})["y"].tolist() == [1, 6]


@pytest.mark.parametrize(("index", "dims"), [(7, [2]), (-1, [2]), (0, [10**8, 10**8]), (0, [1 << 33])])
def test_sparse_tensor_that_does_not_fit_is_refused(index, dims):
    made = model(ADD)
    values = numpy_helper.from_array(np.float32([5]), "w")
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.int64([index]), "i"), dims)
    )

    assert refused(made)


# ---------------------------------------------------------------------------- functions and graphs


def with_functions(*bodies):
    """A model that calls the first of some functions, each given as a name and its nodes."""
    made = model("g (float[2] x) => (float[2] y) { y = my.first (x) }")
    made.opset_import.add(domain="my", version=1)
    for name, nodes in bodies:
        text = f'<domain: "my", opset_import: ["" : 21, "my" : 1]> {name} (a) => (b) {{ {nodes} }}'
        made.functions.append(onnx.parser.parse_function(text))
    return made


def test_function_that_calls_itself_is_refused():
    assert refused(with_functions(("first", "b = my.first (a)"))) == [
        ("NL741", "functions call themselves: first <- first")
    ]


def test_functions_that_call_each_other_through_a_branch_are_refused():
    branch = """
    c = Constant <value = bool {1}> ()
    b = If (c) < then_branch = t () => (d) { d = my.first (a) }, else_branch = e () => (d) { d = Neg (a) } >
    """

    ((code, what),) = refused(with_functions(("first", "b = my.second (a)"), ("second", branch)))

    assert (code, what[:25]) == ("NL741", "functions call themselves")


def test_functions_that_double_each_other_are_refused_at_once():
    names = ["first", *(f"f{number}" for number in range(60)), "last"]
    bodies = [(name, f"c = my.{after} (a) b = my.{after} (c)") for name, after in pairwise(names)]

    ((code, what),) = refused(with_functions(*bodies, ("last", "b = Neg (a)")))

    assert code == "NL741"
    assert what.startswith("the model expands to")


def test_functions_of_one_name_are_refused():
    assert refused(with_functions(("first", "b = Neg (a)"), ("first", "b = Abs (a)"))) == [
        ("NL745", "the function my:first is defined twice")
    ]


def test_functions_in_functions_go_only_so_deep():
    names = ["first", *(f"f{number}" for number in range(60)), "last"]
    bodies = [(name, f"b = my.{after} (a)") for name, after in pairwise(names)]

    ((code, what),) = refused(with_functions(*bodies, ("last", "b = Neg (a)")))

    assert code == "NL741"
    assert what.startswith("graphs and functions are nested more than 32 deep")


# ---------------------------------------------------------------------------- names, nodes, versions


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("g (float[2] x, float[2] x) => (float[2] y) { y = Neg (x) }", "NL104"),
        ("g (float[2] x) => (float[2] y) { y = Neg (x) y = Abs (x) }", "NL745"),
        ("g (float[2] x) => (float[2] y) { y = Neg (z) z = Neg (y) }", "NL745"),
        ("g (float[2] x) => (float[2] y) { y = Add (x, y) }", "NL745"),
        ("g (float[2] x) => (float[2] y) { z = Neg (x) }", "NL745"),
        ("g (float[2] x) => (float[2] y) { y = Add (x) }", "NL401"),
        ("g (float[2] x) => (float[2] y) { y = Add (x, ) }", "NL401"),
        ("g (float[2] x) => (float[2] y) { y = Neg <axis = 1> (x) }", "NL401"),
        ("g (float[2] x) => (float[2] y) { y = Transpose <perm = 3> (x) }", "NL401"),
        ("g (float[2] x) => (float[2] y) { y = Transpose <perm = [7]> (x) }", "NL401"),
        ("g (float[2] x) => (float[2] y) { y = Cast <to = 77> (x) }", "NL746"),
        ("g (complex64[2] x) => (complex64[2] y) { y = Identity (x) }", "NL746"),
        ("g (float x) => (float y) { y, z = Identity (x) }", "NL401"),
        ("g (seq(seq(float)) x) => (seq(seq(float)) y) { y = Identity (x) }", "NL746"),
    ],
)
def test_graph_that_says_nothing_is_refused(text, code):
    assert code in [found for found, _ in refused(model(text))]


@pytest.mark.parametrize(("field", "value"), [("ir_version", 99), ("version", 0), ("version", -1)])
def test_version_that_nobody_knows_is_refused(field, value):
    made = model("g (float[2] x) => (float[2] y) { y = Neg (x) }")
    setattr(made if field == "ir_version" else made.opset_import[0], field, value)

    assert refused(made)


@pytest.mark.parametrize("given", [None, 3, ["model.onnx"], object()])
def test_what_is_no_model_at_all_is_a_type_error(given):
    with pytest.raises(TypeError, match="a model is a path"):
        netloop.onnx.load(given)


@pytest.mark.parametrize("path", ["missing.onnx", ".", "\0"])
def test_path_that_cannot_be_read_is_refused(path):
    assert refused(path)[0][0] == "NL741"


def test_names_are_any_text():
    made = model("g (float[2] x) => (float[2] y) { y = Neg (x) }")
    made.graph.node[0].name = made.graph.node[0].input[0] = made.graph.input[0].name = "/a b:%s{0}.class\n1é"

    network = netloop.onnx.load(made)

    assert network.inputs[0].name == network[0].name == "/a b:%s{0}.class\n1é"


def test_damaged_bytes_are_refused_or_mean_something():
    rng = random.Random(0)
    whole = model(
        "g (float[2] x, bool c) => (float[2] y) { w = Constant <value = float[2] {1, 2}> () "
        "z = If (c) < then_branch = a () => (t) { t = Add (x, w) }, else_branch = b () => (e) { e = Neg (x) } > "
        "n = Constant <value_int = 3> () y = Loop (n, c, z) < body = l (i, g, v) => (g, u) { u = Mul (v, w) } > }"
    ).SerializeToString()
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(ModelError, ModelWarning):
            netloop.onnx.load(bytes(damaged))


# ---------------------------------------------------------------------------- large numbers of small things


def test_domains_and_functions_are_compared_in_linear_time():
    made = model(ADD)
    for number in range(30_000):
        made.opset_import.add(domain=f"d{number}", version=1)
        made.functions.add(domain="f", name=f"f{number}")
    made.opset_import.add(domain="d7", version=2)
    made.functions.add(domain="f", name="f7")
    before = time.process_time()

    assert [what for _, what in refused(made)] == [
        "the function f:f7 is defined twice",
        "the model imports the operators of 'd7' in the versions 1 and 2",
    ]
    assert time.process_time() - before < 10


@pytest.mark.parametrize("end", ["input", "output"])
def test_too_many_inputs_or_outputs_are_refused(end):
    made = model("g (float[2] x) => (float[2] y) { y = Identity (x) }")
    for number in range(10_000):
        getattr(made.graph, end).add().CopyFrom(helper.make_tensor_value_info(f"v{number}", TensorProto.FLOAT, [2]))

    ((code, what),) = refused(made)
    assert code == "NL741"
    assert what.endswith("and may have 10000 of each")


# ---------------------------------------------------------------------------- large numbers


IMAGE = np.ones((1, 2, 4, 4), np.float32)
MOST = 2**63 - 1
EXTREMES = [
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "dilations": [MOST, 1], "auto_pad": "SAME_UPPER"}, "dilation_nd is"),
    ("AveragePool", [IMAGE], {"kernel_shape": [2, 2], "strides": [MOST, 1]}, "stride_nd is"),
    ("Conv", [IMAGE, np.ones((2, 2, 1, 1), np.float32)], {"pads": [0, MOST, 0, 0]}, "pre_padding is"),
    ("LpPool", [IMAGE], {"kernel_shape": [2, 2], "p": 0}, "p is 0, but must be positive"),
    (
        "Col2Im",
        [np.ones((1, 5, 5), np.float32), np.array([5, 5]), np.array([1, 5])],
        {"dilations": [1]},
        "strides are [1, 1], dilations [1], but must have 2 numbers each",
    ),
    (
        "RoiAlign",
        [IMAGE, np.ones((1, 4), np.float32), np.zeros(1, np.int64)],
        {"sampling_ratio": 2**31},
        "sampling_ratio is 2147483648, but must be at most 1024",
    ),
    (
        "TfIdfVectorizer",
        [np.ones((1, 5), np.int32)],
        {
            "mode": "TF",
            "min_gram_length": 2,
            "max_gram_length": 2,
            "max_skip_count": MOST,
            "ngram_counts": [0, 0],
            "ngram_indexes": [0],
            "pool_int64s": [1, 2],
        },
        "max_skip_count is 9223372036854775807, but must be at most 1024",
    ),
]


@pytest.mark.parametrize(
    ("operator", "arrays", "attributes", "what"), EXTREMES, ids=[extreme[0] for extreme in EXTREMES]
)
def test_extreme_numbers_of_operators_are_refused(operator, arrays, attributes, what):
    made, _ = of_node(operator, *arrays, **attributes)

    assert what in refused(made)[0][1]


LONG_LISTS = [
    "ConstantOfShape (e)",
    "Expand (x, e)",
    "Reshape (x, e)",
    "Tile (x, e)",
    "Pad (x, e)",
    "Pad (x, p, , e)",
    "Slice (x, e, e, e)",
    "Unsqueeze (x, e)",
    "Squeeze (x, e)",
    "ReduceSum (x, e)",
    "Resize (x, , , e)",
    "Split <num_outputs = 1> (x, e)",
    "CenterCropPad (x, e)",
    "AffineGrid (t, e)",
    "Col2Im (t, e, e)",
    "MaxUnpool <kernel_shape = [1, 1]> (q, i, e)",
    "RandomNormalLike (z)",
]


@pytest.mark.parametrize("call", LONG_LISTS)
def test_lists_of_axes_that_are_computed_and_too_long_are_refused_at_once(call):
    """The list has 10^10 elements, and its bytes are in no file: nothing may be made for each of them."""
    made = model(
        "g (float[2] x, int64[1] k, float[1,2,3] t, float[1,1,1,1] q, int64[1,1,1,1] i) => (float[N] y) { "
        "r = Constant <value_ints = [10000000000]> () e = Expand (k, r) "
        "s = Constant <value_ints = [20000000000]> () p = Expand (k, s) z = ConstantOfShape (e) "
        f"y = {call} }}"
    )
    before = time.process_time()

    assert "10000000000" in refused(made)[0][1] or "20000000000" in refused(made)[0][1]
    assert time.process_time() - before < 2


MANY = 1 << 33


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "what"),
    [
        ("LpPool", [(1, 1, 4, 4)], {"kernel_shape": [2**14, 2**14]}, "the windows have 268435456 elements"),
        (
            "RoiAlign",
            [(1, 2, 4, 4), (1, 4), (1,)],
            {"output_height": MANY, "output_width": 1, "sampling_ratio": 1},
            "a region has 8589934592 x 1 cells",
        ),
        (
            "DeformConv",
            [(1, 1, 4, 4), (1, 1, 2**15, 2**15), (1, 2**31, 1, 1)],
            {},
            "the kernel has 1073741824 taps",
        ),
    ],
)
def test_windows_and_grids_beyond_memory_are_refused(operator, shapes, attributes, what):
    inputs = [
        helper.make_tensor_value_info(f"x{index}", TensorProto.INT64 if len(shape) == 1 else TensorProto.FLOAT, shape)
        for index, shape in enumerate(shapes)
    ]
    node = helper.make_node(operator, [info.name for info in inputs], ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])

    assert what in refused(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))[0][1]


def test_pairs_of_classes_beyond_the_file_are_refused_at_once():
    classes = 40_000  # 800 million pairs
    made, _ = of_node(
        "SVMClassifier",
        np.ones((1, 1), np.float32),
        outputs=2,
        domain="ai.onnx.ml",
        opset=1,
        classlabels_ints=[*range(classes)],
        vectors_per_class=[1, *[0] * (classes - 1)],
        support_vectors=[1.0],
        coefficients=[1.0] * (classes - 1),
        rho=[0.0],
        kernel_type="LINEAR",
        kernel_params=[1.0, 0.0, 1.0],
    )
    before = time.process_time()

    assert refused(made)[0][1] == "rho has 1 numbers, but must have 799980000"
    assert time.process_time() - before < 2


def test_number_of_targets_beyond_memory_is_refused():
    """Leaves of trees are imported as an array of a number for each leaf and target."""
    trees = {
        "n_targets": 2**39,
        "nodes_splits": numpy_helper.from_array(np.array([0.0])),
        "nodes_featureids": [0],
        "nodes_modes": numpy_helper.from_array(np.zeros(1, np.uint8)),
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 1],
        "leaf_weights": numpy_helper.from_array(np.array([1.0, 2.0])),
        "tree_roots": [0],
    }
    made, _ = of_node("TreeEnsemble", np.ones((1, 1)), domain="ai.onnx.ml", opset=5, **trees)

    assert refused(made)[0][1] == "there are 549755813888 targets for 2 leaves"


# ---------------------------------------------------------------------------- many outputs


@pytest.mark.parametrize("sizes", ["num_outputs", "split"])
def test_split_into_thousands_of_parts_is_a_slice_for_each(sizes):
    count = 3000  # more sizes than known values have elements
    names = [f"part{index}" for index in range(count)]
    lengths = helper.make_tensor("lengths", TensorProto.INT64, [count], [1] * count)
    given = {"num_outputs": count} if sizes == "num_outputs" else {}
    split = helper.make_node("Split", ["x"] if given else ["x", "lengths"], names, **given)
    back = helper.make_node("Concat", names[::-1], ["y"], axis=0)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [count])
    graph = helper.make_graph([split, back], "g", [x], [helper.make_empty_tensor_value_info("y")], [lengths])
    before = time.process_time()
    network = netloop.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))

    assert time.process_time() - before < 5
    assert network.num_layers == count + 1
    assert network.outputs[0].shape == (count,)


@pytest.mark.parametrize(
    ("length", "count", "expected"), [(7, 3, [3, 3, 1]), (6, 3, [2, 2, 2]), (3, 4, [1, 1, 1, 0]), (0, 2, [0, 0])]
)
def test_split_is_even_except_at_the_end(length, count, expected):
    """As in onnxruntime, each part has the length divided by the number of parts, rounded up, as long as it lasts."""
    network = netloop.onnx.load(of_node("Split", np.zeros(length, np.float32), outputs=count, num_outputs=count)[0])

    assert [tensor.shape for tensor in network.outputs] == [(value,) for value in expected]
