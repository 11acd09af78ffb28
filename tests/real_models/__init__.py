"""Real ONNX models: what exporters and other tools write, run by netloop and by onnxruntime.

::

    sources/*.py  --make.py-->  FOLDER/NAME.onnx and inputs FOLDER/NAME.SIZE.npz
                  --measure.py-->  results.json  --page.py-->  docs/real-models.md

``recipe.py`` has what a model is made from, ``agreement.py`` the rule by which outputs agree.
"""
