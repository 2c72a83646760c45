#!/usr/bin/env python3
"""
The model of M. Verschoor and A. C. Jalba (Parallel Computing 38, 2012) of the time of conjugate gradients on one and several GPUs: docs/results/cgmodel.md and its plot.

    cgmodel.py [-o FOLDER] [SAMPLES[.xz]]     the page; NumPy
    cgmodel.py -check                         the formulas against numbers worked out by hand from the paper's parameters; Python alone

Throughput of a kernel that moves m numbers: B(m) = nu / (1 + exp(-(log2 m - mu) / sigma)), its time 4 m / B(m) in single. As that is (4 / nu) (m + m (2^mu / m)^k) with
k = 1 / (sigma ln 2), the curve is a latency and a bandwidth where sigma is 1.44, which it nearly is in all their fits, and linear in two unknowns for a given k: so it is fitted here.
"""
import argparse, math, os, re, sys

# mu, sigma, nu in GB/s, and numbers moved for each of the vector
STEPS = {"CG2": (19, 1.45, 117, 2), "CG3": (19, 1.45, 120, 3), "CG4": (19.3, 1.45, 116, 9), "CG5": (19.2, 1.45, 106, 6)}
REDUCTION = (19.7, 1.4, 120)
BETWEEN = (16.7, 1.4, 10)
MEETING = 35.0  # us
SPMV = {
    "max": {1: (19, 1.2, 85), 2: (19.6, 1.4, 135), 4: (19.9, 1.4, 140), 8: (20.11, 1.5, 145)},
    "average": {1: (19.08, 1.35, 52.12), 2: (19.65, 1.15, 80.92), 4: (20.39, 1.28, 117.70), 8: (20.81, 1.51, 132.39)},
}
# x, e, parameters of 4 by 4 blocks; T, SpMV, CG2 to CG5, a reduction, between two GPUs, T of two, GFLOP/s of one and of two, speed-up
CHECKS = (
    ((72000, 28715634, "max"), (1895.5, 1665.6, 130.9, 33.0, 99.8, 1288.1, 30.87, 45.42, 1.472)),
    ((72000, 28715634, "average"), (2210.8, 1980.8, 130.9, 33.0, 99.8, 1450.1, 26.47, 40.35, 1.525)),
    ((10000, 100000, "max"), (220.0, 35.1, 86.4, 32.8, 52.8, 408.4, 1.59, 0.86, 0.539)),
    ((1000000, 10000000, "max"), (1568.0, 596.9, 786.4, 61.6, 838.9, 1860.8, 22.32, 18.81, 0.843)),
)


def time(m, curve):
    """Microseconds of a kernel that moves m numbers of 4 bytes"""
    mu, sigma, nu = curve
    return 4e-3 * m / nu * (1 + math.exp(-(math.log2(m) - mu) / sigma))


def iteration(x, e, spmv):
    """Its parts on one GPU: product, vector operations, a reduction (there are three)"""
    return time(2 * e, spmv), sum(time(n * x, (mu, sigma, nu)) for mu, sigma, nu, n in STEPS.values()), time(x, REDUCTION)


def total(x, e, spmv):
    a, v, r = iteration(x, e, spmv)
    return a + v + 3 * r


def several(n, x, e, spmv):
    """On n GPUs of equal parts, every one with the whole vector, exchanged through the host"""
    return total(x / n, e / n, spmv) + time(n * x, BETWEEN) + 4 * MEETING


def rate(x, e, t):
    """GFLOP/s without regard to the zeros that blocks hold"""
    return (2 * e + 15 * x) * 1e-3 / t


