"""A petsc4py program that knows nothing of this library: t700-petsc4py.sh runs it with different PETSC_OPTIONS.

Solves a 2-D Poisson problem, once with a matrix whose type the options choose and once with an AIJ matrix, and prints what must not depend on
where the products run.
"""
import sys
import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc


def fill(A, k):
    A.setUp()
    start, end = A.getOwnershipRange()
    for row in range(start, end):
        i, j = divmod(row, k)
        A[row, row] = 4.0
        if i > 0:
            A[row, row - k] = -1.0
        if i < k - 1:
            A[row, row + k] = -1.0
        if j > 0:
            A[row, row - 1] = -1.0
        if j < k - 1:
            A[row, row + 1] = -1.0
    A.assemble()


k = 20
for choice in "options", "aij":
    A = PETSc.Mat().create()
    A.setSizes((k * k, k * k))
    if choice == "aij":
        A.setType(PETSc.Mat.Type.AIJ)
    else:
        A.setFromOptions()
    fill(A, k)
    x, b = A.createVecs()
    b.set(1.0)
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setType(PETSc.KSP.Type.CG)
    ksp.getPC().setType(PETSc.PC.Type.JACOBI)
    ksp.setTolerances(rtol=1e-8)
    ksp.solve(b, x)
    r = b.duplicate()
    A.multTranspose(x, r)
    r.aypx(-1.0, b)
    PETSc.Sys.Print(choice, ksp.getIterationNumber(), ksp.getConvergedReason(), r.norm() < 1e-6 * b.norm())


class Diagonal:
    """A matrix that only multiplies: PETSc's general way makes a MATAIJ of it"""

    def mult(self, A, x, y):
        x.copy(y)
        y.scale(3.0)


P = PETSc.Mat().createPython((12, 12), Diagonal(), comm=PETSc.COMM_SELF)
P.setUp()
PETSc.Sys.Print("aij of python", P.convert(PETSc.Mat.Type.AIJ, PETSc.Mat()).norm() ** 2)
