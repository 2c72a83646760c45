"""Arrays of petsc4py vectors and matrices in GPU memory, in place, and vectors and matrices of other libraries' arrays: CuPy, PyTorch, JAX, Numba, NumPy, ...

    from gpucsr.arrays import device_array, device_vector, matrix_arrays, coo_pattern, csr_pattern, coo_values, coo_matrix, csr_matrix

    with device_array(x) as d:          # to read and to write; device_array(x, "r") and "w" cost less
        cupy.asarray(d)[:] *= 2.0       # no copy: PETSc's operations and products see it
        torch.from_dlpack(d)
    y = device_vector(t)                # a Vec whose entries are the array t, without a copy

    A = csr_matrix(i, j, a, columns)    # the rows of this process; in any order, repeated columns are summed
    A = coo_matrix(sizes, i, j, v)
    coo_pattern(A, i, j)                # the same in two steps; csr_pattern(A, i, j) takes row pointers
    coo_values(A, v)                    # as often as there are new values
    with matrix_arrays(A) as (i, j, a): # CSR of A, or of a block of it; only values may change
        cupy.asarray(a)[:] *= 2.0

Arrays are taken by __cuda_array_interface__, __array_interface__ or __dlpack__, and given by the same: as __array_interface__ and DLPack's CPU on the host backend, where matrix_arrays() is an error.
Indices have 32 bits, values are doubles. Indices and values of the device stay there, except what the host's MATAIJ needs: the pattern, and values unless -mat_gpucsr_master is device.

device_array() needs a VECGPU: a vector that MatCreateVecs() of a gpucsr matrix gives on a GPU (x, b = A.createVecs()), or of type gpu. Use no array after its block, which ends by saying that the
object has changed. An array that another library has taken by DLPack keeps the object, not the contents.

The library is the one that PETSc has loaded (-dll_append); nothing else is needed.
"""

import ctypes
from contextlib import contextmanager

from . import dlpack


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


def _device(library):
    """The number of the GPU of this process"""
    from petsc4py import PETSc

    number = (ctypes.c_int64 if PETSc.IntType().itemsize == 8 else ctypes.c_int32)(-1)
    _check(library.MatGPUCSRGetDevice(ctypes.byref(number)))
    return number.value


class _Kept:
    """A reference to a PETSc object, which PetscFinalize() voids"""

    def __init__(self, library, handle):
        self.library, self.handle = library, ctypes.c_void_p(handle)
        _check(library.PetscObjectReference(self.handle))

    def __del__(self):
        finalized = ctypes.c_int(1)
        self.library.PetscFinalized(ctypes.byref(finalized))
        if not finalized.value:
            self.library.PetscObjectDereference(self.handle)


class _Array:
    """An array of one dimension as other libraries read it, until its block ends. stream: None on the host; wait(): the work on it is done"""

    def __init__(self, address, length, typestr, writable, owner, stream=None, wait=None):
        self._about = {"shape": (length,), "typestr": typestr, "data": (address or 0, not writable), "version": 3}
        self._owner, self._stream, self._wait, self._open = owner, stream, wait, True

    def _given(self, name=None, ondevice=None):
        if name and ondevice != (self._stream is not None):
            raise AttributeError("an array %s has no %s" % ("of the host" if ondevice else "of a GPU", name))
        if not self._open:
            raise RuntimeError("the block of this array has ended")
        return self._about

    @property
    def __array_interface__(self):
        return self._given("__array_interface__", False)

    @property
    def __cuda_array_interface__(self):
        return dict(self._given("__cuda_array_interface__", True), stream=self._stream)

    def __dlpack_device__(self):
        return (dlpack.CPU, 0) if self._stream is None else (dlpack.CUDA, _device(_library()))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        about, device = self._given(), self.__dlpack_device__()
        if copy or dl_device not in (None, device):
            raise BufferError("the array is given in place, on DLPack's device %s" % (device,))
        if self._wait and stream != -1:
            self._wait()
        return dlpack.capsule(about["data"][0], about["shape"][0], about["typestr"], device, about["data"][1], max_version, _Kept(_library(), self._owner.handle))


@contextmanager
def device_array(v, mode="rw"):
    """The array on the device of a Vec: mode "rw" has the entries and changes them, "r" only reads, "w" writes all of them"""
    library = _library()
    suffix = {"rw": "", "r": "Read", "w": "Write"}[mode]
    vec, array, stream = ctypes.c_void_p(v.handle), ctypes.c_void_p(), ctypes.c_void_p()
    _check(library.VecGPUGetStream(vec, ctypes.byref(stream)))
    _check(getattr(library, "VecGPUGetArray" + suffix)(vec, ctypes.byref(array)))
    given = _Array(array.value, v.getLocalSize(), "<f8", mode != "r", v, stream.value, lambda: _check(library.VecGPUSynchronize(vec)))
    try:
        yield given
        if stream.value:  # another library works on streams of its own
            _check(library.VecGPUSynchronize(vec))
    finally:
        given._open = False
        _check(getattr(library, "VecGPURestoreArray" + suffix)(vec, ctypes.byref(array)))


@contextmanager
def matrix_arrays(A):
    """Row pointers, columns and values of a gpucsr Mat of one process; the values may be changed, by work on any stream"""
    library = _library()
    mat, arrays = ctypes.c_void_p(A.handle), [ctypes.c_void_p() for _ in range(3)]
    places = [ctypes.byref(a) for a in arrays]
    _check(library.MatGPUCSRGetDeviceCSR(mat, *places))
    given = ()
    try:
        lengths = (A.getLocalSize()[0] + 1,) + 2 * (int(A.getInfo(A.InfoType.LOCAL)["nz_used"]),)
        given = tuple(_Array(a.value, n, t, t == "<f8", A, 1) for a, n, t in zip(arrays, lengths, ("<i4", "<i4", "<f8")))
        yield given
    finally:
        for array in given:
            array._open = False
        _check(library.MatGPUCSRRestoreDeviceCSR(mat, *places))


