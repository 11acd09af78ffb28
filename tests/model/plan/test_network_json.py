import copy
import json
import random

import pytest

import netloop as trt
from netloop import plan
from tests.support import networks
from tests.support import plan_forge as forge
from tests.support.plan_forge import put_together, refused

DOCUMENT, FILES = forge.taken_apart(plan.dumps(forge.small()))


def number_of(kind: str) -> int:
    return next(number for number, value in enumerate(DOCUMENT["layers"]) if value["kind"] == kind)


CONSTANT, RECURRENCE, LIMIT = number_of("IConstantLayer"), number_of("IRecurrenceLayer"), number_of("ITripLimitLayer")
CHOICE, CLIP, SHUFFLE = number_of("IConditionLayer"), number_of("IActivationLayer"), number_of("IShuffleLayer")
SUM = number_of("IElementWiseLayer")
WHOLE = "a whole number, found"


def at(*steps: str | int) -> str:
    """A place in the document as messages have it."""
    return "network.json: " + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)[1:]


# fmt: off
CHANGES = {
    "name is a number":         (("name",), 3,                                      "a string, found 3"),
    "negative flags":           (("flags",), -1,                                    "a number from 0"),
    "flags of 2^63":            (("flags",), 2**63,                                 "a number from 0"),
    "file is a number":         (("files", 0), 1,                                   "a string, found 1"),
    "layers are an object":     (("layers",), {},                                   "a list, found an object"),
    "layer is a list":          (("layers", 0), [],                                 "an object, found a list"),
    "other kind":               (("layers", 0, "kind"), "ILayer",                   "a kind of layer, found 'ILayer'"),
    "abstract kind":            (("layers", 0, "kind"), "Operation",                "a kind of layer"),
    "private kind":             (("layers", 0, "kind"), "__import__('os')",         "a kind of layer"),
    "long kind":                (("layers", 0, "kind"), "x" * 10**6,                "found 'xxxxxxxxxx"),
    "kind misspelt":            (("layers", SUM, "kind"), "IElementwiseLayer",      "did you mean 'IElem"),
    "kind is null":             (("layers", 0, "kind"), None,                       "a string, found null"),
    "unknown key":              (("layers", 0, "code"), "x",                        "has unknown keys 'code'"),
    "unknown attribute":        (("layers", CLIP, "attributes", "gamma"), 1.0,      "has unknown keys 'gamma'"),
    "attribute of objects":     (("layers", CLIP, "attributes", "__class__"), "x",  "has unknown keys '__class__'"),
    "unknown member":           (("layers", CLIP, "attributes", "type"), "MISH",    "the name of a ActivationType"),
    "member by number":         (("layers", CLIP, "attributes", "type"), 3,         "a string, found 3"),
    "member of another":        (("layers", LIMIT, "attributes", "kind"), "SUM",    "the name of a TripLimit"),
    "special name":             (("layers", CLIP, "attributes", "type"), "__len__", "the name of a ActivationType"),
    "float is whole":           (("layers", CLIP, "attributes", "beta"), 64,        "a number with a point, found 64"),
    "float is a word":          (("layers", CLIP, "attributes", "beta"), "NaN",     "a number with a point"),
    "float is a bool":          (("layers", CLIP, "attributes", "beta"), True,      "a number with a point"),
    "shape is a number":        (("layers", SHUFFLE, "attributes", "reshape_dims"), 3,        "a list, found 3"),
    "shape of floats":          (("layers", SHUFFLE, "attributes", "reshape_dims"), [1.0],    f"{WHOLE} 1.0"),
    "shape of bools":           (("layers", SHUFFLE, "attributes", "reshape_dims"), [True],   f"{WHOLE} true"),
    "shape of 9 axes":          (("layers", SHUFFLE, "attributes", "reshape_dims"), [1] * 9,  "at most 8 axes"),
    "flag is 1":                (("layers", SHUFFLE, "attributes", "zero_is_placeholder"), 1, "or false, found 1"),
    "no such loop":             (("layers", RECURRENCE, "attributes", "loop"), 1,   "a loop, of which there are 1"),
    "loop before the first":    (("layers", RECURRENCE, "attributes", "loop"), -1,  "a loop, of which there are 1"),
    "no such conditional":      (("layers", CHOICE, "attributes", "conditional"), 9, "a conditional, of which"),
    "no such array":            (("layers", CONSTANT, "attributes", "weights"), 99, "an array, of which there are 3"),
    "array is null":            (("layers", CONSTANT, "attributes", "weights"), None, f"{WHOLE} null"),
    "metadata is a list":       (("layers", 0, "metadata"), [],                     "a string, found a list"),
    "ranks are many":           (("layers", 0, "num_ranks"), 2**64,                 "a number from"),
    "no such layer":            (("layers", SUM, "inputs", 0), [999, 0],            "a layer, of which there are"),
    "no such output":           (("layers", SUM, "inputs", 0), [0, 1],              "an output, of which there are 1"),
    "output of a limit":        (("layers", SUM, "inputs", 0), [LIMIT, 0],          "an output, of which there are 0"),
    "no such input":            (("layers", SUM, "inputs", 0), [-1, 1],             "an input, of which there are 1"),
    "before the first":         (("layers", SUM, "inputs", 0), [-2, 0],             "a layer, of which there are"),
    "no pair":                  (("layers", SUM, "inputs", 0), [0],                 "a list of 2 elements, found 1"),
    "reference is a number":    (("layers", SUM, "inputs", 0), 0,                   "a list, found 0"),
    "too many inputs":          (("layers", SUM, "inputs"), [[-1, 0]] * 3,          "3 inputs, and its kind takes 2"),
    "too few inputs":           (("layers", SUM, "inputs"), [[-1, 0]],              "1 inputs, and its kind takes 2"),
    "an input too many":        (("layers", RECURRENCE, "inputs"), [None] * 3,      "its kind takes up to 2"),
    "no outputs":               (("layers", SUM, "outputs"), [],                    "has 0 outputs, its kind 1"),
    "output of a limit, made":  (("layers", LIMIT, "outputs"), [{"name": "x"}],     "has 1 outputs, its kind 0"),
    "no such file":             (("layers", 0, "place"), [9, 3],                    "a file, of which there are"),
    "negative line":            (("layers", 0, "place"), [0, -3],                   "a number from 0"),
    "loop without a name":      (("loops", 0), {"place": [0, 0]},                   "lacks 'name'"),
    "name of 5000 bytes":       (("inputs", 0, "name"), "é" * 2500,                 "at most 4095 bytes"),
    "name that is no text":     (("inputs", 0, "name"), "\ud800",                   "half of a surrogate pair"),
    "input of numpy's type":    (("inputs", 0, "dtype"), "float32",                 "the name of a DataType"),
    "input of 9 axes":          (("inputs", 0, "shape"), [1] * 9,                   "has 9 axes"),
    "location elsewhere":       (("inputs", 0, "location"), "DISK",                 "the name of a TensorLocation"),
    "axis has two names":       (("inputs", 0, "dimension_names"), [[0, "a"], [0, "b"]], "axis 0 has two names"),
    "names are an object":      (("inputs", 0, "dimension_names"), {"0": "a"},      "a list, found an object"),
    "marked twice":             (("outputs",), [[-1, 0], [-1, 0]],                  "marked as an output twice"),
    "output of nothing":        (("outputs", 0), None,                              "a list, found null"),
    "array of 10^12":           (("arrays", 0, "shape"), [10**12],                  "the file does not fit the array"),
    "array of 10^36":           (("arrays", 0, "shape"), [10**12] * 3,              "the file does not fit the array"),
    "array of length -1":       (("arrays", 0, "shape"), [-1],                      "a number from 0"),
    "array of 10^5 axes":       (("arrays", 0, "shape"), [1] * 10**5,               "an array has at most 64"),
    "array of another type":    (("arrays", 0, "dtype"), "INT64",                   "the file does not fit the array"),
    "array of objects":         (("arrays", 0, "dtype"), "OBJECT",                  "the name of a DataType"),
    "array less":               (("arrays",), [],                                   "expected 3 arrays, found 0"),
}
# fmt: on