def check():
    bad = 0
    for (x, e, name), want in CHECKS:
        c = SPMV[name][4]
        one, two = total(x, e, c), several(2, x, e, c)
        got = (one, *iteration(x, e, c), time(2 * x, BETWEEN), two, rate(x, e, one), rate(x, e, two), one / two)
        for g, w in zip(got, want):
            digits = len(("%s" % w).split(".")[1])
            if abs(g - w) > 0.51 * 10**-digits:  # the last digit that is given
                print("x %d, e %d, %s: %g, not %g" % (x, e, name, g, w))
                bad += 1
    today = Today((2.5, 0.3, 0.3), *BLOCKS4[:1], 1)  # each constant that the formula takes is a row of sys/machine.h
    for x, e in ((1000, 10000), (72000, 28715634)):
        today.several(2, x, e, x / 2)
    return bad


def fits(s, q):
    """Of the samples q: (name, parameters in words, predicted times) of the sigmoid, of two plateaux, and of the profile's two"""
    import numpy as np
    import clock
    import samples as S

    size = s.number[q]
    m = 1e6 * (s.matrix[q] + s.vectors[q]) / size  # numbers moved
    bytes_ = m * size
    solve = lambda X: clock.nonnegative(X / s.us[q][:, None], np.ones(len(q)))
    best = None
    for k in np.arange(0.2, 1.51, 0.02):
        X = np.column_stack([bytes_, bytes_ * m**-k])
        c = solve(X)
        e = np.mean((X @ c / s.us[q] - 1) ** 2)
        if c[0] > 0 and c[1] > 0 and (best is None or e < best[0]):
            best = (e, k, c, X @ c)
    _, k, c, t = best
    mu, sigma, nu = math.log2(c[1] / c[0]) / k, 1 / (k * math.log(2)), 1e-3 / c[0]
    out = [("sigmoid", "µ %.1f, σ %.2f, ν %.0f GB/s" % (mu, sigma, nu), t)]
    moved, C = bytes_ / 1e6, s.cache[q]
    few, many = 0.4 * C, 1.2 * C
    kept = moved * np.clip(np.log(many / moved) / np.log(3), 0, 1)
    for name, inner in (("two plateaux", np.minimum(moved, C)), ("what the cache keeps", kept)):
        X = np.column_stack([np.ones(len(q)), inner, moved - inner])
        c = solve(X)
        out.append((name, "t₀ %.1f us, ν₁ %s, ν₂ %s GB/s" % (c[0], *["%.0f" % (1e3 / v) if v > 0 else "∞" for v in c[1:]]), X @ c))
    return out


# ---- today's GPUs: the formula of -mat_gpucsr_advise, with the constants of sys/machine.h, and the paper's own equations with today's curves ----


def constants():
    """NAME: number, in seconds and bytes a second, of the rows of sys/machine.h"""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sys", "machine.h")) as f:
        return {n: float(v) for n, v in re.findall(r"ROW\((\w+), ([0-9.][0-9.e+-]*),", f.read())}


class Today:
    """Microseconds of an iteration of gpucg; product: (t0, us a MB within the cache, and beyond) of some format, bytes: of a product of x rows and e entries in it"""

    CACHE, ROWS = 62.9, 32  # MB; rows of a block of the cluster at least

    def __init__(self, product, bytes_, multiple):
        self.c, self.curve, self.bytes, self.multiple = constants(), product, bytes_, multiple

    def product(self, x, e):
        mb, (t0, inner, outer) = 1e-6 * self.bytes(x, e), self.curve
        return t0 + inner * min(mb, self.CACHE) + outer * max(0, mb - self.CACHE)

    def vectors(self, x, matrix):
        c, mb = self.c, 8e-6 * x
        kept = min(1, max(0, self.CACHE - matrix) / (5 * mb + 1e-9))
        return c["persistent_passes"] * mb * 1e12 * (kept / c["persistent_cached_rate"] + (1 - kept) / c["persistent_rate"])

    def one(self, x, e, product=None):
        c = self.c
        product = self.product(x, e) if product is None else product
        if e < c["cluster_entries"]:
            product = 1e6 * c["cluster_entry"] * e / min(c["cluster_blocks"], math.ceil(x / self.ROWS))
        else:
            product = 1e6 * c["meeting_all"] + self.multiple * max(0, product - 1e6 * c["product_launch"])
        return 1e6 * (c["meeting"] + c["persistent_entry"] * e / x) + product + self.vectors(x, 1e-6 * self.bytes(x, e))

    def several(self, n, x, e, halo):
        """halo: numbers that a GPU gets from the others"""
        return 1e6 * self.c["meeting_ranks"] + self.one(x / n, e / n) + 8e6 * halo / self.c["link_rate"]


