#!/usr/bin/env python3
"""
The model of R. Wang, T. Gu and M. Li (J. Comput. Commun. 5, 2017): docs/results/strips.md and its plot.

    strips.py [-o FOLDER] [-times FILE] [-modes FILE] [SAMPLES[.xz]]

Time of a product from the number of strips I (what the GPU's threads handle at a time) and one length of a row P: (A I + B) (P - P*) + p I + q, fitted to generated
matrices alone, and asked for the real ones. First the generated matrices are those of the samples whose rows are fixed or uniform in length. FILE is what
src/benchmarks/strips.c leaves (default: that which is kept): there each of its kinds is fitted by itself, as the paper does it (csr_vector16_wide1 by a product of two lines).
-modes: of each real matrix of the samples name, rows, entries and the most frequent length of a row, as strips.c prints them.
"""
import argparse, lzma, os
import numpy as np
import clock
import samples as S

KERNELS = {"csr csr_vector16_wide1": "CSR-V", "csr csr_scalar": "CSR-S", "ell sell_row": "ELL", "jad jad_row": "JAD"}
MADE = "constant4 constant16 constant200 uniform40 uniform50 regular_like random8 random100".split()
THREADS = 132 * 2048
BLOCK = 1024  # threads at most


def strips(rows, kernel, whole):
    n = rows / (THREADS / 16 if kernel.startswith("csr csr_vector") else THREADS)
    return np.ceil(n) if whole else n


def bilinear(I, P):
    return np.column_stack([np.ones(len(I)), I, P, I * P])


def solve(X, t):
    return np.linalg.lstsq(X / t[:, None], np.ones(len(t)), rcond=None)[0]


def words(e):
    return "%.0f %% | %.0f %% | %.0f %%" % (100 * e.mean(), 100 * np.median(e), 100 * e.max()) if len(e) else "| |"


def shaped(s, which):
    """The shape that fit.c would find for a pair that the profile has none of"""
    best = None
    for width in (1, 2, 4, 8, 16, 32, 64, np.inf):
        for threads in (0, 1, 16, 256):
            X = s.terms(which, (width, threads, np.inf, 1))
            e = np.mean((S.time(X, clock.fit(X, s.us[which], np.ones(len(which)), steps=4))[0] / s.us[which] - 1) ** 2)
            if best is None or e < best[0]:
                best = (e, (width, threads, np.inf, 1))
    return best[1]


def ours(s, kernel, row, group):
    """The terms of the profile, weights 1 / time, matrix left out"""
    which = np.where(s.pair == s.pairs.index(kernel))[0]
    shape = row[kernel][1] if kernel in row else shaped(s, which)
    return clock.without(s, {kernel: (True, shape)}, group, 0, True)


def from_samples(s, folder):
    real = np.array([not clock.generated(m) for m in s.matrix_of])
    made = np.array([m in MADE for m in s.matrix_of])
    group, row = clock.groups(s.matrix_of), S.profile()
    head = "| kernel | precision | generated, real | bilinear from generated: mean | median | worst | the same, I not rounded: mean | median | worst | bilinear from real, matrix left out: mean | median | worst | the profile's terms, matrix left out: mean | median | worst | nearer than any bilinear |"
    out = [head, "| :-- | :-- | --: " + "| --: " * 13 + "|"]
    shown = {}
    for kernel, name in KERNELS.items():
        told = ours(s, kernel, row, group)
        for single in (False, True):
            q = np.where((s.pair == s.pairs.index(kernel)) & (s.single == single))[0]
            P = s.nnz[q] / s.rows[q] if name == "CSR-V" else s.max[q]
            r, g = real[q], made[q] & ~s.transpose[q]
            errors = []
            for whole in (True, False):
                X = bilinear(strips(s.rows[q], kernel, whole), P)
                errors.append(np.abs(X @ solve(X[g], s.us[q][g]) / s.us[q] - 1)[r])
            t = np.empty(len(q))
            for m in np.unique(group[q]):
                out_ = group[q] == m
                t[out_] = X[out_] @ solve(X[~out_ & r], s.us[q][~out_ & r])
            errors.append(np.abs(t / s.us[q] - 1)[r])
            errors.append(np.abs(told[q] / s.us[q] - 1)[r])
            wins = (errors[3] < np.min(errors[:3], 0)).sum()
            out.append("| %s `%s` | %s | %d, %d | %s | %d of %d |" % (name, kernel.split()[1], "single" if single else "double", g.sum(), r.sum(), " | ".join(words(e) for e in errors), wins, r.sum()))
            if not single:
                shown[name] = (s.us[q][r], X[r] @ solve(X[g], s.us[q][g]), t[r], told[q][r])
    out += ["", "%.0f %% of the real matrices have fewer rows than a strip of `csr_scalar`, %.0f %% fewer than one of `csr_vector16_wide1`." % tuple(100 * np.mean(s.rows[real] < k) for k in (THREADS, THREADS / 16))]
    S.replace(folder + "/strips.md", "SAMPLES", out)
    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(1, 4, figsize=(16, 4), sharey=True)
    for ax, (name, (us, *told)) in zip(axes, shown.items()):
        for v, label in zip(told, ("bilinear, from generated", "bilinear, matrix left out", "the profile's terms, matrix left out")):
            ax.plot(us, np.clip(v / us, 0.1, 10), ".", markersize=4, label=label)
        ax.axhline(1, color="k", linewidth=0.5)
        ax.set(xscale="log", yscale="log", xlabel="measured, us", title=name)
    axes[0].set_ylabel("predicted / measured")
    axes[0].legend(fontsize=7)
    f.tight_layout()
    f.savefig(folder + "/strips.png", dpi=70)