class _Source:
    """A contiguous array of one dimension of any library: address, length, typestr, readonly; it keeps the array"""

    def __init__(self, array, typestrs, name):
        about = getattr(array, "__cuda_array_interface__", None) or getattr(array, "__array_interface__", None)
        self.keep, dense = array, None
        if about:
            self.shape, self.typestr, (self.address, self.readonly) = tuple(about["shape"]), about["typestr"], about["data"]
            dense = about.get("strides") in (None, (int(self.typestr[2:]),))
        elif hasattr(array, "__dlpack__") or type(array).__name__ == "PyCapsule":
            dense = self._take(array, name)
        if dense is None or self.typestr not in typestrs or len(self.shape) != 1 or not (dense or self.shape[0] < 2):
            raise TypeError("%s has to be a contiguous array of one dimension and type %s, of the host or of the device" % (name, " or ".join(typestrs)))
        self.length = self.shape[0]

    def _take(self, array, name):
        if hasattr(array, "__dlpack__"):
            stream = {"stream": 1} if array.__dlpack_device__()[0] in (dlpack.CUDA, dlpack.CUDAMANAGED) else {}  # CUDA's default stream
            try:
                array = array.__dlpack__(max_version=(1, 0), **stream)
            except TypeError:  # from the time before versions
                array = array.__dlpack__(**stream)
        self.keep = t = dlpack.Taken(array)
        kind, number = t.device
        here = _device(_library()) if kind == dlpack.CUDA else number
        if kind not in (dlpack.CPU, dlpack.CUDA, dlpack.CUDAHOST, dlpack.CUDAMANAGED) or number != here:
            raise ValueError("%s is on DLPack's device %s, and this process computes on %s: copy it there" % (name, t.device, (dlpack.CUDA, here)))
        self.shape, self.typestr, self.address, self.readonly = t.shape, t.typestr, t.address, t.readonly
        return t.strides in (None, (1,))

    def pointer(self):
        return ctypes.c_void_p(self.address)


def _source(array, typestrs, name):
    return array if isinstance(array, _Source) else _Source(array, typestrs, name)


def device_vector(array, comm=None):
    """A Vec of type gpu with its entries of this process in `array`, without a copy. Each operation leaves its result there, also in an array of JAX, which JAX counts as constant. Who changes the
    array otherwise than in device_array() calls v.stateIncrease()"""
    from petsc4py import PETSc

    source = _source(array, ("<f8",), "the array")
    if source.readonly:
        raise ValueError("the array is only to be read")
    v = PETSc.Vec().create(comm)
    v.setSizes((source.length, None))
    v.setType("gpu")
    _check(_library().VecGPUPlaceArray(ctypes.c_void_p(v.handle), source.pointer()))
    v.setAttr("array", source)
    return v


def _pattern(A, i, j, pointers):
    """The functions of the library take 32 bits, from the device too; PETSc's takes its own integers, from the host"""
    from petsc4py import PETSc

    types = ("<i4",) if pointers or PETSc.IntType().itemsize == 4 else ("<i4", "<i8")
    i, j = _source(i, types, "i"), _source(j, types, "j")
    wanted = A.getLocalSize()[0] + 1 if pointers else j.length
    if i.length != wanted or i.typestr != j.typestr:
        raise ValueError("i has %d entries of type %s, not %d of type %s" % (i.length, i.typestr, wanted, j.typestr))
    name = "MatGPUCSRSetPreallocationCSR" if pointers else "MatGPUCSRSetPreallocationCOO" if i.typestr == "<i4" else "MatSetPreallocationCOO"
    _check(getattr(_library(), name)(ctypes.c_void_p(A.handle), ctypes.c_ssize_t(j.length), i.pointer(), j.pointer()))
    A.setAttr("contributions", j.length)


def coo_pattern(A, i, j):
    """Row i[k] and column j[k] of contribution k; negative ones are skipped"""
    _pattern(A, i, j, False)


def csr_pattern(A, i, j):
    """The pattern of this process' rows by pointers i, one more than rows, and columns j, which may be in any order and repeat"""
    _pattern(A, i, j, True)


def coo_values(A, v, add=False):
    """MatSetValuesCOO(): the contributions' values, as many as the pattern has"""
    source, length = _source(v, ("<f8",), "v"), A.getAttr("contributions")
    if length not in (None, source.length):
        raise ValueError("v has %d entries, the pattern has %d" % (source.length, length))
    _check(_library().MatSetValuesCOO(ctypes.c_void_p(A.handle), source.pointer(), 2 if add else 1))


def _matrix(sizes, pattern, i, j, v, comm):
    from petsc4py import PETSc

    A = PETSc.Mat().create(comm)
    A.setSizes(sizes)
    A.setType("gpucsr")
    A.setFromOptions()
    pattern(A, i, j)
    coo_values(A, v)
    return A


def coo_matrix(sizes, i, j, v, comm=None):
    """A Mat of these sizes, as of Mat.setSizes(): the sum of contributions v[k] to row i[k] and column j[k]"""
    return _matrix(sizes, coo_pattern, i, j, v, comm)


def csr_matrix(i, j, v, columns=None, comm=None):
    """A Mat of this process' rows, by row pointers i, columns j and values v; square, unless the number of all columns is given"""
    i = _source(i, ("<i4",), "i")
    if not i.length:
        raise ValueError("i has no entry: it needs one more than rows")
    rows = i.length - 1, None
    return _matrix((rows, rows if columns is None else (None, columns)), csr_pattern, i, j, v, comm)
