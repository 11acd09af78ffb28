"""The tasks of the project, each by its name: ``nox -l`` lists them, ``nox -s lint types`` runs two of them.

This file is the one place for the commands of all tasks. The workflows in ``.github/`` and ``.ci/run`` call the tasks
by name; the first command lines that a new user sees, which install netloop and run its tests, are those of README.md,
and ``.ci/run`` takes them from there.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "changes", "docs", "tests"]
nox.options.default_venv_backend = "venv"

ROOT = Path(__file__).parent
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
TESTS = ("python", "-m", "pytest", "-n", "auto")
PAGES = {
    "docs/rules.md": ("netloop", "rules"),
    "docs/onnx-operators.md": ("netloop", "operators", "onnx"),
    "docs/openvino-operators.md": ("netloop", "operators", "openvino"),
    "docs/jax-primitives.md": ("netloop", "operators", "jax"),
}
"""The pages that a module prints, with its arguments. Tests compare the files with what is printed."""
PARTS = {
    "ARCHITECTURE.md": "tests.project.levels",
    "docs/command-line.md": "tests.project.commands",
    "docs/layers.md": "tests.project.methods",
    "docs/performance.md": "tests.project.passes",
    "netloop/model/layers": "tests.project.method_docstrings",
    "docs/real-models.md": "tests.real_models.page",
    "docs/tensorrt-code.md": "tests.other_projects.page",
    "netloop/public_names.py": "tests.project.exports",
    "tests/data/messages.txt": "tests.support.mistakes",
}
"""The files of which a module writes a part. Tests compare the files with what it writes."""

OF_LIBRARIES = (
    "tests/formats/from_jax/test_libraries.py",
    "tests/formats/onnx/importer/test_scikit_learn.py",
    "tests/real_models/test_models.py",
    "tests/benchmarks/test_figure.py",
)
OF_CLIENTS = ("tests/tools/serve/test_grpc_endpoint.py", "tests/tools/serve/test_listening.py")
EXAMPLES = ("tests/project/test_docs.py", "tests/project/test_notebooks.py", "tests/project/test_samples.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting and lint rules; ``nox -s lint -- --fix`` repairs what can be repaired."""
    session.install("ruff>=0.12")
    fix = "--fix" in session.posargs
    session.run("ruff", "format", *(() if fix else ("--check",)))
    session.run("ruff", "check", *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Types: of the package strictly, of the scripts that users write with the defaults of pyright and mypy."""
    session.install("-e", ".[dev]")
    session.run("pyright", "--pythonpath", _python(session))
    session.run(_python(session), "-m", "tests.project.user_scripts", external=True)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests, with the newest releases of all dependencies; arguments go to pytest."""
    session.install("-e", ".[test]")
    session.run(*TESTS, *session.posargs)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """The tests, with the lowest releases of JAX and numpy that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    session.install("-e", ".[test]", *(package.replace(">=", "==") for package in project["dependencies"]))
    session.run(*TESTS, *session.posargs)


@nox.session
def libraries(session: nox.Session) -> None:
    """The tests that take models, solvers or figures from other packages, and are skipped without them."""
    session.install("-e", ".[libraries]")
    # only for the models in their wheels: the first needs PyTorch
    session.install("--no-deps", "silero-vad", "rapidocr-onnxruntime")
    session.run("python", "-m", "pytest", *OF_LIBRARIES, *session.posargs)


@nox.session
def examples(session: nox.Session) -> None:
    """The code of the documentation, the tutorials and the samples, with what they print."""
    session.install("-e", ".[libraries]")
    session.run("python", "-m", "pytest", "-m", "slow", *EXAMPLES, *session.posargs)


@nox.session
def serving(session: nox.Session) -> None:
    """The tests of services that call them by Triton's clients, over HTTP and gRPC, and are skipped without them."""
    session.install("-e", ".[clients]")
    session.run("python", "-m", "pytest", *OF_CLIENTS, *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """The tests that take long; ``HYPOTHESIS_PROFILE=nightly`` has more random networks drawn."""
    session.install("-e", ".[test]")
    session.run(*TESTS, "-m", "slow", *session.posargs)


@nox.session
def redundant_cases(session: nox.Session) -> None:
    """The list of cases that are slow, as other cases of their tests reach what they reach, made anew."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.redundant_cases", *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """Checks, tests and loops that need a GPU, in under twelve minutes, into gpu-results/; ``DRY=1``: on a CPU."""
    session.install("-e", ".[cuda13,test]", "torch")
    session.run("bash", "tests/gpu/run.sh", external=True, env={"PYTHON": _python(session)})


@nox.session
def gpu_programs(session: nox.Session) -> None:
    """Programs of every kind, compiled for an H100 on a machine without one; arguments are the kinds."""
    session.install("-e", ".[cuda13,test]")
    # the first: the plugin would look for a driver; the second: nothing runs on a GPU
    settings = {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "JAX_PLATFORMS": "cpu"}
    session.run("python", "-m", "tests.gpu.programs", *session.posargs, env=settings)
    session.run("python", "-m", "pytest", "tests/gpu", env=settings)


@nox.session
def mutants(session: nox.Session) -> None:
    """Faults of one line, and what finds them: the tests, or with ``-- --networks 200`` random networks.

    Writes tests/mutants/README.md, and fails if a fault is not found.
    """
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session(python=PYTHONS[0])
def fuzz(session: nox.Session) -> None:
    """Coverage-guided fuzzing of the readers and the checker, 600 s each; ``-- 60``, ``-- 600 onnx`` for others."""
    session.install("-e", ".[fuzz]")
    seconds = [word for word in session.posargs if word.isdigit()]
    targets = [word for word in session.posargs if not word.isdigit()]
    session.run("python", "-m", "tests.fuzz", *targets, *(("--seconds", seconds[0]) if seconds else ()))


@nox.session
def benchmarks(session: nox.Session) -> None:
    """The benchmarks; without arguments all of them, written to benchmarks/RESULTS.md."""
    session.install("-e", ".[bench]")
    session.run("python", "-m", "benchmarks", *(session.posargs or ["--write"]))


@nox.session
def pages(session: nox.Session) -> None:
    """The generated pages of docs/ and parts of other files, made anew."""
    session.install("-e", ".[onnx]")
    for module in PARTS.values():
        session.run("python", "-m", module)
    for page, arguments in PAGES.items():
        # a page that cannot be made leaves the old one as it is
        made = subprocess.run([_python(session), "-m", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        (ROOT / page).write_bytes(made.stdout)
        session.log(f"wrote {page}")


@nox.session
def changes(session: nox.Session) -> None:
    """The changelog's next section, made from changelog.d/ and printed only."""
    session.install("towncrier>=24.8")
    session.run("towncrier", "build", "--draft", "--version", "next", "--date", "not released")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation, as a site in site/; a link that leads nowhere is an error."""
    session.install("-e", ".[docs,onnx]")
    session.run("mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def package(session: nox.Session) -> None:
    """The source distribution and the wheel, in dist/; the wheel runs the demo in an environment of its own."""
    session.install("build>=1.2")
    session.run("python", "-m", "build")
    wheel = max((ROOT / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    session.install(str(wheel))
    # -P: the package that was installed, not the folder next to this file
    session.run("python", "-P", "-m", "netloop", "demo")


def _python(session: nox.Session) -> str:
    """The interpreter of a session; with ``--no-venv`` that of nox."""
    paths = session.bin_paths
    return str(Path(paths[0]) / "python") if paths else sys.executable
