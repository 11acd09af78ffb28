"""Loops as one kernel of a GPU each: ``conversion`` makes one of a traced loop."""
