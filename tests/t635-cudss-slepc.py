"""A slepc4py program that knows nothing of this library: t635-cudss-slepc.sh runs it with PETSc's factors and with those of cuDSS.

Shift-and-invert of symmetric, unsymmetric and generalized problems, and all eigenvalues of an interval by spectrum slicing, which counts with the inertia.
"""
import sys
import slepc4py

slepc4py.init(sys.argv)
from petsc4py import PETSc
from slepc4py import SLEPc


def matrix(k, c, diagonal):
    A = PETSc.Mat().create(PETSc.COMM_SELF)
    A.setSizes((k * k, k * k))
    A.setFromOptions()
    A.setUp()
    for row in range(k * k):
        i, j = divmod(row, k)
        A[row, row] = diagonal + 0.01 * i
        for off, there, v in ((-k, i > 0, -1), (k, i < k - 1, -1), (-1, j > 0, -1 - c), (1, j < k - 1, -1 + c)):
            if there:
                A[row, row + off] = v
    A.assemble()
    if not c:
        A.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    return A


def solve(name, A, B, kind, sigma=None, interval=None):
    E = SLEPc.EPS().create(PETSc.COMM_SELF)
    E.setOperators(A, B)
    E.setProblemType(kind)
    E.setDimensions(4)
    E.setTolerances(1e-10, 500)
    st = E.getST()
    st.setType("sinvert")
    if interval:
        E.setWhichEigenpairs(SLEPc.EPS.Which.ALL)
        E.setInterval(*interval)
        st.getKSP().setType("preonly")
        st.getKSP().getPC().setType("cholesky")
    else:
        E.setTarget(sigma)
        E.setWhichEigenpairs(SLEPc.EPS.Which.TARGET_MAGNITUDE)
    E.setFromOptions()
    E.solve()
    found = E.getConverged()
    worst = max((E.computeError(k, SLEPc.EPS.ErrorType.RELATIVE) for k in range(found)), default=1)
    values = sorted(E.getEigenvalue(k).real for k in range(found if interval else min(4, found)))
    PETSc.Sys.Print(name, "right" if worst < 1e-8 else "failed", " ".join("%.6f" % v for v in values))


P = SLEPc.EPS.ProblemType
A, B, C = matrix(12, 0, 4.0), matrix(12, 0, 9.0), matrix(12, 0.2, 4.0)
solve("symmetric", A, None, P.HEP, sigma=1.5)
solve("unsymmetric", C, None, P.NHEP, sigma=1.5)
solve("generalized", A, B, P.GHEP, sigma=0.3)
solve("slices", A, None, P.HEP, interval=(1.0, 2.2))
