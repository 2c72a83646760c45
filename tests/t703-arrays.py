"""What petsc4py programs do with arrays: views that are kept for good, and the array of the device. t703-arrays.sh runs it."""
import ctypes
import os
import sys
import petsc4py

petsc4py.init(sys.argv)
import numpy
from petsc4py import PETSc

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from gpucsr.arrays import coo_pattern, coo_values, device_array, matrix_arrays

n = 10
A = PETSc.Mat().create()
A.setSizes((n, n))
A.setType("gpucsr")
A.setUp()
for i in range(n):
    A[i, i] = 2.0
    A[i, (i + 1) % n] = 1.0
A.assemble()
x, b = A.createVecs()
xa, ba = x.array, b.array  # kept
for value in 1.0, 2.0, -3.0:
    xa[:] = value
    A.mult(x, b)
    assert (ba == 3 * value).all(), ("a kept view is not followed", value, ba)
    A.multTranspose(b, x)
    assert (xa == 9 * value).all(), ("nor that of the result of the transpose", value, xa)

v = PETSc.Vec().create()
v.setSizes(n)
v.setType("gpu")
v.set(7)
a = v.getArray()
v.zeroEntries()
a[:4] = 5
a[4:] = 0
del a
assert v.norm() == 10.0, v.norm()

with v as w, numpy.errstate(all="raise"):  # petsc4py's own block
    w[:] = 1.0
v.scale(3)
assert (v.array_r == 3).all()

cuda = PETSc.Options().getString("mat_gpucsr_backend", "") == "cuda"
standin = PETSc.Options().getBool("gpucsr_debug_standin", False)  # its memory is the host's
backend = "cuda" if cuda and not standin else "host"
for mode in "r", "rw", "w":
    with device_array(v, mode) as d:
        if backend == "host":
            array = numpy.asarray(d)
            assert array.flags.writeable == (mode != "r")
            if mode != "w":
                assert (array == 3).all(), array
            if mode != "r":
                array[:] = 3
                array[1] = 8
                v_sum = 35
        else:
            about = d.__cuda_array_interface__
            assert about["shape"] == (n,) and about["data"][0] and about["stream"] > 1, about
    if mode != "r" and backend == "host":
        assert v.sum() == v_sum, (mode, v.sum())
        va = v.array
        assert va[1] == 8
        v.set(3)
        del va

# a view that is held while the device's array is changed
if backend == "host":
    va = v.array
    va[2] = 4
    with device_array(v) as d:
        array = numpy.asarray(d)
        assert array[2] == 4, array
        array[3] = 5
    assert va[3] == 5, va
try:
    with device_array(PETSc.Vec().createSeq(3)):
        pass
    raise SystemExit("a standard vector has lent the array of a device")
except RuntimeError:
    pass

# a matrix from coordinates, of which one repeats and one is skipped, and its values in place
i, j = (numpy.array(k, dtype=PETSc.IntType) for k in ([0, 1, 2, 1, 0, -1], [0, 1, 2, 1, 2, 0]))
C = PETSc.Mat().create()
C.setSizes((3, 3))
C.setType("gpucsr")
C.setFromOptions()
coo_pattern(C, i, j)
for scale in 1.0, 2.0:
    coo_values(C, scale * numpy.arange(1.0, 7.0))
coo_values(C, numpy.ones(6), add=True)
assert (C[:, :] == [[3, 0, 11], [0, 14, 0], [0, 0, 7]]).all(), C[:, :]
for bad in (numpy.arange(6), numpy.ones((2, 3)), numpy.arange(12.0)[::2], [1.0] * 6):
    try:
        coo_values(C, bad)
        raise SystemExit("values that are no array of doubles are taken: %s" % bad)
    except TypeError:
        pass
try:
    coo_values(C, numpy.ones(5))
    raise SystemExit("fewer values than contributions are taken")
except ValueError:
    pass
if cuda:
    with matrix_arrays(C) as arrays:
        about = [d.__cuda_array_interface__ for d in arrays]
        assert [d["shape"] for d in about] == [(4,), (4,), (4,)] and [d["data"][1] for d in about] == [True, True, False], about
        if standin:
            types = ctypes.c_int, ctypes.c_int, ctypes.c_double
            ai, aj, av = (numpy.ctypeslib.as_array((t * 4).from_address(d["data"][0])) for t, d in zip(types, about))
            assert (ai == [0, 2, 3, 4]).all() and (aj == [0, 2, 1, 2]).all() and (av == [3, 11, 14, 7]).all(), (ai, aj, av)
            av[1] = -5
    if standin:
        assert C[0, 2] == -5 and (C * C.createVecRight().duplicate()).norm() == 0, C[:, :]
else:
    try:
        with matrix_arrays(C):
            pass
        raise SystemExit("a matrix of the host has lent arrays of a device")
    except RuntimeError:
        pass
print("done")
