"""``python -m benchmarks --platform gpu``, also where onnx is not installed: the systems without it are compared."""

from tests.gpu.stand_ins import without_onnx

without_onnx()

from benchmarks.__main__ import main  # noqa: E402 (after the stand-in)

if __name__ == "__main__":
    main()
