"""What petsc4py programs do with arrays: views that are kept for good, the array of the device, DLPack, and vectors and matrices of other libraries' arrays. t703-arrays.sh runs it."""
import ctypes
import gc
import os
import sys
import petsc4py

petsc4py.init(sys.argv)
import numpy
from petsc4py import PETSc

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from gpucsr import dlpack
from gpucsr.arrays import _device, _library, coo_matrix, coo_pattern, coo_values, csr_matrix, csr_pattern, device_array, device_vector, matrix_arrays

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


def refused(kind, word, call, *arguments, **named):
    """One error that names the fault"""
    try:
        call(*arguments, **named)
    except kind as error:
        assert word in str(error), (word, error)
    else:
        raise SystemExit("%s%s is taken" % (call.__name__, (arguments, named)))


class Named:
    """An array that another library names in one of three ways"""

    def __init__(self, keep, **attributes):
        self.keep = keep
        self.__dict__.update(attributes)


class Given:
    """An object with DLPack alone. device: the one to which its capsules are changed; the memory of the stand-in is the host's"""

    def __init__(self, array, device=None):
        self.array, self.device = array, device or array.__dlpack_device__()

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        capsule = self.array.__dlpack__() if stream is None else self.array.__dlpack__(stream=stream)
        place = dlpack._pointer(id(capsule), b"dltensor")
        dlpack._Managed.from_address(place).tensor.device[:] = self.device
        return capsule


class Info(ctypes.Structure):
    """MatGPUCSRInfo up to the bytes of values"""

    integer = ctypes.c_int64 if PETSc.IntType().itemsize == 8 else ctypes.c_int32
    _fields_ = [("names", ctypes.c_char_p * 5), ("counts", integer * 11), ("sizes", ctypes.c_double * 7), ("sent", ctypes.c_double), ("back", ctypes.c_double)]


def values_moved(A):
    info = (ctypes.c_char * 4096)()
    assert _library().MatGPUCSRGetInfo(ctypes.c_void_p(A.handle), info) == 0
    info = Info.from_buffer(info)
    return info.sent, info.back


def numbers_at(array):
    """To write: numpy before 2.0 takes arrays by DLPack to read"""
    return numpy.ctypeslib.as_array((ctypes.c_double * len(array)).from_address(array.ctypes.data))


def vector(length, value):
    w = PETSc.Vec().create()
    w.setSizes(length)
    w.setType("gpu")
    w.set(value)
    return w


kept = []


