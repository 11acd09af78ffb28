"""Functions of numbers that no layer computes."""
