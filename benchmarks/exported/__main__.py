"""Make the models of workloads M1 to M14 that are missing: ``python -m benchmarks.exported``.

It needs torch, torchvision, onnxscript, transformers, scikit-learn, skl2onnx and onnxruntime.
"""

import argparse

from benchmarks.exported.files import FOLDER, Files
from benchmarks.exported.making import MAKERS


def main() -> None:
    """Make models."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exported", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MAKERS], help="only these models")
    names = parser.parse_args().names or list(MAKERS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        files = Files(name)
        if not files.exist:
            MAKERS[name](files)
            print(f"{files.model.name}: {files.model.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