# ---- from the times of strips.c, as the paper does it


def line(x, y):
    """Slope, value at 0, and R² of the line through points"""
    c = np.polyfit(x, y, 1)
    return *c, 1 - ((np.polyval(c, x) - y) ** 2).sum() / max(1e-300, ((y - y.mean()) ** 2).sum())


def nearest(values, want):
    v = np.unique(values)
    return v[np.argmin(np.abs(v - want))]


def lengths(I, P, least):
    """The lengths that were timed with at least so many strips"""
    return [p for p in np.unique(P) if len(np.unique(I[P == p])) >= least]


def product_of_lines(I, P, t):
    """
    T(P) at 40 strips, E(I) at one length, or at the nearest that were timed, over the time where both cross: a branch of lengths up to a block's threads (64) and one beyond (2048).
    Without times of three lengths beyond at some I the first branch is taken for all
    """
    models, said = [], []
    for branch, want in ((P <= BLOCK, 64), (P > BLOCK, 2048)):
        i, p, us = I[branch], P[branch], t[branch]
        stars = [v for v in np.unique(i) if len(np.unique(p[i == v])) > 2]
        if not stars:
            continue
        star = nearest(stars, 40)
        mean = nearest(p[i == star], want)
        a, e, t0 = line(p[i == star], us[i == star]), line(i[p == mean], us[p == mean]), us[(i == star) & (p == mean)].mean()
        models.append(lambda i, p, a=a, e=e, t0=t0: np.polyval(a[:2], p) * np.polyval(e[:2], i) / t0)
        said.append(["%d" % star, "%d" % mean, "%.3g, %.3g" % a[:2], "%.3f" % a[2], "%.3g, %.3g" % e[:2], "%.3f" % e[2], "%.3g" % t0])
    return lambda i, p: np.where(p <= BLOCK, models[0](i, p), models[-1](i, p)), said


def saddle(I, P, t):
    """For each I a line over P, its slope a line over I; E(I) at a length of 32, or at the nearest that was timed with more than two I"""
    several = np.array([i for i in np.unique(I) if len(np.unique(P[I == i])) > 1])
    rows = np.array([line(P[I == i], t[I == i]) for i in several])
    slope = line(several, rows[:, 0])
    mean = nearest(lengths(I, P, 3), 32)
    e = line(I[P == mean], t[P == mean])
    said = [["", "%d" % mean, "%.3g, %.3g" % slope[:2], "%.3f" % slope[2], "%.3g, %.3g" % e[:2], "%.3f" % e[2], ""]]
    return lambda i, p: np.polyval(slope[:2], i) * (p - mean) + np.polyval(e[:2], i), said


def words_of(name):
    with (lzma.open if name.endswith(".xz") else open)(name, "rt") as f:
        return [v.split() for v in f]


