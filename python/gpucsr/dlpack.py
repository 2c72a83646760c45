"""DLPack's capsules of arrays of one dimension, made and taken by ctypes. A capsule is used once: who takes it renames it, and calls its deleter when the array goes."""

import ctypes

CPU, CUDA, CUDAHOST, CUDAMANAGED = 1, 2, 3, 13
KINDS = "iufVVcb"  # of numbers, by DLPack's code
READONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NAMES = {b"dltensor": (_Managed, b"used_dltensor"), b"dltensor_versioned": (_Versioned, b"used_dltensor_versioned")}  # a capsule keeps the pointer to its name
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
# of a capsule by its address: its destructor must not count references
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))

_given = {}  # what capsules have given, by address: the structure, its shape, and the owner of the memory


@_DELETER
def _delete(address):
    _given.pop(address, None)


@_DELETER
def _unused(capsule):
    """The destructor of a capsule: frees what nobody has taken"""
    for name in _NAMES:
        if _valid(capsule, name):
            _delete(_pointer(capsule, name))


def capsule(address, length, typestr, device, readonly, max_version, owner):
    """A capsule of an array; `owner` lives as long as a user of it. Before version 1.0 a capsule cannot say that an array is only to be read"""
    versioned = max_version is not None and max_version[0] >= 1
    if readonly and not versioned:
        raise BufferError("the array is only to be read, which DLPack before version 1.0 cannot say: ask for the mode rw, or use __cuda_array_interface__")
    name = b"dltensor_versioned" if versioned else b"dltensor"
    managed, shape = _NAMES[name][0](), (ctypes.c_int64 * 1)(length)
    managed.tensor = _Tensor(address, device, 1, KINDS.index(typestr[1]), 8 * int(typestr[2:]), 1, shape, None, 0)
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    if versioned:
        managed.version[:], managed.flags = (1, 0), READONLY if readonly else 0
    place = ctypes.addressof(managed)
    _given[place] = managed, shape, owner
    return _new(place, name, ctypes.cast(_unused, ctypes.c_void_p))


class Taken:
    """An array from a capsule: address, shape, strides in entries or None, typestr, device and readonly. The capsule's owner keeps the memory until this object goes"""

    def __init__(self, given):
        self._deleter = None
        for name, (kind, used) in _NAMES.items():
            if type(given).__name__ == "PyCapsule" and _valid(id(given), name):
                self._place = _pointer(id(given), name)
                managed = kind.from_address(self._place)
                _rename(id(given), used)
                break
        else:
            raise ValueError("the capsule has no array, or was used before")
        self._deleter = managed.deleter
        t = managed.tensor
        self.address, self.shape = (t.data or 0) + t.offset, tuple(t.shape[: t.ndim])
        self.strides = tuple(t.strides[: t.ndim]) if t.strides else None
        self.typestr = "<%s%d" % (KINDS[t.code] if t.code < len(KINDS) and t.lanes == 1 else "V", t.bits // 8)
        self.device = tuple(t.device)
        self.readonly = kind is _Versioned and bool(managed.flags & READONLY)

    def __del__(self):
        if self._deleter:
            _DELETER(self._deleter)(self._place)
