"""Checks for a machine with a GPU or TPU, which the tests imitate."""
