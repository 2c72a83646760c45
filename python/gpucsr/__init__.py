"""gpucsr: sparse matrices, vectors and solvers on NVIDIA GPUs for PETSc.

Importing this module changes no settings. A program passes options() to PETSc:

    import petsc4py, gpucsr
    petsc4py.init(gpucsr.options().split())

or, in a shell: export PETSC_OPTIONS="$(python -m gpucsr --options)"
"""
import os

try:
    from ._built import libdir, petsc, version as __version__
except ImportError:  # in a clone, with PYTHONPATH=python
    libdir, petsc, __version__ = "../../build/lib", None, None

__all__ = ["library", "options", "petsc"]


def library():
    """Path of libpetscgpucsr.so, for -dll_append: the wheel's or the installed one, in a clone that of build/"""
    return os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), libdir, "libpetscgpucsr.so"))


def options(mat_type=False, solver=None):
    """Options that make PETSc use the GPU, as one string.

    mat_type: False for programs that request AIJ by name or have a DM (works for all programs); True for programs that call MatSetFromOptions()
    solver:   "gpucg" or "gpubcgs" to iterate on the GPU as well
    """
    words = ["-dll_append", library()]
    words += ["-mat_type", "gpucsr"] if mat_type else ["-mat_seqaij_type", "seqaijgpucsr", "-dm_mat_type", "gpucsr"]
    if solver:
        words += ["-ksp_type", solver]
    return " ".join(words)
