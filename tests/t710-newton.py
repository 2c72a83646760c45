"""newton.py, and the files that newton.c wrote, beside newton.c with MATAIJ. t710-newton.sh runs it: FOLDER ITERATIONS"""
import sys

import newton  # calls petsc4py.init()
import numpy
from petsc4py import PETSc

folder, expected = sys.argv[1], int(sys.argv[2])
EPS = 1000 * numpy.finfo(float).eps  # iterates differ by rounding times the condition of the Jacobian


def load(kind, name):
    return kind().load(PETSc.Viewer().createBinary(f"{folder}/{name}", "r"))


def dense(J):
    i, j, a = J.getValuesCSR()
    full = numpy.zeros(J.getSize())
    full[numpy.repeat(numpy.arange(len(i) - 1), numpy.diff(i)), j] = a
    return full, (i, j)


def same(u, J, name):
    a, pattern = dense(J)
    assert all((p == q).all() for p, q in zip(pattern, first)), name
    x = numpy.cos(numpy.arange(len(u)))
    assert (abs(a @ x - b @ x) <= EPS * (abs(b) @ abs(x))).all(), name
    assert (abs(u - solution) <= EPS * abs(solution)).all(), name


solution = load(PETSc.Vec, "aij").array_r.copy()
b, first = dense(load(PETSc.Mat, "aij.mat"))
for name in "c1", "c2":
    same(load(PETSc.Vec, name).array_r, load(PETSc.Mat, name + ".mat"), name)
u, J, iterations = newton.solve(8, 40.0)
assert iterations == expected, iterations
if not PETSc.Options().hasName("mat_gpucsr_report"):  # which counts values that the comparison reads
    same(u.array_r, J, "newton.py")

# Without CuPy and Numba the program says what it needs
sys.modules["cupy"] = sys.modules["numba"] = None
try:
    newton.on_gpu(newton.mesh(2))
    raise AssertionError("there is neither CuPy nor Numba")
except SystemExit as message:
    assert "pip install" in str(message), message
print("done")
