"""Linear algebra: decompositions of matrices, eigenvalues, and solutions of equations, as loops.

A ``JaxPlugin`` that calls the primitive would compute the same in a few lines, and have derivatives in reverse mode of
eigenvalues too. But no file holds a plugin: networks of loops are saved as ONNX and OpenVINO, and these run them.
"""
