"""Coverage-guided fuzzing of the readers of files and of the checker: ``python -m tests.fuzz onnx --seconds 600``.

Each target is one file. What a run finds is mended, and its file is kept in ``tests/data/fuzz``, where
``test_finds.py`` replays it without the fuzzer.
"""