BLOCKS4 = (lambda x, e: e * (8 + 4 / 16) + 20 * x, "product_gathered")  # 4 by 4: values, a column for sixteen
DIAGONALS = (lambda x, e: 8 * e + 16 * x, "product_diagonals")


def fastest(s, format, single):
    """Of each product the sample of that format's fastest kernel"""
    import numpy as np

    q = np.array([k for k in range(s.n) if s.words[k][3] == format and s.single[k] == single])
    q = q[np.lexsort((s.us[q], s.product[q]))]
    return q[np.unique(s.product[q], return_index=True)[1]]


def plateaux(s, format):
    """The curve of a format's products in double, and how far it is off"""
    import numpy as np
    import clock

    q = fastest(s, format, False)
    moved = s.matrix[q] + s.vectors[q]
    X = np.column_stack([np.ones(len(q)), np.minimum(moved, Today.CACHE), np.maximum(0, moved - Today.CACHE)])
    c = clock.nonnegative(X / s.us[q][:, None], np.ones(len(q)))
    return c, np.abs(X @ c / s.us[q] - 1).mean()


def sigmoid(m, us, squares=True):
    """mu, sigma, nu in GB/s of the curve over numbers of 8 bytes whose errors' squares (or whose errors) are the least; None where it has no start or no rate"""
    import numpy as np
    import clock

    best = None
    for k in np.arange(0.2 if squares else 0.5, 1.51, 0.02):
        X = np.column_stack([8 * m, 8 * m * m**-k])
        c = clock.nonnegative(X / us[:, None], np.ones(len(us)))
        e = np.abs(X @ c / us - 1)
        e = (e**2).mean() if squares else e.mean()
        if c.min() > 0 and (best is None or e < best[0]):
            best = (e, (math.log2(c[1] / c[0]) / k, 1 / (k * math.log(2)), 1e-3 / c[0]))
    return best and best[1]


class Equations:
    """Equations 4 and 9 in double with today's curves: products of CSR, VecPointwiseMult for each of CG2 to CG5, VecNorm for a reduction, a copy to another GPU"""

    MEET = 0.4  # us of MPI_Allreduce() of two ranks of a host (docs/results/vectors.md)

    def __init__(self, s):
        import numpy as np
        import records as R

        q = fastest(s, "csr", False)
        self.spmv = sigmoid(1e6 * (s.matrix[q] + s.vectors[q]) / 8, s.us[q])
        rows = R.load("vec-sizes", "vec")
        for name, op in (("step", "VecPointwiseMult"), ("reduction", "VecNorm 1 and 2")):
            v = [r for r in rows if r["op"] == op]
            us = np.array([r["us"] for r in v])
            setattr(self, name, sigmoid(1e3 * np.array([r["gbs"] for r in v]) * us / 8, us, False))
        v = [r for r in R.load("bandwidth", "copy") if r["way"] == "peer" and r["bytes"] >= 8]
        self.link = sigmoid(np.array([r["bytes"] for r in v]) / 8, np.array([r["us"] for r in v]), False)

    def one(self, x, moved):
        """moved: bytes of a product"""
        at = lambda m, curve: 2 * time(m, curve)  # 8 bytes for 4
        return at(moved / 8, self.spmv) + sum(at(n * x, self.step) for *_, n in STEPS.values()) + 3 * at(x, self.reduction)

    def several(self, n, x, moved):
        """Peers reach each other's memory, so a copy is of x numbers"""
        return self.one(x / n, moved / n) + 2 * time(x, self.link) + 4 * self.MEET


