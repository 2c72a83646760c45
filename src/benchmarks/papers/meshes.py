#!/usr/bin/env python3
"""
Delaunay meshes on a GPU: docs/results/meshes.md and its plot, from what spmv -meshes -o FILE -samples SAMPLES left.

    meshes.py [-o FOLDER] [FILE.jsonl[.xz] SAMPLES[.xz]]

Of each product: the fastest pair without tiles, the fastest tile, what the profile in the tree chooses, and cuSPARSE's best. Where a product was measured more than once, the last one counts.
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


def fastest(p, tiles):
    us = {k: v for k, v in p["us"].items() if not k.startswith("cusparse") and k.startswith("tile") == tiles and k not in p["failed"]}
    return min(us.items(), key=lambda t: t[1]) if us else ("", np.nan)


def mean(v):
    v = np.array([x for x in v if x and np.isfinite(x)], float)
    return np.exp(np.log(v).mean()) if len(v) else np.nan


def csr_bytes(p):
    v = 8 if p["precision"] == "double" else 4
    return (4 + v) * p["nnz"] + 4 * (p["rows"] + 1) + v * (p["rows"] + p["columns"])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.RESULTS)
    a.add_argument("file", nargs="?", default=S.RESULTS + "/meshes.jsonl.xz")
    a.add_argument("samples", nargs="?", default=S.RESULTS + "/meshes-samples.txt.xz")
    a = a.parse_args()
    every, copy = products(a.file)
    choose(every, S.load(a.samples))
    out = ["| matrix | | | rows | entries | cuSPARSE | without tiles | | tiles | | chosen | | cuSPARSE / chosen | chosen / best | of the copy |", "| :-- | :-- | :-- | --: | --: | --: | --: | :-- | --: | :-- | --: | :-- | --: | --: | --: |"]
    for p in every:
        w, t = fastest(p, False), fastest(p, True)
        rate = 1e-3 * csr_bytes(p) / p["chosen_us"] / copy
        out.append("| %s | %s | %s | %d | %.3g | %.1f | %.1f | %s | %.1f | %s | %.1f | %s | %.2f | %.3f | %.2f |" % (p["matrix"], p["precision"], p["side"], p["rows"], p["nnz"], p["peer_us"], w[1], w[0], t[1], t[0], p["chosen_us"], p["chosen"], p["ratio"], p["chosen_us"] / p["best_us"], rate))
    S.replace(a.o + "/meshes.md", "PRODUCTS", out)
    groups = [("double, A x", lambda p: p["precision"] == "double" and p["side"] == "N"), ("double, Aᵀ x", lambda p: p["precision"] == "double" and p["side"] == "T"), ("single, A x", lambda p: p["precision"] == "single" and p["side"] == "N"), ("single, Aᵀ x", lambda p: p["precision"] == "single" and p["side"] == "T")]
    out = ["| | products | cuSPARSE / chosen | least | cuSPARSE / best | least | without tiles | least | regret, mean | worst |", "| :-- " + "| --: " * 9 + "|"]
    for name, which in groups:
        for points, wanted in (("150 000 points and more", True), ("fewer", False)):
            g = [p for p in every if which(p) and (p["rows"] >= 150000) == wanted and not p["matrix"].endswith("_random")]
            if not g:
                continue
            chosen, best, old = [p["ratio"] for p in g], [p["peer_us"] / p["best_us"] for p in g], [p["peer_us"] / fastest(p, False)[1] for p in g]
            regret = [p["chosen_us"] / p["best_us"] - 1 for p in g]
            out.append("| %s, %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.3f | %.3f |" % (name, points, len(g), mean(chosen), min(chosen), mean(best), min(best), mean(old), min(old), np.mean(regret), max(regret)))
    S.replace(a.o + "/meshes.md", "MEANS", out)
    plt = S.pyplot()
    if plt:
        g = sorted((p for p in every if groups[0][1](p)), key=lambda p: p["nnz"])
        f, ax = plt.subplots(figsize=(9, 5))
        at = np.arange(len(g))
        for name, us, mark in (("cuSPARSE's best", [p["peer_us"] for p in g], "x"), ("best without tiles", [fastest(p, False)[1] for p in g], "o"), ("best tile", [fastest(p, True)[1] for p in g], "s"), ("chosen", [p["chosen_us"] for p in g], ".")):
            ax.plot(at, [1e-3 * csr_bytes(p) / t / copy for p, t in zip(g, us)], mark, markersize=5, label=name)
        ax.axhline(1, color="k", linewidth=0.5)
        ax.set_xticks(at, [p["matrix"] for p in g], rotation=90, fontsize=7)
        ax.set(ylabel="bytes of CSR and vectors a second, over the rate of a copy (double, A x)")
        ax.legend(fontsize=7)
        f.tight_layout()
        f.savefig(a.o + "/meshes.png", dpi=80)


if __name__ == "__main__":
    main()
