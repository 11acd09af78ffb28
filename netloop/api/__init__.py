"""TensorRT's classes for building and running engines, over the execution core.

Source: https://docs.nvidia.com/deeplearning/tensorrt/11.0.0/_static/python-api/infer/Core/Engine.html and its siblings.
"""