def with_change(place: tuple[str | int, ...], value: object) -> dict[str, object]:
    document = copy.deepcopy(DOCUMENT)
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return document


@pytest.mark.parametrize("name", CHANGES)
def test_hostile_document_is_refused(name):
    place, value, what = CHANGES[name]

    finding = refused(put_together(with_change(place, value), FILES))

    assert what in finding.what
    assert len(finding.what) < 300
    assert finding.code == "NL713"
    assert finding.where.startswith(at(*place[:2])) or finding.where == "network.json"


def test_message_names_the_place_in_the_document():
    document = with_change(("layers", CLIP, "attributes", "beta"), "much")

    assert str(refused(put_together(document, FILES))) == (
        "NL713: expected a number with a point, found 'much'\n"
        f"  at network.json: layers[{CLIP}].attributes.beta\n"
        "  because netloop does not write such plans"
    )


@pytest.mark.parametrize("key", DOCUMENT)
def test_what_is_missing_is_told(key):
    document = {name: value for name, value in DOCUMENT.items() if name != key}

    assert refused(put_together(document, FILES)).what == f"the object lacks {key!r}"


def test_attribute_with_a_default_may_be_missing():
    document = copy.deepcopy(DOCUMENT)
    del document["layers"][CLIP]["attributes"]["alpha"]

    assert plan.loads(put_together(document, FILES)).get_layer(CLIP).alpha == 0.0


