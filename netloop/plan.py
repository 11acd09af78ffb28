"""Plans: files of networks with their weights, which load to the same network or not at all."""

from netloop.model.plan import Plan, draw, dumps, load, loads, naming, read, read_file, save

__all__ = ["Plan", "draw", "dumps", "load", "loads", "naming", "read", "read_file", "save"]
