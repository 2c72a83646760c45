"""gpucsr: sparse matrices, vectors and solvers on NVIDIA GPUs for PETSc.

Importing this module changes no settings. A program passes options() to PETSc:

    import petsc4py, gpucsr
    petsc4py.init(gpucsr.options().split())

or, in a shell: export PETSC_OPTIONS="$(python -m gpucsr --options)"
"""
from pathlib import Path

try:
    from ._built import petsc, version as __version__
except ImportError:  # in a clone, with PYTHONPATH=python
    petsc = __version__ = None

__all__ = ["library", "options", "petsc"]


def library():
    """Path of libpetscgpucsr.so, for -dll_append: in the wheel, or in build/ of a clone"""
    package = Path(__file__).resolve().parent
    return str((package if petsc else package.parents[1] / "build") / "lib" / "libpetscgpucsr.so")


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
