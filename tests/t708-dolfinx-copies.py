"""A linear and a nonlinear problem as a user of FEniCSx writes them, by its classes for both: t708-dolfinx-copies.py METHOD PRECONDITIONER. Prints iterations and norms."""
import sys
import numpy
import ufl
from mpi4py import MPI
from dolfinx import fem, mesh, nls
from dolfinx.fem import petsc  # noqa: F401, found as fem.petsc
import dolfinx.nls.petsc  # noqa: F401
from petsc4py import PETSc

comm = MPI.COMM_WORLD
options = {"ksp_type": sys.argv[1], "pc_type": sys.argv[2], "ksp_rtol": 1e-9}


def fixed(V, side, value):
    facets = mesh.locate_entities_boundary(V.mesh, V.mesh.topology.dim - 1, lambda x: numpy.isclose(x[0], side))
    return fem.dirichletbc(value, fem.locate_dofs_topological(V, V.mesh.topology.dim - 1, facets), V)


def tell(name, u, *numbers):
    norm = u.vector.norm()
    if comm.rank == 0:
        print(name, *numbers, f"norm {norm:.6g}")


# -div((1 + x y) grad u) = sin(5 y), u = 0 at one side
square = mesh.create_unit_square(comm, 20, 20)
V = fem.FunctionSpace(square, ("Lagrange", 2))
u, v, x = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.SpatialCoordinate(square)
flow = fem.petsc.LinearProblem((1 + x[0] * x[1]) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, ufl.sin(5 * x[1]) * v * ufl.dx,
                               bcs=[fixed(V, 0.0, PETSc.ScalarType(0))], petsc_options=options)
for k in range(2):
    tell("poisson:", flow.solve())

# a bar of rubber, pulled: the least of mu/2 (tr C - 3 - 2 ln J) + lambda/2 (ln J)^2
bar = mesh.create_box(comm, [[0.0, 0.0, 0.0], [2.0, 1.0, 1.0]], [8, 4, 4])
W = fem.VectorFunctionSpace(bar, ("Lagrange", 1))
u = fem.Function(W)
F = ufl.Identity(3) + ufl.grad(u)
J = ufl.det(F)
energy = (2.0 * (ufl.tr(F.T * F) - 3 - 2 * ufl.ln(J)) + 1.5 * ufl.ln(J) ** 2) * ufl.dx
pulled = [fixed(W, 0.0, numpy.zeros(3, dtype=PETSc.ScalarType)), fixed(W, 2.0, numpy.array([0.3, 0.1, 0.0], dtype=PETSc.ScalarType))]
newton = nls.petsc.NewtonSolver(comm, fem.petsc.NonlinearProblem(ufl.derivative(energy, u), u, bcs=pulled))
ksp = newton.krylov_solver
ksp.setOptionsPrefix("newton_")
for key, value in options.items():
    PETSc.Options()["newton_" + key] = value
ksp.setFromOptions()
steps, converged = newton.solve(u)
tell("hyperelastic:", u, steps, converged)
