#!/usr/bin/env python3
"""
The ladder of M. M. Baskaran and R. Bordawekar (IBM RC24704, 2009), and the fraction of a dense matrix' rate that others reach: docs/results/ladder.md and its plot.

    ladder.py [-o FOLDER] [SAMPLES[.xz]]
"""
import argparse
import numpy as np
import clock
import samples as S

STEPS = (
    ("a thread a row", "csr csr_scalar"),
    ("16 threads a row", "csr csr_vector16_wide1"),
    ("… aligned, in pairs", "csr csr_vector16"),
    ("blocks of 4 by 64", "block4x64 block4x64_warp4"),
    ("scan", "csr csr_scan"),
    ("segmented scan", "coo coo_segment"),
    ("the best pair", None),
)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("samples", nargs="?", default=S.KEPT)
    a = a.parse_args()
    s = S.load(a.samples)
    us = {k: np.full(len(s.products), np.nan) for _, k in STEPS}
    us[None] = np.full(len(s.products), np.inf)
    allowed = np.array([w[3] != "dense" for w in s.words]) | (s.density >= 1)
    np.minimum.at(us[None], s.product[allowed], s.us[allowed])
    for _, k in STEPS:
        if k:
            q = s.pair == s.pairs.index(k)
            us[k][s.product[q]] = s.us[q]
    first = np.unique(s.product, return_index=True)[1]
    real = np.array([not clock.generated(m) for m in s.matrix_of])[first]
    N, single, flops = ~s.transpose[first], s.single[first], 2e-3 * s.nnz[first]
    out = ["| | pair | double: products | GFLOP/s, median | largest | naive's time over its | smallest | largest | single: products | median | largest | naive's over its | smallest | largest |", "| :-- | :-- " + "| --: " * 12 + "|"]
    for name, k in STEPS:
        cells = []
        for one in (False, True):
            q = real & N & (single == one) & np.isfinite(us[k]) & np.isfinite(us["csr csr_scalar"])
            rate, gain = flops[q] / us[k][q], us["csr csr_scalar"][q] / us[k][q]
            cells.append("%d | %.1f | %.0f | %.2f | %.2f | %.1f" % (q.sum(), np.median(rate), rate.max(), np.exp(np.log(gain).mean()), gain.min(), gain.max()))
        out.append("| %s | %s | %s |" % (name, "`%s`" % k if k else "", " | ".join(cells)))
    S.replace(a.o + "/ladder.md", "LADDER", out)

    full = {one: next(p for p, w in enumerate(s.products) if w == ("full", "N", "single" if one else "double")) for one in (False, True)}
    out = ["| | pair | double | single |", "| :-- | :-- | --: | --: |"]
    for k in ("block4x64 block4x64_warp4", "bcsr8x8 bcsr_block", "csr csr_vector16_wide1", "csr csr_adaptive", "dense dense_gemv"):
        cells = []
        for one in (False, True):
            q = np.where((s.product == full[one]) & (s.pair == s.pairs.index(k)))[0]
            cells.append("%.0f GFLOP/s" % (flops[full[one]] / s.us[q[0]]) if len(q) else "not timed")
        out.append("| full, 4000 by 4000 | `%s` | %s |" % (k, " | ".join(cells)))
    peak = {one: flops[full[one]] / us[None][full[one]] for one in (False, True)}
    out += ["", "| the best pair's rate over the dense matrix' best | double | single |", "| :-- | --: | --: |"]
    for name, of in (("real matrices, median", real), ("generated, median", ~real)):
        out.append("| %s | %s |" % (name, " | ".join("%.3f" % np.median((flops / us[None])[of & N & (single == one)] / peak[one]) for one in (False, True))))
    best = {one: sorted(np.where(N & (single == one))[0], key=lambda p: -flops[p] / us[None][p])[:6] for one in (False, True)}
    for k in range(6):
        out.append("| %d. | %s |" % (k + 1, " | ".join("%s %.2f" % (s.products[best[one][k]][0], flops[best[one][k]] / us[None][best[one][k]] / peak[one]) for one in (False, True))))
    S.replace(a.o + "/ladder.md", "PEAK", out)
    plt = S.pyplot()
    if plt:
        f, ax = plt.subplots(figsize=(8, 4.5))
        order = sorted(np.where(N & ~single)[0], key=lambda p: flops[p])
        for name, k in STEPS:
            ax.plot(flops[order] * 500, (flops / us[k])[order], ".", markersize=4, label=name)
        ax.axhline(peak[False], color="k", linewidth=0.5)
        ax.set(xscale="log", yscale="log", xlabel="entries", ylabel="GFLOP/s, double; line: the dense matrix")
        ax.legend(fontsize=7)
        f.tight_layout()
        f.savefig(a.o + "/ladder.png", dpi=80)


if __name__ == "__main__":
    main()