def from_times(name, modes, folder, s):
    """Judged by the real matrices of the samples and by those of the file; CSR-V takes the mean and the mode of the lengths"""
    w, most = words_of(name), {v[0]: float(v[3]) for v in words_of(modes)}
    sampled = ~s.transpose & np.array([not clock.generated(m) for m in s.matrix_of])
    kind, kernel, single = np.array([v[0] for v in w]), np.array([v[10] + " " + v[11] for v in w]), np.array([v[9] == "single" for v in w])
    I, rows, mean, mode, longest, us = np.array([[float(v[k]) for k in (2, 3, 6, 7, 8, 12)] for v in w]).T
    asked = np.array([float(v[1].split("_")[2]) if v[0] != "real" else 0 for v in w])
    out = ["| kernel | precision | kind | fitted to | real matrices | P | I rounded up: mean | median | worst | I not rounded: mean | median | worst |", "| :-- | :-- | :-- | --: | --: | :-- " + "| --: " * 6 + "|"]
    fits = ["| kernel | precision | kind | I* | P* | T(P), or f(I): slope, value at 0 | R² | E(I): slope, value at 0 | R² | time at I*, P*, us |", "| :-- | :-- | :-- " + "| --: " * 7 + "|"]
    each = ["| matrix | of | kernel | precision | strips | P is the | P | us | fixed, us | normal | uniform | bernoulli |", "| :-- | :-- | :-- | :-- | --: | :-- " + "| --: " * 6 + "|"]
    for k, short in KERNELS.items():
        for one in (False, True):
            r, q = (kind == "real") & (kernel == k) & (single == one), sampled & (s.pair == s.pairs.index(k)) & (s.single == one)
            survey, file = ("survey", s.rows[q], s.us[q], s.matrix_of[q]), ("file", rows[r], us[r], [v[1].replace(".petsc", "") for v, mine in zip(w, r) if mine])
            if short == "CSR-V":
                sets = [(*survey, "mean", (s.nnz / s.rows)[q]), (*survey, "mode", np.array([most[m] for m in s.matrix_of[q]])), (*file, "mean", mean[r]), (*file, "mode", mode[r])]
            else:
                sets = [(*survey, "longest", s.max[q]), (*file, "longest", longest[r])]
            errors, models = {}, {}
            for made in ("fixed", "normal", "uniform", "bernoulli"):
                g = (kind == made) & (kernel == k) & (single == one)
                if g.sum() < 6:
                    continue
                models[made], said = (product_of_lines if short == "CSR-V" else saddle)(I[g], asked[g], us[g])
                fits += ["| %s | %s | %s | %s |" % (short, "single" if one else "double", made, " | ".join(v)) for v in said]
                for of, m, t, _, length, p in sets:
                    if len(m):
                        e = [np.abs(models[made](strips(m, k, whole), p) / t - 1) for whole in (True, False)]
                        errors[of, length, made] = e[0]
                        out.append("| %s | %s | %s | %d | %s, %d | %s | %s | %s |" % (short, "single" if one else "double", made, g.sum(), of, len(m), length, words(e[0]), words(e[1])))
            for of, _, _, _, length, _ in sets:
                if (of, length, "fixed") in errors:
                    f, n, u = (errors[of, length, v] for v in ("fixed", "normal", "uniform"))
                    out.append("| %s | %s | nearer, %s by %s: fixed before normal %d, fixed before uniform %d, normal before uniform %d of %d | | | | | | | | | |" % (short, "single" if one else "double", of, length, (f < n).sum(), (f < u).sum(), (n < u).sum(), len(f)))
            for of, m, t, names, length, p in sets:
                for j, name in enumerate(names):
                    told = [model(strips(m[j], k, True), p[j]) for model in models.values()]
                    each.append("| %s | %s | %s | %s | %d | %s | %.1f | %.2f | %s |" % (name, of, short, "single" if one else "double", strips(m[j], k, True), length, p[j], t[j], " | ".join("%.3g" % v for v in told)))
    for mark, lines in (("TIMES", out), ("FITS", fits), ("MATRICES", each)):
        S.replace(folder + "/strips.md", mark, lines)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("-times", default=os.path.join(S.RESULTS, "strips-times.txt.xz"))
    a.add_argument("-modes", default=os.path.join(S.RESULTS, "strips-modes.txt.xz"))
    a.add_argument("samples", nargs="?", default=S.KEPT)
    a = a.parse_args()
    s = S.load(a.samples)
    from_samples(s, a.o)
    from_times(a.times, a.modes, a.o, s)


if __name__ == "__main__":
    main()