def test_attribute_without_a_default_may_not():
    document = copy.deepcopy(DOCUMENT)
    del document["layers"][CLIP]["attributes"]["type"]

    assert refused(put_together(document, FILES)).what == "the object lacks 'type'"


TEXT = json.dumps(DOCUMENT)
DEEP = "nested lists and objects"
# fmt: off
JSON = {
    "empty":            ("",                                                "not the JSON"),
    "UTF-16":           (TEXT.encode("utf-16").decode("utf-8", "surrogateescape"), "not the JSON"),
    "not UTF-8":        ("\udcff",                                          "not the JSON"),
    "cut short":        (TEXT[:-1],                                         DEEP),
    "more behind":      (TEXT + "{}",                                       "not the JSON"),
    "key twice":        (TEXT.replace('{"name"', '{"flags": 0, "name"', 1), "a duplicate key"),
    "key twice below":  (TEXT.replace('"kind"', '"kind": "x", "kind"', 1),  "a duplicate key"),
    "NaN":              (TEXT.replace("64.0", "NaN"),                       "NaN is not a number"),
    "Infinity":         (TEXT.replace("64.0", "-Infinity"),                 "-Infinity is not a number"),
    "beyond floats":    (TEXT.replace("64.0", "1e999"),                     "a number with a point, found inf"),
    "huge number":      (TEXT.replace('"flags": 0', '"flags": ' + "9" * 10**6), "has 1000000 characters"),
    "huge float":       (TEXT.replace("64.0", "1" * 10**6 + ".0"),          "a number with a point"),
    "deep lists":       ("[" * 10**6,                                       DEEP),
    "deep objects":     ('{"a":' * 10**6,                                   DEEP),
    "deep in a place":  (TEXT.replace('"flags": 0', '"flags": ' + "[" * 900 + "]" * 900), DEEP),
    "rather deep":      (TEXT.replace('"flags": 0', '"flags": ' + "[" * 9 + "]" * 9), "a whole number, found a list"),
    "open strings":     ('"' + r'\"' * 10**6,                                   "not the JSON"),
    "a list":           ("[]",                                              "an object, found a list"),
    "a word":           ('"network"',                                       "an object, found 'network'"),
    "null":             ("null",                                            "an object, found null"),
}
# fmt: on