def one_gpu():
    """Of a run of places: [rows, entries, measured, predicted, 1, MB, format, record] by the profile's time of the product"""
    import records as R

    c, out = constants(), []
    for r in R.load("definite", "place"):
        if r.get("cg_solver", 0) > 0:
            f = r["format"]
            multiple = c["product_diagonals"] if f in ("dia", "stencil") else c["product_csr"] if f.startswith(("tile", "narrow")) else c["product_gathered"]
            t = Today(None, lambda x, e, r=r: r["advised_bytes"] - 16 * r["rows"], multiple)
            out.append((r["rows"], r["nnz"], r["cg_solver"], t.one(r["rows"], r["nnz"], r["advised_kernel_product"]), 1, 1e-6 * r["advised_bytes"], f, r))
    return out


def edge(points):
    """How far the model is off where the matrix and its vectors are about as large as the last-level cache, and elsewhere; points: of one_gpu()"""
    import numpy as np

    off, mb = np.array([[abs(p[3] / p[2] - 1), p[5]] for p in points]).T
    at = (mb > 30) & (mb < 100)
    return ["Of the matrices on one GPU the %d that take 30 to 100 MB (the last-level cache has 63) are off by %.1f %% in the mean, and the other %d by %.1f %%." % (at.sum(), 100 * off[at].mean(), (~at).sum(), 100 * off[~at].mean())]


def two_gpus(ksp):
    """Records of two GPUs with that solver whose matrices are held by diagonals, the last of each matrix"""
    import records as R
    import samples as S

    rows = [r for name in ("ranks", "several-gpus") for r in R.load(os.path.join(S.RESULTS, name + ".jsonl"), "ranks")]
    return list({r["matrix"]: r for r in rows if r.get("ksp") == ksp and r["ranks"] == 2 and "gpucsr" in r["mat_type"] and r["matrix"].startswith("lognormal")}.values())


def measured(s):
    """[rows, entries, measured, predicted, GPUs]: of one GPU by the profile's time of the product, of two by the curve of diagonals, which those matrices are held by"""
    c, out = constants(), one_gpu()
    curve, _ = plateaux(s, "dia")
    t = Today(curve, DIAGONALS[0], c["product_diagonals"])
    for r in two_gpus("gpucg"):
        x = r["rows"]
        out.append((x, r["nnz"], r["iteration_us"], t.several(2, x, r["nnz"], round(x ** (1 / 3)) ** 2), 2))
    return out


