#!/usr/bin/env python3
"""
The model of M. Verschoor and A. C. Jalba (Parallel Computing 38, 2012) of the time of conjugate gradients on one and several GPUs: docs/results/cgmodel.md and its plot.

    cgmodel.py [-o FOLDER] [SAMPLES[.xz]]     the page; NumPy
    cgmodel.py -check                         the formulas against numbers worked out by hand from the paper's parameters; Python alone

Throughput of a kernel that moves m numbers: B(m) = nu / (1 + exp(-(log2 m - mu) / sigma)), its time 4 m / B(m) in single. As that is (4 / nu) (m + m (2^mu / m)^k) with
k = 1 / (sigma ln 2), the curve is a latency and a bandwidth where sigma is 1.44, which it nearly is in all their fits, and linear in two unknowns for a given k: so it is fitted here.
"""
import argparse, math, sys

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
    return bad


def fits(s, q):
    """Of the samples q: (name, parameters in words, foretold times) of the sigmoid, of two plateaux, and of the profile's two"""
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


def main():
    import numpy as np
    import samples as S

    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.RESULTS)
    a.add_argument("samples", nargs="?", default=S.KEPT)
    a = a.parse_args()
    s = S.load(a.samples)
    formats = {1: "csr", 2: "bcsr2x2", 4: "bcsr4x4", 8: "bcsr8x8"}
    out = ["| blocks | precision | products | curve | fitted | mean error | variance | median | worst |", "| :-- | :-- | --: | :-- | :-- | --: | --: | --: | --: |"]
    points = {}
    for n, f in formats.items():
        for single in (False, True):
            q = np.array([k for k in range(s.n) if s.words[k][3] == f and s.single[k] == single])
            q = q[np.lexsort((s.us[q], s.product[q]))]
            q = q[np.unique(s.product[q], return_index=True)[1]]  # the fastest kernel of that format
            for name, words, t in fits(s, q):
                e = np.abs(t / s.us[q] - 1)
                out.append("| %d×%d | %s | %d | %s | %s | %.3f | %.3f | %.3f | %.2f |" % (n, n, "single" if single else "double", len(q), name, words, e.mean(), e.var(), np.median(e), e.max()))
                points[n, single, name] = (q, t)
    S.replace(a.o + "/cgmodel.md", "SPMV", out)
    out = ["| x | e | parameters | T of one, us | T of two | GFLOP/s of one, two | speed-up |", "| --: | --: | :-- | --: | --: | --: | --: |"]
    for (x, e, name), _ in CHECKS:
        c = SPMV[name][4]
        one, two = total(x, e, c), several(2, x, e, c)
        out.append("| %d | %d | %s | %.1f | %.1f | %.2f, %.2f | %.3f |" % (x, e, name, one, two, rate(x, e, one), rate(x, e, two), one / two))
    S.replace(a.o + "/cgmodel.md", "CHECK", out)
    plot(a.o, s, points)


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
