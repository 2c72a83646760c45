"""The device's array of a petsc4py vector, in place, for CuPy, PyTorch, Numba, or any other library that knows __cuda_array_interface__.

    from devicearray import device_array

    with device_array(x) as d:          # to read and to write; device_array(x, "r") and "w" cost less
        cupy.asarray(d)[:] *= 2.0       # no copy: PETSc's operations and products see it
        torch.as_tensor(d, device="cuda")

The vector must be a VECGPU: one that MatCreateVecs() of a gpucsr matrix gives on a GPU (x, b = A.createVecs()), or of type gpu. An array that CuPy or PyTorch
made from d offers DLPack (__dlpack__) by itself. Use none of them after the block: it ends by saying that the vector has changed. On the host backend the array
is one of the host, and d has __array_interface__ (numpy.asarray(d)).

The library is the one that PETSc has loaded (-dll_append); nothing else is needed.
"""
import ctypes
from contextlib import contextmanager


def _library():
    """libpetscgpucsr as PETSc has it, by the name under which it is mapped"""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if "libpetscgpucsr" in path:
                return ctypes.CDLL(path)
    raise RuntimeError("libpetscgpucsr is not loaded: add -dll_append libpetscgpucsr.so to PETSC_OPTIONS")


def _check(ierr):
    if ierr:
        raise RuntimeError("PETSc error %d" % ierr)


class _Array:
    """A pointer with the attributes that other libraries read"""

    def __init__(self, address, length, writable, stream):
        about = {"shape": (length,), "typestr": "<f8", "data": (address or 0, not writable), "version": 3}
        if stream is None:
            self.__array_interface__ = about
        else:
            # # users of the array order their work after this stream; 1 is CUDA's default stream, 0 is not allowed
            self.__cuda_array_interface__ = dict(about, stream=stream or 1)


@contextmanager
def device_array(v, mode="rw"):
    """The array on the device of a Vec: mode "rw" has the entries and changes them, "r" only reads, "w" writes all of them"""
    library = _library()
    suffix = {"rw": "", "r": "Read", "w": "Write"}[mode]
    vec, array, stream = ctypes.c_void_p(v.handle), ctypes.c_void_p(), ctypes.c_void_p()
    _check(library.VecGPUGetStream(vec, ctypes.byref(stream)))
    _check(getattr(library, "VecGPUGetArray" + suffix)(vec, ctypes.byref(array)))
    try:
        yield _Array(array.value, v.getLocalSize(), mode != "r", stream.value)
        if stream.value:  # another library works on streams of its own
            _check(library.VecGPUSynchronize(vec))
    finally:
        _check(getattr(library, "VecGPURestoreArray" + suffix)(vec, ctypes.byref(array)))
