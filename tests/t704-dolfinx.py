"""What a FEniCSx user writes: Poisson and elasticity on unstructured meshes, with ghosted vectors, solved by PETSc. Prints numbers to six digits, the same for any type of matrix and vector."""
import numpy
from mpi4py import MPI
import ufl
from dolfinx import fem, mesh
from dolfinx.fem import petsc
from petsc4py import PETSc

comm = MPI.COMM_WORLD


def ghosts_off(comm, u):
    """By how much what a rank has of others' entries differs from what they have. Sums over the ranks' parts would tell of the partition, which is another in every run"""
    index, bs = u.function_space.dofmap.index_map, u.function_space.dofmap.index_map_bs
    owned = index.size_local * bs
    with u.vector.localForm() as local:
        mine = local.array_r.copy()
    everyone = numpy.concatenate(comm.allgather(mine[:owned]))
    theirs = (numpy.asarray(index.ghosts)[:, None] * bs + numpy.arange(bs)).ravel()
    return float(numpy.abs(mine[owned:] - everyone[theirs]).max(initial=0))


def solve(name, V, a, L, marker, fixed, **options):
    """Assembled as the tutorials do: conditions lifted, ghosts added up"""
    dofs = fem.locate_dofs_topological(V, V.mesh.topology.dim - 1, marker)
    bc = fem.dirichletbc(fixed, dofs, V)
    a, L = fem.form(a), fem.form(L)
    A = petsc.create_matrix(a)
    b = petsc.create_vector(L)
    u = fem.Function(V)
    ksp = PETSc.KSP().create(comm)
    ksp.setOptionsPrefix(name + "_")
    for key, value in {"ksp_type": "cg", "pc_type": "jacobi", "ksp_rtol": 1e-10, **options}.items():
        PETSc.Options()[f"{name}_{key}"] = value
    ksp.setFromOptions()
    for step in range(2):  # once more, into the same objects
        A.zeroEntries()
        petsc.assemble_matrix(A, a, bcs=[bc])
        A.assemble()
        with b.localForm() as local:
            local.set(0)
        petsc.assemble_vector(b, L)
        petsc.apply_lifting(b, [a], [[bc]])
        b.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
        petsc.set_bc(b, [bc])
        ksp.setOperators(A)
        ksp.solve(b, u.vector)
        u.x.scatter_forward()
        energy = comm.allreduce(fem.assemble_scalar(fem.form(ufl.inner(u, u) * ufl.dx)), op=MPI.SUM)
        off = comm.allreduce(ghosts_off(comm, u), op=MPI.MAX)
        norm = u.vector.norm()
        if comm.rank == 0:
            print(f"{name}: converged {ksp.getConvergedReason() > 0}, norm {norm:.6g}, integral {energy:.6g}, ghosts off by {off:g}")
    if PETSc.Options().hasName("types") and comm.rank == 0:
        print(f"types {name}: {A.getType()} {b.getType()} {u.vector.getType()}")


square = mesh.create_unit_square(comm, 24, 24)
V = fem.FunctionSpace(square, ("Lagrange", 1))
u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
x = ufl.SpatialCoordinate(square)
facets = mesh.locate_entities_boundary(square, 1, lambda x: x[0] < 1e-12)
solve("poisson", V, ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, ufl.inner(x[0] * (1 + x[1]), v) * ufl.dx, facets, PETSc.ScalarType(0.5))
solve("gamg", V, ufl.inner((1 + x[0]) * ufl.grad(u), ufl.grad(v)) * ufl.dx, ufl.inner(x[1], v) * ufl.dx, facets, PETSc.ScalarType(0), pc_type="gamg")

cube = mesh.create_box(comm, [[0.0, 0.0, 0.0], [4.0, 1.0, 1.0]], [8, 3, 3])
W = fem.VectorFunctionSpace(cube, ("Lagrange", 1))
u, v = ufl.TrialFunction(W), ufl.TestFunction(W)
strain = ufl.sym(ufl.grad(u))
stress = 2 * 1.0 * strain + 1.25 * ufl.tr(strain) * ufl.Identity(3)
facets = mesh.locate_entities_boundary(cube, 2, lambda x: x[0] < 1e-12)
load = fem.Constant(cube, PETSc.ScalarType((0, 0, -0.1)))

solve("elasticity", W, ufl.inner(stress, ufl.sym(ufl.grad(v))) * ufl.dx, ufl.inner(load, v) * ufl.dx, facets, numpy.zeros(3, dtype=PETSc.ScalarType))
