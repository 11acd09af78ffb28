"""Linear algebra: decompositions of matrices, eigenvalues, and solutions of equations."""
