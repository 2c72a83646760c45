"""A slepc4py program that knows nothing of this library: t701-slepc4py.sh runs it with different options.

Eigenvalues, singular values and a matrix function of convection-diffusion and Laplace matrices, by several methods, each printed with a residual bound
that must not depend on where the products run.
"""
import sys
import slepc4py

slepc4py.init(sys.argv)
from petsc4py import PETSc
from slepc4py import SLEPc


def matrix(k, c):
    A = PETSc.Mat().create()
    A.setSizes((k * k, k * k))
    A.setFromOptions()
    A.setUp()
    start, end = A.getOwnershipRange()
    for row in range(start, end):
        i, j = divmod(row, k)
        A[row, row] = 5.0
        if i > 0:
            A[row, row - k] = -1.5
        if i < k - 1:
            A[row, row + k] = -1.5
        if j > 0:
            A[row, row - 1] = -1.0 - c
        if j < k - 1:
            A[row, row + 1] = -1.0 + c
    A.assemble()
    return A


def eigenvalues(A, symmetric, method, which, nev=3, B=None):
    E = SLEPc.EPS().create()
    E.setOperators(A, B)
    if B is not None:
        E.setProblemType(SLEPc.EPS.ProblemType.GHEP)
    else:
        E.setProblemType(SLEPc.EPS.ProblemType.HEP if symmetric else SLEPc.EPS.ProblemType.NHEP)
    E.setType(method)
    E.setWhichEigenpairs(which)
    E.setDimensions(nev)
    E.setTolerances(1e-8, 5000)
    E.setFromOptions()
    E.solve()
    found = E.getConverged()
    worst = max((E.computeError(k, SLEPc.EPS.ErrorType.RELATIVE) for k in range(min(nev, found))), default=1)
    x, y = A.createVecs()
    if found:
        E.getEigenvector(0, x)
        A.mult(x, y)
        B.mult(x, z := y.duplicate()) if B is not None else x.copy(z := y.duplicate())
        if symmetric:
            y.axpy(-E.getEigenvalue(0).real, z)
            worst = max(worst, y.norm() / (1 + abs(E.getEigenvalue(0))))
    values = " ".join("%.5f" % abs(E.getEigenvalue(k)) for k in range(min(nev, found)))
    PETSc.Sys.Print("eps", method, B is not None, "converged" if found >= nev and worst < 1e-6 else "failed", values)


k = 9
L, C = matrix(k, 0.0), matrix(k, 0.3)
T = SLEPc.EPS.Type
W = SLEPc.EPS.Which
for method in T.KRYLOVSCHUR, T.LOBPCG, T.JD:
    eigenvalues(L, True, method, W.SMALLEST_REAL if method == T.LOBPCG else W.LARGEST_MAGNITUDE)
for method in T.KRYLOVSCHUR, T.ARNOLDI:
    eigenvalues(C, False, method, W.LARGEST_MAGNITUDE)
M = matrix(k, 0.0)
M.shift(1.0)
eigenvalues(L, True, T.KRYLOVSCHUR, W.LARGEST_MAGNITUDE, 3, M)

S = SLEPc.SVD().create()
S.setOperator(C)
S.setDimensions(2)
S.setFromOptions()
S.solve()
PETSc.Sys.Print("svd", "converged" if S.getConverged() >= 2 else "failed", " ".join("%.5f" % S.getValue(i) for i in range(2)))

F = SLEPc.MFN().create()
F.setOperator(L)
F.getFN().setType(SLEPc.FN.Type.EXP)
F.getFN().setScale(-0.1)
F.setFromOptions()
b, y = L.createVecs()
b.set(1.0)
F.solve(b, y)
PETSc.Sys.Print("mfn", "converged" if F.getConvergedReason() > 0 else "failed", "%.6f" % y.norm())
