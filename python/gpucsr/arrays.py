"""Arrays of petsc4py vectors and matrices in GPU memory, in place, for CuPy, PyTorch, Numba, or any other library that knows __cuda_array_interface__.

    from gpucsr.arrays import device_array, matrix_arrays, coo_pattern, coo_values

    with device_array(x) as d:          # to read and to write; device_array(x, "r") and "w" cost less
        cupy.asarray(d)[:] *= 2.0       # no copy: PETSc's operations and products see it
        torch.as_tensor(d, device="cuda")

    coo_pattern(A, i, j)                # arrays of the host or the device
    coo_values(A, v)                    # as often as there are new values; repeated entries are summed
    with matrix_arrays(A) as (i, j, a): # CSR of A, or of a block of it; only values may change
        cupy.asarray(a)[:] *= 2.0

A vector must be a VECGPU: one that MatCreateVecs() of a gpucsr matrix gives on a GPU (x, b = A.createVecs()), or of type gpu. An array that CuPy or PyTorch
made from d offers DLPack (__dlpack__) by itself. Use none of them after the block: it ends by saying that the object has changed. On the host backend a vector's
array is one of the host, and d has __array_interface__ (numpy.asarray(d)); a matrix is then an error.

The library is the one that PETSc has loaded (-dll_append); nothing else is needed.
"""
import ctypes
from contextlib import contextmanager


def _library():
    """libpetscgpucsr as PETSc has it, by the name under which it is mapped; it also finds PETSc's functions"""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if "libpetscgpucsr" in path:
                return ctypes.CDLL(path)
    raise RuntimeError("libpetscgpucsr is not loaded: add -dll_append libpetscgpucsr.so to PETSC_OPTIONS")


def _check(ierr):
    if ierr:
        from petsc4py import PETSc

        raise PETSc.Error(ierr)  # a RuntimeError with the message, as petsc4py's own


class _Array:
    """A pointer with the attributes that other libraries read"""

    def __init__(self, address, length, typestr, writable, attribute, **more):
        setattr(self, attribute, dict({"shape": (length,), "typestr": typestr, "data": (address or 0, not writable), "version": 3}, **more))


@contextmanager
def device_array(v, mode="rw"):
    """The array on the device of a Vec: mode "rw" has the entries and changes them, "r" only reads, "w" writes all of them"""
    library = _library()
    suffix = {"rw": "", "r": "Read", "w": "Write"}[mode]
    vec, array, stream = ctypes.c_void_p(v.handle), ctypes.c_void_p(), ctypes.c_void_p()
    _check(library.VecGPUGetStream(vec, ctypes.byref(stream)))
    _check(getattr(library, "VecGPUGetArray" + suffix)(vec, ctypes.byref(array)))
    # users of the array order their work after this stream; 1 is CUDA's default stream, 0 is not allowed
    where = {"attribute": "__array_interface__"} if stream.value is None else {"attribute": "__cuda_array_interface__", "stream": stream.value or 1}
    try:
        yield _Array(array.value, v.getLocalSize(), "<f8", mode != "r", **where)
        if stream.value:  # another library works on streams of its own
            _check(library.VecGPUSynchronize(vec))
    finally:
        _check(getattr(library, "VecGPURestoreArray" + suffix)(vec, ctypes.byref(array)))


@contextmanager
def matrix_arrays(A):
    """Row pointers, columns and values of a gpucsr Mat of one process; the values may be changed, by work on any stream"""
    library = _library()
    mat, arrays = ctypes.c_void_p(A.handle), [ctypes.c_void_p() for _ in range(3)]
    places = [ctypes.byref(a) for a in arrays]
    _check(library.MatGPUCSRGetDeviceCSR(mat, *places))
    try:
        lengths = (A.getLocalSize()[0] + 1,) + 2 * (int(A.getInfo(A.InfoType.LOCAL)["nz_used"]),)
        yield tuple(_Array(a.value, n, t, t == "<f8", "__cuda_array_interface__") for a, n, t in zip(arrays, lengths, ("<i4", "<i4", "<f8")))
    finally:
        _check(library.MatGPUCSRRestoreDeviceCSR(mat, *places))


def _pointer(array, typestr, name):
    """Where a contiguous array of one dimension begins, and its length"""
    about = getattr(array, "__cuda_array_interface__", None) or getattr(array, "__array_interface__", None)
    if not about or about["typestr"] != typestr or len(about["shape"]) != 1 or about.get("strides") not in (None, (int(typestr[2:]),)):
        raise TypeError("%s has to be a contiguous array of one dimension and type %s, of the host or of the device" % (name, typestr))
    return ctypes.c_void_p(about["data"][0]), about["shape"][0]


def coo_pattern(A, i, j):
    """MatSetPreallocationCOO(): row i[k] and column j[k] of contribution k, negative ones are skipped. PETSc may change arrays of the host, and a PETSc with debugging reads them, so they have to be there"""
    from petsc4py import PETSc

    integer = "<i%d" % PETSc.IntType().itemsize
    (pi, n), (pj, nj) = _pointer(i, integer, "i"), _pointer(j, integer, "j")
    if n != nj:
        raise ValueError("i has %d entries, j has %d" % (n, nj))
    _check(_library().MatSetPreallocationCOO(ctypes.c_void_p(A.handle), ctypes.c_ssize_t(n), pi, pj))
    A.setAttr("contributions", n)


def coo_values(A, v, add=False):
    """MatSetValuesCOO(): the contributions' values, as many as the pattern has"""
    p, n = _pointer(v, "<f8", "v")
    length = A.getAttr("contributions")
    if length not in (None, n):
        raise ValueError("v has %d entries, coo_pattern() had %d" % (n, length))
    _check(_library().MatSetValuesCOO(ctypes.c_void_p(A.handle), p, 2 if add else 1))
