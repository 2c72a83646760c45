#!/usr/bin/env python3
"""
Delaunay meshes on a GPU: docs/results/meshes.md and its plot, from what spmv -meshes -o FILE -samples SAMPLES left.

    meshes.py [-o FOLDER] [FILE.jsonl[.xz] SAMPLES[.xz]]

Of each product: the fastest pair of the formats that were there before tile and narrow, of each of these two, what the profile in the tree chooses, and cuSPARSE's best. Where a product was measured more than once, the last one counts.
"""
import argparse, json, lzma
import numpy as np
import samples as S


def products(name):
    with (lzma.open if name.endswith(".xz") else open)(name, "rt") as f:
        every = [json.loads(line) for line in f if line.startswith("{")]
    copy = [p["copy_gbs"] for p in every if "copy_gbs" in p]
    last = {(p["matrix"], p["precision"], p["side"]): p for p in every if "chosen_us" in p}
    return list(last.values()), (copy or [np.nan])[-1]


def choose(every, s):
    """p["chosen"] and its time: the pair with the least time predicted by the profile in the tree"""
    least = {}
    told = S.predicted(s, {k: v for k, v in S.profile().items() if v[0] and k in s.pairs})
    for k in np.where(~np.isnan(told))[0]:
        key, (format, kernel) = tuple(s.words[k][:3]), s.words[k][3:]
        if told[k] < least.get(key, (np.inf,))[0]:
            least[key] = (told[k], format + "+" + kernel, kernel)
    for p in every:
        t, pair, kernel = least[p["matrix"], p["side"], p["precision"]]
        p["chosen"] = pair if pair in p["us"] else kernel
        p["chosen_us"] = p["us"][p["chosen"]]
        p["ratio"] = p["peer_us"] / p["chosen_us"]


NEW = ("tile", "narrow")  # formats made for meshes
CACHE = 62.9e6  # bytes of the last-level cache of an H200


def fastest(p, family=None):
    """Name and time of the fastest pair of a format of this family; None: of those that are not new"""
    us = {k: v for k, v in p["us"].items() if not k.startswith("cusparse") and (k.startswith(family) if family else not k.startswith(NEW)) and k not in p["failed"]}
    return min(us.items(), key=lambda t: t[1]) if us else ("", np.nan)


def mean(v):
    v = np.array([x for x in v if x and np.isfinite(x)], float)
    return np.exp(np.log(v).mean()) if len(v) else np.nan


def csr_bytes(p):
    v = 8 if p["precision"] == "double" else 4
    return (4 + v) * p["nnz"] + 4 * (p["rows"] + 1) + v * (p["rows"] + p["columns"])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("file", nargs="?", default=S.RESULTS + "/meshes.jsonl.xz")
    a.add_argument("samples", nargs="?", default=S.RESULTS + "/meshes-samples.txt.xz")
    a = a.parse_args()
    every, copy = products(a.file)
    choose(every, S.load(a.samples))
    out = ["| matrix | | | rows | entries | cuSPARSE | before | | tile | narrow | chosen | | cuSPARSE / chosen | chosen / best | of the copy | best, of the copy |", "| :-- | :-- | :-- | --: | --: | --: | --: | :-- | --: | --: | --: | :-- | --: | --: | --: | --: |"]
    for p in every:
        w, tile, narrow, rate = fastest(p), fastest(p, "tile"), fastest(p, "narrow"), 1e-3 * csr_bytes(p) / copy
        out.append("| %s | %s | %s | %d | %.3g | %.1f | %.1f | %s | %.1f | %.1f | %.1f | %s | %.2f | %.3f | %.2f | %.2f |" % (p["matrix"], p["precision"], p["side"], p["rows"], p["nnz"], p["peer_us"], w[1], w[0], tile[1], narrow[1], p["chosen_us"], p["chosen"], p["ratio"], p["chosen_us"] / p["best_us"], rate / p["chosen_us"], rate / p["best_us"]))
    S.replace(a.o + "/meshes.md", "PRODUCTS", out)
    groups = [("double, A x", lambda p: p["precision"] == "double" and p["side"] == "N"), ("double, Aᵀ x", lambda p: p["precision"] == "double" and p["side"] == "T"), ("single, A x", lambda p: p["precision"] == "single" and p["side"] == "N"), ("single, Aᵀ x", lambda p: p["precision"] == "single" and p["side"] == "T")]
    out = ["| | products | cuSPARSE / chosen | least | cuSPARSE / best | least | before | least | regret, mean | worst |", "| :-- " + "| --: " * 9 + "|"]
    for name, which in groups:
        for points, wanted in (("150 000 points and more", True), ("fewer", False)):
            g = [p for p in every if which(p) and (p["rows"] >= 150000) == wanted and not p["matrix"].endswith("_random")]
            if not g:
                continue
            chosen, best, old = [p["ratio"] for p in g], [p["peer_us"] / p["best_us"] for p in g], [p["peer_us"] / fastest(p)[1] for p in g]
            regret = [p["chosen_us"] / p["best_us"] - 1 for p in g]
            out.append("| %s, %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.3f | %.3f |" % (name, points, len(g), mean(chosen), min(chosen), mean(best), min(best), mean(old), min(old), np.mean(regret), max(regret)))
    S.replace(a.o + "/meshes.md", "MEANS", out)
    out = ["| beyond the cache, A x | products | chosen, of the copy: mean | least | best: mean | least |", "| :-- " + "| --: " * 5 + "|"]
    for name, which in groups[::2]:
        for d in "mesh2", "mesh3":
            g = [p for p in every if which(p) and p["matrix"].startswith(d) and not p["matrix"].endswith("_random") and csr_bytes(p) > CACHE]
            rates = [[1e-3 * csr_bytes(p) / p[us] / copy for p in g] for us in ("chosen_us", "best_us")]
            if g:
                out.append("| %s, %s | %d | %.2f | %.2f | %.2f | %.2f |" % (name.split(",")[0], d, len(g), mean(rates[0]), min(rates[0]), mean(rates[1]), min(rates[1])))
    S.replace(a.o + "/meshes.md", "BEYOND", out)
    plt = S.pyplot()
    if plt:
        g = sorted((p for p in every if groups[0][1](p)), key=lambda p: p["nnz"])
        f, ax = plt.subplots(figsize=(9, 5))
        at = np.arange(len(g))
        for name, us, mark in (("cuSPARSE's best", [p["peer_us"] for p in g], "x"), ("best of the formats before", [fastest(p)[1] for p in g], "o"), ("tile", [fastest(p, "tile")[1] for p in g], "s"), ("narrow", [fastest(p, "narrow")[1] for p in g], "d"), ("chosen", [p["chosen_us"] for p in g], ".")):
            ax.plot(at, [1e-3 * csr_bytes(p) / t / copy for p, t in zip(g, us)], mark, markersize=5, label=name)
        ax.axhline(1, color="k", linewidth=0.5)
        ax.set_xticks(at, [p["matrix"] for p in g], rotation=90, fontsize=7)
        ax.set(ylabel="bytes of CSR and vectors a second, over the rate of a copy (double, A x)")
        ax.legend(fontsize=7)
        f.tight_layout()
        f.savefig(a.o + "/meshes.png", dpi=80)


if __name__ == "__main__":
    main()