def compared(s, points):
    """Errors of equations 4 and 9 with today's curves, beside those of -mat_gpucsr_advise, and by the formats that were chosen; a second list has the parameters"""
    import numpy as np

    q, one = Equations(s), [p for p in points if p[4] == 1]
    of = {p[7]["matrix"]: q.one(p[0], 1e6 * p[5]) for p in one}
    two = lambda ksp: [(q.several(2, r["rows"], DIAGONALS[0](r["rows"], r["nnz"])), r["iteration_us"]) for r in two_gpus(ksp)]
    single = lambda f: not f.startswith("bcsr")
    lines = [
        ("equation 4", "`KSPCG`", 1, [(of[p[7]["matrix"]], p[7]["cg_device_vectors"]) for p in one]),
        ("equation 4", "`gpucg`", 1, [(of[p[7]["matrix"]], p[2]) for p in one]),
        ("advise", "`KSPCG`", 1, [(p[7]["advised_cg_device_vectors"], p[7]["cg_device_vectors"]) for p in one]),
        ("advise", "`gpucg`", 1, [(p[3], p[2]) for p in one]),
        ("advise, entries one by one", "`gpucg`", 1, [(p[3], p[2]) for p in one if single(p[6])]),
        ("advise, blocks of 3×3", "`gpucg`", 1, [(p[3], p[2]) for p in one if not single(p[6])]),
        ("equation 4, entries one by one", "`KSPCG`", 1, [(of[p[7]["matrix"]], p[7]["cg_device_vectors"]) for p in one if single(p[6])]),
        ("equation 4, blocks of 3×3", "`KSPCG`", 1, [(of[p[7]["matrix"]], p[7]["cg_device_vectors"]) for p in one if not single(p[6])]),
        ("equation 9", "`KSPCG`", 2, two("cg")),
        ("equation 9", "`gpucg`", 2, two("gpucg")),
        ("advise", "`gpucg`", 2, [(p[3], p[2]) for p in points if p[4] == 2]),
    ]
    out = ["| formula | solver | GPUs | iterations | mean error | variance | median | worst | predicted over measured, geometric mean |", "| :-- | :-- | --: | --: | --: | --: | --: | --: | --: |"]
    for name, solver, n, v in lines:
        ratio = np.array([p / m for p, m in v])
        e = np.abs(ratio - 1)
        out.append("| %s | %s | %d | %d | %.3f | %.3f | %.3f | %.2f | %.2f |" % (name, solver, n, len(e), e.mean(), e.var(), np.median(e), e.max(), np.exp(np.log(ratio).mean())))
    curves = ["| | µ | σ | ν, GB/s | start, us |", "| :-- | --: | --: | --: | --: |"]
    start = lambda c: 8e-3 * 2 ** c[0] / c[2]  # where sigma is 1 / ln 2
    for name, c in (("product of CSR", q.spmv), ("CG2 to CG5, `VecPointwiseMult`", q.step), ("reduction, `VecNorm`", q.reduction), ("to another GPU", q.link)):
        curves.append("| %s | %.2f | %.2f | %.0f | %.1f |" % (name, *c, start(c)))
    return out, curves


def vectors(rows):
    """Of each vector operation by size: the sigmoid's parameters, and a start and two rates, and how far they are off"""
    import numpy as np
    import clock

    out = ["| operation | sizes | sigmoid | mean error | two plateaux | mean error |", "| :-- | --: | :-- | --: | :-- | --: |"]
    for op in dict.fromkeys(r["op"] for r in rows):
        q = [r for r in rows if r["op"] == op]
        us, mb = np.array([r["us"] for r in q]), np.array([1e-3 * r["gbs"] * r["us"] for r in q])
        curve = sigmoid(1e6 * mb / 8, us, False)
        off = np.abs(np.array([2 * time(v, curve) for v in 1e6 * mb / 8]) / us - 1).mean() if curve else np.nan
        X = np.column_stack([np.ones(len(us)), np.minimum(mb, Today.CACHE), np.maximum(0, mb - Today.CACHE)])
        c = clock.nonnegative(X / us[:, None], np.ones(len(us)))
        rates = ["%.0f" % (1e3 / v) if v > 0 else "∞" for v in c[1:]]
        out.append("| %s | %d | %s | %.3f | t₀ %.1f us, ν₁ %s, ν₂ %s GB/s | %.3f |" % (op, len(q), "µ %.1f, σ %.2f, ν %.0f GB/s" % curve if curve else "none", off, c[0], *rates, np.abs(X @ c / us - 1).mean()))
    return out


def errors(points):
    import numpy as np

    out = ["| GPUs | iterations | mean error | variance | median | worst |", "| --: | --: | --: | --: | --: | --: |"]
    for n in sorted({p[4] for p in points}):
        e = np.abs(np.array([p[3] / p[2] - 1 for p in points if p[4] == n]))
        out.append("| %d | %d | %.3f | %.3f | %.3f | %.2f |" % (n, len(e), e.mean(), e.var(), np.median(e), e.max()))
    return out


