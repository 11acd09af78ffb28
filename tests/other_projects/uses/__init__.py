"""Uses of TensorRT in applications of other projects, whose modules run unchanged: with models made for the test.

Each file runs by pytest with ``netloop.compat.pytest_plugin``, in an environment with the sources of its project.
"""