@pytest.mark.parametrize("name", JSON)
def test_hostile_json_is_refused(name):
    text, what = JSON[name]

    finding = refused(put_together(text.encode("utf-8", "surrogateescape"), FILES))

    assert what in finding.what
    assert finding.code == "NL713"


def test_shape_of_10_to_the_12_is_read_without_making_such_an_array():
    document = with_change(("inputs", 0, "shape"), [10**12])
    document["layers"][CONSTANT]["attributes"]["shape"] = [10**12] * 8

    loaded = plan.loads(put_together(document, FILES))

    assert loaded.get_input(0).shape == (10**12,)
    assert any("cannot hold" in finding.what for finding in trt.check(loaded))


def with_marks(marks: object) -> bytes:
    return put_together({**copy.deepcopy(DOCUMENT), "marks": marks}, FILES)


MARKS = {
    "a list": ([], "an object, found a list"),
    "unknown": ({"seen": []}, "has unknown keys 'seen'"),
    "no tensor": ({"debug": [[10**6, 0]]}, "the index of a layer"),
    "half a tensor": ({"debug": [[0]]}, "a list of 2 elements, found 1"),
    "unfused is 1": ({"unfused": 1}, "true or false, found 1"),
    "no output": ({"shapes": [[-1, 0]]}, "is not an output"),
    "no constant": ({"names": [[SUM, "w"]]}, "is not a constant"),
    "name is a number": ({"names": [[CONSTANT, 3]]}, "a string, found 3"),
    "refittable number": ({"refittable": [3]}, "a string, found 3"),
}


@pytest.mark.parametrize("name", MARKS)
def test_hostile_marks_are_refused(name):
    marks, what = MARKS[name]

    finding = refused(with_marks(marks))

    assert what in finding.what
    assert finding.where.startswith("network.json: marks")


def test_marks_are_read_as_they_were_written():
    marks = {"debug": [[SUM, 0], [-1, 0]], "unfused": True, "names": [[CONSTANT, "w"]], "refittable": ["w"]}
    loaded = plan.loads(with_marks(marks))

    assert loaded.is_debug_tensor(loaded.get_input(0))
    assert loaded.marks.unfused
    assert loaded.weights_name(loaded.get_layer(CONSTANT)) == "w"
    assert forge.taken_apart(plan.dumps(loaded.copy()))[0]["marks"] == marks


def test_absent_array_has_no_file():
    document = copy.deepcopy(DOCUMENT)
    for value in document["arrays"]:
        value["absent"] = True

    assert "expected" in refused(put_together(document, FILES)).what
    assert plan.read(put_together(document, [])).absent


def test_absent_array_of_any_size_is_refused_or_read():
    document = copy.deepcopy(DOCUMENT)
    document["arrays"][0] = {**document["arrays"][0], "shape": [2**61], "absent": True}

    assert "array" in refused(put_together(document, FILES[1:])).what


MAKERS = [forge.small, networks.lstm, networks.conditional_in_loop, networks.dynamic_axis, networks.asserted]


@pytest.mark.parametrize("seeds", [range(500), pytest.param(range(500, 1500), marks=pytest.mark.slow)])
def test_any_change_of_a_document_gives_a_network_or_one_error(seeds):
    apart = [forge.taken_apart(plan.dumps(make())) for make in MAKERS]
    accepted = 0
    for seed in seeds:
        chance = random.Random(seed)
        document, files = chance.choice(apart)
        for _ in range(chance.randrange(1, 4)):
            document = forge.changed(document, chance)
        data = put_together(document, files)
        if not forge.is_refused(data):
            accepted += 1
            network = plan.loads(data)
            trt.check(network)
            again = plan.dumps(network)
            assert plan.dumps(plan.loads(again)) == again

    assert accepted > len(seeds) / 15