def today(folder, s):
    """Maps of 1, 2 and 4 GPUs and of what several gain; V's replicated vector: each GPU gets all that others have"""
    import numpy as np
    import records as R
    import samples as S

    c = constants()
    curve, off = plateaux(s, "bcsr4x4")
    t, points = Today(curve, BLOCKS4[0], c[BLOCKS4[1]]), measured(s)
    out = ["A product in blocks of 4×4 starts in %.1f us and moves %.0f GB/s within the cache, %.0f beyond. An iteration of `gpucg` spends %.1f us in meetings (%.1f more from 120 000 entries on); it takes %.2f times a product without its launch; and it goes %d times through a vector, at %.1f TB/s where the cache has it and at %.1f where not. Several GPUs meet in %.0f us and exchange %.0f GB/s between two." % (curve[0], 1e3 / curve[1], 1e3 / curve[2], 1e6 * c["meeting"], 1e6 * c["meeting_all"], c["product_gathered"], c["persistent_passes"], 1e-12 * c["persistent_cached_rate"], 1e-12 * c["persistent_rate"], 1e6 * c["meeting_ranks"], 1e-9 * c["link_rate"]), ""]
    out += ["| x | e | T of one, us | of two | of four | speed-up of two | of four |", "| --: | --: | --: | --: | --: | --: | --: |"]
    for x, e in ((10**4, 10**6), (72000, 28715634), (10**6, 10**7), (10**6, 10**8), (10**7, 10**9)):
        v = [t.one(x, e), t.several(2, x, e, x / 2), t.several(4, x, e, 3 * x / 4)]
        out.append("| %d | %d | %.1f | %.1f | %.1f | %.2f | %.2f |" % (x, e, *v, v[0] / v[1], v[0] / v[2]))
    S.replace(folder + "/cgmodel.md", "TODAY", out)
    S.replace(folder + "/cgmodel.md", "ITERATIONS", errors(points))
    equations, curves = compared(s, points)
    S.replace(folder + "/cgmodel.md", "EQUATIONS", equations)
    S.replace(folder + "/cgmodel.md", "CURVES", curves)
    S.replace(folder + "/cgmodel.md", "EDGE", edge(one_gpu()))
    S.replace(folder + "/cgmodel.md", "VECTORS", vectors(R.load("vec-sizes", "vec")))
    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(1, 5, figsize=(24, 4.5))
    x, e = np.logspace(2, 8, 61), np.logspace(3, 9, 61)
    inside = [[k >= v and k <= v * v for v in x] for k in e]
    grid = lambda fn: np.where(inside, [[fn(v, k) for v in x] for k in e], np.nan)
    one, two, four = grid(t.one), grid(lambda v, k: t.several(2, v, k, v / 2)), grid(lambda v, k: t.several(4, v, k, 3 * v / 4))
    flops = (2 * e[:, None] + 15 * x[None, :]) * 1e-3
    for ax, v, title, n in zip(axes, (flops / one, flops / two, flops / four, one / two, one / four), ("one H200, GFLOP/s", "two, GFLOP/s", "four, GFLOP/s", "speed-up of two; black: 1", "speed-up of four; black: 1"), (1, 2, 4, 2, 4)):
        f.colorbar(ax.contourf(x, e, v, 16), ax=ax)
        if n > 1:
            ax.contour(x, e, one / (two if n == 2 else four), [1], colors="k", linewidths=2)
        dots = [p for p in points if p[4] == n]
        ax.plot([p[0] for p in dots], [p[1] for p in dots], "r.")
        ax.set(xscale="log", yscale="log", xlabel="x", ylabel="e", title=title)
    f.tight_layout()
    f.savefig(folder + "/cgmodel-today.png", dpi=60)


