"""Functions of each element: of real numbers, integers and bools, and of complex numbers."""