def placed(array):
    """The array as another library has it: on the GPU, or on the host"""
    if not cuda:
        return array
    w, bits = vector(array.nbytes // 8 + 1, 0), numpy.zeros(array.nbytes // 8 + 1)
    ctypes.memmove(bits.ctypes.data, array.ctypes.data, array.nbytes)
    w.setArray(bits)
    with device_array(w, "r") as d:
        address = (d.__array_interface__ if standin else d.__cuda_array_interface__)["data"][0]
    kept.append(w)
    return Named(w, __cuda_array_interface__={"shape": array.shape, "typestr": array.dtype.str, "data": (address, False), "version": 3, "strides": None, "stream": 1})


# DLPack, given
expected = (dlpack.CUDA, _device(_library())) if backend == "cuda" else (dlpack.CPU, 0)
w = vector(5, 3)
with device_array(w) as d:
    assert d.__dlpack_device__() == expected and not dlpack._given
    unused = d.__dlpack__()
    assert len(dlpack._given) == 1
    del unused
    assert not dlpack._given, "a capsule that nobody took keeps the vector"
    once = d.__dlpack__(max_version=(1, 1), dl_device=expected, copy=False)
    taken = dlpack.Taken(once)
    assert (taken.shape, taken.typestr, taken.device, taken.readonly, taken.strides) == ((5,), "<f8", expected, False, None)
    refused(ValueError, "used before", dlpack.Taken, once)
    del taken, once
    assert not dlpack._given
    refused(BufferError, "in place", d.__dlpack__, copy=True)
    refused(BufferError, "in place", d.__dlpack__, dl_device=(dlpack.CUDA, 99))
    if backend == "host":
        array = numpy.from_dlpack(d)
        assert (array == 3).all(), array
        numbers_at(array)[1] = 8
refused(RuntimeError, "ended", d.__dlpack__)
refused(RuntimeError, "ended", getattr, d, "__cuda_array_interface__" if backend == "cuda" else "__array_interface__")
if backend == "host":
    assert w.sum() == 20
    w.destroy()
    del w, d
    gc.collect()
    assert (array == [3, 8, 3, 3, 3]).all(), ("an array outlives its vector", array)
    del array
    assert not dlpack._given
w = vector(4, 2)
with device_array(w, "r") as d:
    refused(BufferError, "only to be read", d.__dlpack__)
    assert dlpack.Taken(d.__dlpack__(max_version=(1, 0))).readonly
del d

# vectors over arrays
if backend == "host":
    a = numpy.arange(1.0, 6.0)
    for way in (lambda array: array,) if standin else (lambda array: array, Given):
        there = placed(a)
        numbers = numpy.ctypeslib.as_array((ctypes.c_double * 5).from_address(there.__cuda_array_interface__["data"][0] if standin else a.ctypes.data))
        y = device_vector(way(there))
        assert y.getType().endswith("gpu") and y.sum() == numbers.sum() == 15
        y.scale(2)
        assert (numbers == [2, 4, 6, 8, 10]).all(), numbers
        y.array[:] = 1.0
        gc.collect()
        assert (numbers == 1).all(), numbers
        y.set(4)
        assert (numbers == 4).all(), numbers
        numbers[2] = 7
        y.stateIncrease()
        assert y.sum() == 23 and y.array_r[2] == 7 and y.norm(PETSc.NormType.INFINITY) == 7
        with y as open_array:
            assert (open_array == [4, 4, 7, 4, 4]).all()
            open_array[0] = 0
        assert numbers[0] == 0 and y.dot(y) == 97
        numbers[:] = 5
        y.stateIncrease()
        z = y.duplicate()
        y.copy(z)
        assert z.sum() == 25 and (z.array_r == 5).all()
        y.resetArray(force=True)
        assert y.sum() == 0 and (numbers == 5).all()
        y.destroy()
        numbers[:] = a[:] = numpy.arange(1.0, 6.0)

# by DLPack, of which the vector keeps the capsule's array
w = vector(5, 3)
with device_array(w) as d:
    y = device_vector(Given(d, (dlpack.CUDA, 0) if standin else None))
    raw = device_vector(d.__dlpack__())
w.destroy()
gc.collect()
assert len(dlpack._given) == 2 and y.sum() == raw.sum() == 15
raw.destroy()
y.set(1)
assert y.sum() == 5
y.destroy()
del y, raw, d
gc.collect()
assert not dlpack._given, "a destroyed vector keeps its array"

# arguments that are no arrays of the process' device
w = vector(5, 3)
with device_array(w) as d:
    refused(ValueError, "copy it there", device_vector, Given(d, (dlpack.CUDA, 99)))
    refused(ValueError, "copy it there", device_vector, Given(d, (10, 0)))
    once = d.__dlpack__()
    dlpack.Taken(once)
    refused(ValueError, "used before", device_vector, once)
    attribute = "__cuda_array_interface__" if backend == "cuda" else "__array_interface__"
    address = getattr(d, attribute)["data"][0]
for bad in ({"typestr": "<f4"}, {"typestr": "<i8"}, {"strides": (16,)}, {"shape": (2, 2)}, {"shape": ()}):
    about = dict({"shape": (2,), "typestr": "<f8", "data": (address, False), "version": 3, "strides": None}, **bad)
    refused(TypeError, "contiguous array of one dimension and type <f8", device_vector, Named(w, **{attribute: about}))
refused(TypeError, "contiguous", device_vector, [1.0, 2.0])
refused(ValueError, "only to be read", device_vector, Named(w, **{attribute: {"shape": (2,), "typestr": "<f8", "data": (address, True), "version": 3}}))
if cuda:
    refused(RuntimeError, "is the host's, and the vector is on a GPU", device_vector, numpy.ones(3))
    refused(RuntimeError, "was it freed", device_vector, Named(w, __cuda_array_interface__={"shape": (2,), "typestr": "<f8", "data": (4096, False), "version": 3}))

# matrices of rows and of coordinates, in any order and repeated
integers = lambda *numbers: numpy.array(numbers, dtype=numpy.int32)
rows, columns, numbers = integers(0, 3, 3, 5), integers(3, 0, 3, 1, 0), numpy.array([1.0, 2, 4, 8, 16])
dense = numpy.array([[2.0, 0, 0, 5], [0, 0, 0, 0], [16, 8, 0, 0]])
which, master = integers(2, 0, 0, -1, 0, 2), PETSc.Options().getString("mat_gpucsr_master", "host") == "device"
for make in (
    lambda: csr_matrix(placed(rows), placed(columns), placed(numbers), columns=4),
    lambda: coo_matrix(((3, None), (4, None)), placed(which), placed(integers(0, 3, 0, 2, 3, 1)), placed(numpy.array([16.0, 1, 2, 99, 4, 8]))),
):
    A = make()
    if standin:
        sent, back = values_moved(A)
        assert sent == 0 and back == (0 if master else 32), (sent, back)
    assert A.getType() == "seqaijgpucsr" and (A[:, :] == dense).all(), A[:, :]
    order = numbers if A.getAttr("contributions") == 5 else numpy.array([16.0, 1, 2, 99, 4, 8])
    coo_values(A, placed(2 * order), add=True)
    assert (A[:, :] == 3 * dense).all(), A[:, :]
    for bad in (rows[:3], integers(0, 3, 2, 5), integers(1, 3, 3, 5), integers(0, 3, 3, 4), integers(0, 3, 3, 2**30), integers(0, -1, 3, 5)):
        refused((RuntimeError, ValueError), "do not ascend from 0 to 5" if len(bad) == 4 else "i has 3 entries", csr_pattern, A, placed(bad), placed(columns))
    refused(RuntimeError, "column 4 of a matrix of 3 rows and 4 columns", csr_pattern, A, placed(rows), placed(integers(3, 0, 4, 1, 0)))
    refused(ValueError, "i has 3 entries", coo_pattern, A, placed(which[:3]), placed(columns))
    refused(TypeError, "type <i4", csr_pattern, A, placed(rows.astype(numpy.float32)), placed(columns))
    refused(ValueError, "v has 4 entries", coo_values, A, placed(numbers[:4].copy()))
    assert (A[:, :] == 3 * dense).all(), ("an error changes the matrix", A[:, :])
    if cuda:
        with matrix_arrays(A) as arrays:  # of which another matrix is made
            B = csr_matrix(*arrays, columns=4)
        assert (B[:, :] == 3 * dense).all(), B[:, :]
refused(ValueError, "one more than rows", csr_matrix, placed(integers()), placed(integers()), placed(numpy.zeros(0)))
empty = csr_matrix(placed(integers(0, 0, 0)), placed(integers()), placed(numpy.zeros(0)))
assert empty.getSize() == (2, 2) and empty.norm() == 0
aij = PETSc.Mat().createAIJ((3, 3), comm=PETSc.COMM_SELF)
if not aij.getType().endswith("gpucsr"):
    refused(RuntimeError, "Needs a matrix of type gpucsr", csr_pattern, aij, placed(rows), placed(columns))
print("done")