def main():
    import numpy as np
    import samples as S

    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("samples", nargs="?", default=S.KEPT)
    a = a.parse_args()
    s = S.load(a.samples)
    formats = {1: "csr", 2: "bcsr2x2", 4: "bcsr4x4", 8: "bcsr8x8"}
    out = ["| blocks | precision | products | curve | fitted | mean error | variance | median | worst |", "| :-- | :-- | --: | :-- | :-- | --: | --: | --: | --: |"]
    points, gains = {}, []
    for n, f in formats.items():
        for single in (False, True):
            q = fastest(s, f, single)
            for name, words, t in fits(s, q):
                if name == "sigmoid":
                    (mu, _, nu), (theirs, _, rate_) = map(float, re.findall(r"[\d.]+", words)), SPMV["average"][n]
                    gains.append((nu / rate_, (4e-3 if single else 8e-3) * 2**mu / nu, 4e-3 * 2**theirs / rate_))
                e = np.abs(t / s.us[q] - 1)
                out.append("| %d×%d | %s | %d | %s | %s | %.3f | %.3f | %.3f | %.2f |" % (n, n, "single" if single else "double", len(q), name, words, e.mean(), e.var(), np.median(e), e.max()))
                points[n, single, name] = (q, t)
    more, start, before = zip(*gains)
    out += ["", "Sigmoids beside the paper's average ones: ν is %.0f to %.0f times as large, the start (2^µ numbers over ν) %.1f to %.1f µs for %.0f to %.0f." % (min(more), max(more), min(start), max(start), min(before), max(before))]
    S.replace(a.o + "/cgmodel.md", "SPMV", out)
    out = ["| x | e | parameters | T of one, us | T of two | GFLOP/s of one, two | speed-up |", "| --: | --: | :-- | --: | --: | --: | --: |"]
    for (x, e, name), _ in CHECKS:
        c = SPMV[name][4]
        one, two = total(x, e, c), several(2, x, e, c)
        out.append("| %d | %d | %s | %.1f | %.1f | %.2f, %.2f | %.3f |" % (x, e, name, one, two, rate(x, e, one), rate(x, e, two), one / two))
    S.replace(a.o + "/cgmodel.md", "CHECK", out)
    plot(a.o, s, points)
    today(a.o, s)


def plot(folder, s, points):
    import numpy as np
    import samples as S

    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(2, 3, figsize=(15, 9))
    x, e = np.logspace(2, 8, 61), np.logspace(3, 9, 61)
    for row, name in zip(axes, ("max", "average")):
        c = SPMV[name][4]
        inside = [[k >= v and k <= v * v for v in x] for k in e]
        grid = lambda fn: np.where(inside, [[fn(v, k) for v in x] for k in e], np.nan)
        one, two = grid(lambda v, k: total(v, k, c)), grid(lambda v, k: several(2, v, k, c))
        flops = (2 * e[:, None] + 15 * x[None, :]) * 1e-3
        for ax, v, title in zip(row, (flops / one, flops / two, one / two), ("one GTX 280, GFLOP/s", "two, GFLOP/s", "speed-up; black: 1")):
            h = ax.contourf(x, e, v, 16)
            f.colorbar(h, ax=ax)
            ax.contour(x, e, one / two, [1], colors="k", linewidths=2)
            ax.plot(72000, 28715634, "ro")
            ax.set(xscale="log", yscale="log", xlabel="x", ylabel="e", title=name + " parameters: " + title)
    f.tight_layout()
    f.savefig(folder + "/cgmodel-map.png", dpi=70)
    f, axes = plt.subplots(1, 4, figsize=(18, 4), sharey=True)
    for ax, n in zip(axes, (1, 2, 4, 8)):
        q, _ = points[n, False, "sigmoid"]
        moved = s.matrix[q] + s.vectors[q]
        order = np.argsort(moved)
        ax.plot(moved, 1e3 * moved / s.us[q], ".", color="0.6", markersize=4)
        for name in ("sigmoid", "two plateaux", "what the cache keeps"):
            ax.plot(moved[order], (1e3 * moved / points[n, False, name][1])[order], label=name)
        ax.set(xscale="log", yscale="log", xlabel="MB moved", title="%d×%d, double" % (n, n))
    axes[0].set_ylabel("GB/s")
    axes[0].legend(fontsize=8)
    f.tight_layout()
    f.savefig(folder + "/cgmodel.png", dpi=70)


if __name__ == "__main__":
    if sys.argv[1:] == ["-check"]:
        sys.exit(1 if check() else 0)
    main()
