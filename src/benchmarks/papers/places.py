#!/usr/bin/env python3
"""
What the advice is worth: the tables of docs/results/advise.md and its plot, from what src/benchmarks/places.c leaves.

    places.py [-o FOLDER] [RECORDS.jsonl[.xz]]

FOLDER (build/papers) gets advise.md and places.png.
"""
import argparse, json, lzma, os
import numpy as np
import samples as S

NAMES = {"cpu": "CPU", "host_vectors": "GPU, vectors on the host", "device_vectors": "GPU, vectors there"}
CG = {"cg_cpu": "CG on the CPU", "cg_device_vectors": "CG on the GPU, vectors there", "cg_solver": "gpucg"}


def load(name):
    with (lzma.open if name.endswith(".xz") else open)(name, "rt") as f:
        rows = [json.loads(line) for line in f]
    cores = {(r["matrix"], r["nnz"], r["ranks"]): r["cpu"] for r in rows if r["record"] == "ranks"}
    return [r for r in rows if r["record"] == "place"], cores


def choice(rows):
    out = ["| entries | matrices | fastest is the CPU | fastest named | time lost, mean | worst |", "| :-- | --: | --: | --: | --: | --: |"]
    for lo, hi, name in ((0, 3e3, "below 3 000"), (3e3, 1e4, "3 000 to 10 000"), (1e4, 1e5, "10 000 to 100 000"), (1e5, np.inf, "from 100 000"), (0, np.inf, "all")):
        q = [r for r in rows if lo <= r["nnz"] < hi]
        loss = np.array([r["loss"] for r in q])
        named = sum(r["best"] == r["advised"] for r in q)
        out.append("| %s | %d | %d | %d (%.1f %%) | %.3f | %.2f |" % (name, len(q), sum(r["best"] == "cpu" for r in q), named, 100 * named / len(q), loss.mean(), loss.max()))
    return out


def errors(rows):
    out = ["| predicted / measured - 1 | n | mean | median | 90 % | worst |", "| :-- | --: | --: | --: | --: | --: |"]
    for key, name in {**NAMES, **CG}.items():
        q = [r for r in rows if r.get(key, 0) > 0]
        if not q:
            continue
        e = 100 * np.abs(np.array([r["advised_" + key] / r[key] - 1 for r in q]))
        out.append("| %s | %d | %.1f %% | %.1f %% | %.0f %% | %.0f %% |" % (name, len(q), e.mean(), np.median(e), np.quantile(e, 0.9), e.max()))
    return out


def rates(rows, cores):
    """GFLOP/s of products by place, and what each gains over the CPU (A. H. El Zein, tables 4.12 and 4.13); cores: microseconds by processes of a matrix"""
    places = {"CPU, one core": lambda r: r["cpu"], **{"CPU, %d processes" % n: (lambda r, n=n: cores.get((r["matrix"], r["nnz"], n))) for n in sorted({k[2] for k in cores})}, "GPU, vectors on the host": lambda r: r["host_vectors"], "GPU, vectors there": lambda r: r["device_vectors"]}
    out = ["| | matrices | GFLOP/s: min | median | mean | max | over one core: geometric mean | largest | fastest of all |", "| :-- " + "| --: " * 8 + "|"]
    for name, us in places.items():
        q = [r for r in rows if us(r)]
        rate = np.array([2e-3 * r["nnz"] / us(r) for r in q])
        gain = np.array([r["cpu"] / us(r) for r in q])
        first = sum(us(r) <= min(v(r) or np.inf for v in places.values()) for r in q)
        out.append("| %s | %d | %.2f | %.2f | %.2f | %.0f | %.2f | %.0f | %d |" % (name, len(q), rate.min(), np.median(rate), rate.mean(), rate.max(), np.exp(np.log(gain).mean()), gain.max(), first))
    return out


def plot(rows, name):
    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    nnz = [r["nnz"] for r in rows]
    for k, (key, label) in enumerate(NAMES.items()):
        axes[0].plot(nnz, [r[key] for r in rows], "o", color="C%d" % k, markersize=3, label=label)
        axes[1].plot([r[key] for r in rows], [r["advised_" + key] / r[key] for r in rows], "o", color="C%d" % k, markersize=3, label=label)
    axes[0].set(xscale="log", yscale="log", xlabel="entries", ylabel="a product, us, measured")
    axes[1].set(xscale="log", yscale="log", xlabel="a product, us, measured", ylabel="predicted / measured")
    axes[1].axhspan(1 / 1.2, 1.2, color="0.9", zorder=0)
    axes[0].legend()
    f.tight_layout()
    f.savefig(name, dpi=90)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-o", default=S.TABLES)
    p.add_argument("records", nargs="?", default=os.path.join(S.RESULTS, "places.jsonl.xz"))
    a = p.parse_args()
    rows, cores = load(a.records)
    S.replace(os.path.join(a.o, "advise.md"), "CHOICE", choice(rows))
    S.replace(os.path.join(a.o, "advise.md"), "ERRORS", errors(rows))
    S.replace(os.path.join(a.o, "advise.md"), "RATES", rates(rows, cores))
    S.replace(os.path.join(a.o, "advise.md"), "THESIS", ["The thesis' sizes, from 100 000 entries on:", ""] + rates([r for r in rows if r["nnz"] >= 1e5], cores))
    plot(rows, os.path.join(a.o, "places.png"))


if __name__ == "__main__":
    main()
