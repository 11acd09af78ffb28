"""The tests mirror the package, so that the tests of a module are found by its path."""

from pathlib import Path

import netloop

PACKAGE, TESTS = Path(netloop.__file__).parent, Path(__file__).parents[1]

FOLDERS_OF_THEIR_OWN = {
    "support": "what many tests share",
    "project": "the repository: its architecture, pages, samples and public names",
    "data": "files that tests read",
    "gpu": "what only a GPU can show, and programs that are compiled for one",
    "fuzz": "the fuzzer's targets, and what it found",
    "benchmarks": "the folder of that name next to the package",
    "mutants": "faults that are planted in copies of the tree, and what catches them",
    "redundant_cases": "cases of tests that are slow, and how they are chosen",
    "soak": "everything at once, for a long time",
    "real_models": "models that exporters and other tools write",
    "other_projects": "code of other projects, with netloop in TensorRT's place",
}

SUBJECTS = {
    "backend": "the tests of the onnx package",
    "bad_input": "errors of every method that adds a layer",
    "breaking": "one violation of each rule in random networks",
    "cases": "the layers' own cases, exported",
    "compiler_faults": "faults of XLA's compiler: which of them a JAX has, and that netloop does not meet them",
    "completion": "what shells complete",
    "conditional": "If, which many modules import",
    "converted": "models that OpenVINO converts from ONNX",
    "constants": "what a saved model computes of constants alone",
    "denormals": "numbers that programs take for 0",
    "differential": "engine against reference on random networks",
    "draft_dialect": "Loop as a draft of its specification has it",
    "element_types": "every element type in engines and plans",
    "example_calls": "the laws on one call of every method that adds a layer",
    "examples": "the examples in the help of commands",
    "extremes": "extreme numbers anywhere in a layer",
    "failures": "errors while a network runs",
    "forgiven": "faults of models that leave them one meaning",
    "forks": "calls in forks of a process",
    "from_cpp": "programs in C++, call by call",
    "fusions": "engine against reference on random networks that XLA fuses",
    "golden": "results recorded from TensorRT",
    "hostile": "damaged and malicious input",
    "integers": "integer arithmetic of several layers",
    "interruptible": "calls that Ctrl-C ends",
    "laws": "functions of networks and networks of functions, back and forth",
    "lengths": "the lengths of stacked loop outputs",
    "libraries": "models and solvers of libraries for JAX",
    "loop": "Loop and Scan, which many modules import",
    "loops": "loops, which many modules export",
    "lowering_forms": "the passes that are forms of lowering",
    "maps": "maps, exported",
    "mistakes": "what netloop says about the mistakes of beginners",
    "names": "names in files: of any length and with any characters",
    "negative_cases": "networks that passes must leave alone",
    "netloop_layers": "layers that TensorRT does not have, exported",
    "networks": "whole networks",
    "none_on_error": "a mode of the builder",
    "open_lengths": "layers for lengths that only a run knows, exported",
    "operators": "the commands that print the pages of operators",
    "other_platforms": "programs for devices that are not here",
    "padded_layers": "each kind of layer on padded axes",
    "passes": "the command that prints the passes",
    "peers": "other runtimes",
    "pipeline": "the order of the passes, and all of them together",
    "paths": "pipes, folders and devices where a file should be",
    "random": "random networks",
    "random_numbers": "distributions of random numbers",
    "rates": "the table of ONNX's tests that pass",
    "round_trip": "networks saved and loaded again",
    "rows": "stacked outputs of loops, exported",
    "random_addresses": "addresses of every kind, most of them wrong",
    "saved_networks": "random loops and conditionals, saved in both formats and run in other runtimes",
    "saving": "files on disk",
    "scaling": "work that grows with the size of a network",
    "scikit_learn": "models of scikit-learn",
    "sequences": "sequences and optional values",
    "sharded_refit": "new weights of engines on a mesh",
    "shared_operators": "operators of the ONNX graph that few layers need, in OpenVINO",
    "tensorrt10": "scripts for TensorRT 10",
    "tuned_copies": "programs made of the network of an engine that was tuned",
    "two_processes": "engines of several processes, of which one may end",
    "types": "every element type, exported",
    "weights": "names and replacement of weights",
    "words": "fields, dims, registry and interfaces of plugins",
    "waits": "calls, steps and runs on addresses, in which the host waits for nothing",
}
"""Test files, without ``test_`` and ``.py``, whose subject is not one module, with the subject."""

FILES = [
    path for path in sorted(TESTS.rglob("test_*.py")) if path.relative_to(TESTS).parts[0] not in FOLDERS_OF_THEIR_OWN
]


def name_of(file: Path) -> str:
    return file.stem.removeprefix("test_")


def mirrored(file: Path) -> Path:
    """The folder of the package whose tests are in the folder of a test file."""
    return PACKAGE / file.parent.relative_to(TESTS)


def test_folders_are_of_the_package_or_have_a_reason():
    folders = {path.parent.name for path in TESTS.glob("*/__init__.py")}

    assert {folder for folder in folders if (PACKAGE / folder).is_dir() == (folder in FOLDERS_OF_THEIR_OWN)} == set()


def test_files_are_named_after_a_module_or_have_a_subject():
    assert [str(file) for file in FILES if not mirrored(file).is_dir()] == []
    assert [str(file) for file in FILES if name_of(file) not in names_in(mirrored(file))] == []


def names_in(folder: Path) -> set[str]:
    return {folder.name, *(path.stem for path in folder.rglob("*")), *SUBJECTS}


def test_every_subject_has_a_test_file():
    assert set(SUBJECTS) <= {name_of(file) for file in FILES}
