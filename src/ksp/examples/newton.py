"""newton.c in Python: a nonlinear Poisson equation by Newton's method. The values of the matrices are computed where the matrices are.

    export PYTHONPATH=python PETSC_OPTIONS="-dll_append $PWD/build/lib/libpetscgpucsr.so"
    python3 src/ksp/examples/newton.py -n 100 -mat_gpucsr_master device -ksp_type gpugmres -snes_monitor -mat_gpucsr_report

It needs petsc4py and NumPy. Without a GPU take -n 20. CuPy compiles the kernel of newton.cu and launches it. Without CuPy, Numba makes a kernel of tetrahedron(). On the host NumPy computes by the same function, with arrays in place of numbers.
"""
import os
import sys

import numpy
import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc
from gpucsr.arrays import coo_pattern, coo_values, device_array


def mesh(n):
    """The unit cube of n cubes a side, six tetrahedra each: corners of tetrahedra, numbers of points (-1 on the surface, where u is 0), coordinates of points"""
    path = numpy.array([[0, 1, 3, 7], [0, 1, 5, 7], [0, 2, 3, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 4, 6, 7]])
    z, y, x = numpy.indices((n, n, n)).reshape(3, -1, 1, 1)
    corner = x + path % 2 + (n + 1) * (y + path // 2 % 2 + (n + 1) * (z + path // 4))
    at = numpy.indices((n + 1, n + 1, n + 1)).reshape(3, -1)[::-1].T
    inside = ((at > 0) & (at < n)).all(axis=1)
    unknown = numpy.where(inside, numpy.cumsum(inside) - 1, -1)
    return corner.reshape(-1, 4).astype("i4"), unknown.astype("i4"), numpy.ascontiguousarray(at / n)


def tetrahedron(e, corner, unknown, point, u, tangent, v):
    """NewtonValues() of newton.h, for the number e of a tetrahedron or for a slice of all"""
    p0, p1, p2, p3 = corner[e, 0], corner[e, 1], corner[e, 2], corner[e, 3]
    x1, y1, z1 = point[p1, 0] - point[p0, 0], point[p1, 1] - point[p0, 1], point[p1, 2] - point[p0, 2]
    x2, y2, z2 = point[p2, 0] - point[p0, 0], point[p2, 1] - point[p0, 1], point[p2, 2] - point[p0, 2]
    x3, y3, z3 = point[p3, 0] - point[p0, 0], point[p3, 1] - point[p0, 1], point[p3, 2] - point[p0, 2]
    det = x1 * (y2 * z3 - z2 * y3) + y1 * (z2 * x3 - x2 * z3) + z1 * (x2 * y3 - y2 * x3)
    g1 = ((y2 * z3 - z2 * y3) / det, (z2 * x3 - x2 * z3) / det, (x2 * y3 - y2 * x3) / det)
    g2 = ((y3 * z1 - z3 * y1) / det, (z3 * x1 - x3 * z1) / det, (x3 * y1 - y3 * x1) / det)
    g3 = ((y1 * z2 - z1 * y2) / det, (z1 * x2 - x1 * z2) / det, (x1 * y2 - y1 * x2) / det)
    grad = ((-(g1[0] + g2[0] + g3[0]), -(g1[1] + g2[1] + g3[1]), -(g1[2] + g2[2] + g3[2])), g1, g2, g3)
    i0, i1, i2, i3 = unknown[p0], unknown[p1], unknown[p2], unknown[p3]
    values = (u[i0] * (i0 >= 0), u[i1] * (i1 >= 0), u[i2] * (i2 >= 0), u[i3] * (i3 >= 0))
    mean = (values[0] + values[1] + values[2] + values[3]) / 4
    for a in range(4):
        along = 0.0  # grad u times the gradient of corner a
        for c in range(4):
            along = along + values[c] * (grad[a][0] * grad[c][0] + grad[a][1] * grad[c][1] + grad[a][2] * grad[c][2])
        for b in range(4):
            both = grad[a][0] * grad[b][0] + grad[a][1] * grad[b][1] + grad[a][2] * grad[b][2]
            v[e, 4 * a + b] = abs(det) / 6 * ((1 + mean * mean) * both + tangent * mean / 2 * along)


def on_host(tables):
    def compute(u, tangent, v):
        tetrahedron(slice(None), *tables, numpy.asarray(u), tangent, numpy.asarray(v).reshape(-1, 16))

    return compute


def by_cupy(tables):
    import cupy

    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "newton.cu")) as source:
        kernel = cupy.RawModule(code=source.read(), options=("-I" + here,)).get_function("newton_kernel")
    elements, sent = len(tables[0]), tuple(cupy.asarray(t) for t in tables)

    def compute(u, tangent, v):
        kernel(((elements + 127) // 128,), (128,), (numpy.int32(elements), *sent, cupy.asarray(u), numpy.int32(tangent), cupy.asarray(v)))

    return compute


def by_numba(tables):
    from numba import cuda

    element, elements, sent = cuda.jit(device=True)(tetrahedron), len(tables[0]), tuple(cuda.to_device(t) for t in tables)

    @cuda.jit
    def kernel(corner, unknown, point, u, tangent, v):
        e = cuda.grid(1)
        if e < corner.shape[0]:
            element(e, corner, unknown, point, u, tangent, v)

    def compute(u, tangent, v):
        kernel[(elements + 127) // 128, 128](*sent, cuda.as_cuda_array(u), tangent, cuda.as_cuda_array(v).reshape(elements, 16))

    return compute


def on_gpu(tables):
    for by in by_cupy, by_numba:
        try:
            return by(tables)
        except ImportError:
            pass
    sys.exit("newton.py: there is a GPU, but neither CuPy nor Numba to compute there: pip install cupy-cuda12x, or pip install numba-cuda")


def vector(n):
    v = PETSc.Vec().create(PETSc.COMM_SELF)
    v.setSizes(n)
    v.setType("gpu")
    return v


def solve(n, f):
    """The solution, the Jacobian and the number of Newton's iterations"""
    tables = corner, unknown, _ = mesh(n)
    number = unknown[corner]
    i, j = (numpy.broadcast_to(k, (len(corner), 4, 4)).reshape(-1).copy() for k in (number[:, :, None], number[:, None, :]))
    unknowns = int(unknown.max()) + 1
    u, b, v = vector(unknowns), vector(unknowns), vector(16 * len(corner))
    b.set(f / n**3)  # each unknown has the volume of a cube
    with device_array(u) as d:
        compute = on_gpu(tables) if hasattr(d, "__cuda_array_interface__") else on_host(tables)

    def matrix():
        A = PETSc.Mat().create(PETSc.COMM_SELF)
        A.setSizes((unknowns, unknowns))
        A.setType("gpucsr")
        A.setFromOptions()
        coo_pattern(A, i, j)  # which skips negative numbers
        return A

    def assemble(u, tangent, A):
        with device_array(u, "r") as x, device_array(v, "w") as values:
            compute(x, tangent, values)
            coo_values(A, values)

    def function(snes, u, r):
        assemble(u, 0, P)
        P.mult(u, r)
        r.axpy(-1.0, b)

    P, J = matrix(), matrix()
    snes = PETSc.SNES().create(PETSc.COMM_SELF)
    snes.setFunction(function, b.duplicate())
    snes.setJacobian(lambda snes, u, J, B: assemble(u, 1, J), J)
    snes.getKSP().getPC().setType("jacobi")
    snes.setFromOptions()
    snes.solve(None, u)
    return u, J, snes.getIterationNumber()


if __name__ == "__main__":
    options = PETSc.Options()
    u, J, iterations = solve(options.getInt("n", 8), options.getReal("f", 40.0))
    print("unknowns  %d\noutcome   %d iterations\nsolution  at most %.4f" % (u.getSize(), iterations, u.norm(PETSc.NormType.INFINITY)))
