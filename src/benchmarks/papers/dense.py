#!/usr/bin/env python3
"""
Dense products: docs/results/dense.md and its plots, from what src/benchmarks/dense.c leaves (tables 3.3 to 3.6, figures 3.1 to 3.8 of A. H. El Zein's thesis, ANU 2009).

    dense.py [-o FOLDER] [RECORDS.jsonl[.xz]]
"""
import argparse
import numpy as np
import records as R
import samples as S

HOW = {"gemv": "gemv", "gemm": "gemm, 1 column", "gemm16": "gemm, 16 columns, one of them"}


def threads(path):
    """Records of `dense -cpu` get the number of threads of their run, which is the end of its -id"""
    out, now = [], ""
    for r in path:
        if r["record"] == "run":
            now = r["id"].rsplit("-", 1)[-1] if r.get("backend") == "host" else ""
        elif r["record"] == "dense":
            out.append(dict(r, how="cpu%s" % now if r["how"] == "cpu" else r["how"]))
    return out


def rate(r):
    return 2e-3 * r["rows"] * r["columns"] * r["density"] / r["us"]


def get(all_, **q):
    return [r for r in all_ if all(r[k] == v for k, v in q.items())]


def products(rows, part, keep=lambda r: True):
    """GFLOP/s by size; N and T of each way, the CPU in double"""
    ways = [("double", "gemv"), ("double", "gemm"), ("double", "gemm16"), ("single", "gemv"), ("single", "gemm16")] + sorted({("double", r["how"]) for r in rows if r["how"].startswith("cpu")}, key=lambda w: (len(w[1]), w))
    heads, out = ["rows", "columns"], []
    for p, how in ways:
        heads += ["%s %s N" % (how if how.startswith("cpu") else how, p if not how.startswith("cpu") else "threads, double"), "T"]
    for m, n in sorted({(r["rows"], r["columns"]) for r in get(rows, part=part) if keep(r)}):
        cells = []
        for p, how in ways:
            for side in "NT":
                q = get(rows, part=part, rows=m, columns=n, precision=p, how=how, side=side)
                cells.append("%.3g" % rate(q[0]) if q and rate(q[0]) < 1000 else "%.0f" % rate(q[0]) if q else "")
        out.append([m, n] + cells)
    return R.table(heads, out)


def alignment(rows):
    """Multiples of 16, of 2, and odd sizes"""
    out = []
    for p in ("double", "single"):
        for how in HOW:
            for side in "NT":
                q = get(rows, part="alignment", precision=p, how=how, side=side)
                if not q:
                    continue
                cells = []
                for name in (lambda n: n % 16 == 0, lambda n: n % 2 == 0 and n % 16, lambda n: n % 2 == 1):
                    v = [rate(r) for r in q if name(r["rows"])]
                    cells += ["%.0f" % np.mean(v), "%.0f to %.0f" % (min(v), max(v))]
                out.append([p, HOW[how], side] + cells)
    return R.table(("<precision", "<by", "<side", "multiples of 16, GFLOP/s: mean", "from, to", "other even sizes: mean", "from, to", "odd: mean", "from, to"), out)


def meeting(d, a, b):
    """The least density from which on a is faster than b at all that were measured; d: {density: {format: us}}"""
    at = None
    for x in sorted(d, reverse=True):
        if a not in d[x] or b not in d[x] or d[x][a] > d[x][b]:
            break
        at = x
    return at


def density(rows):
    out, meet = [], []
    for p in ("double", "single"):
        for m, n in sorted({(r["rows"], r["columns"]) for r in get(rows, part="density")}, key=lambda s: (s[0] * s[1], s)):
            d = {}
            for r in get(rows, part="density", precision=p, rows=m, columns=n):
                d.setdefault(r["density"], {})[r["how"]] = r["us"]
            for x in (0.02, 0.1, 0.3, 0.5, 0.7, 1.0):
                if x in d:
                    out.append([p, m, n, "%g" % x] + [R.figures(d[x][h]) if h in d[x] else "" for h in ("csr", "bcsr8x8", "bitdense", "dense")])
            word = lambda at: "%g" % at if at else "never"
            meet.append((p, m, n, word(meeting(d, "bitdense", "csr")), word(meeting(d, "dense", "csr")), word(meeting(d, "dense", "bitdense")), word(meeting(d, "bcsr8x8", "csr"))))
    return R.table(("<precision", "rows", "columns", "bitdense beats csr from", "dense beats csr from", "dense beats bitdense from", "bcsr8x8 beats csr from"), meet) + [""] + R.table(("<precision", "rows", "columns", "density", "csr, us", "bcsr8x8", "bitdense", "dense"), out)


def plot(rows, name):
    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(1, 3, figsize=(15, 4.5))
    cpus = sorted({r["how"] for r in rows if r["how"].startswith("cpu")}, key=len)
    for k, how in enumerate(list(HOW) + cpus):
        for side, line in (("N", "-"), ("T", "--")):
            q = sorted(get(rows, part="sizes", precision="double", how=how, side=side), key=lambda r: r["rows"])
            axes[0].plot([r["rows"] for r in q], [rate(r) for r in q], line, color="C%d" % k, label=(HOW.get(how) or "CPU, %s threads" % how[3:]) if side == "N" else None)
            q = sorted(get(rows, part="alignment", precision="double", how=how, side=side), key=lambda r: r["rows"])
            axes[1].plot([r["rows"] for r in q], [rate(r) for r in q], line, color="C%d" % k)
    axes[0].set(xlabel="rows = columns", ylabel="GFLOP/s, double; dashes: transposed", yscale="log")
    axes[1].set(xlabel="rows = columns, every size", ylabel="GFLOP/s")
    axes[0].legend(fontsize=8)
    for k, how in enumerate(("csr", "bcsr8x8", "bitdense", "dense")):
        q = sorted(get(rows, part="density", precision="double", rows=4000, how=how), key=lambda r: r["density"])
        axes[2].plot([r["density"] for r in q], [r["us"] for r in q], "-o", color="C%d" % k, markersize=3, label=how)
    axes[2].set(xscale="log", yscale="log", xlabel="density, 4000 by 4000", ylabel="us")
    axes[2].legend(fontsize=8)
    f.tight_layout()
    f.savefig(name, dpi=80)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("records", nargs="?", default="dense")
    a = a.parse_args()
    rows, page = threads(R.load(a.records, None)), a.o + "/dense.md"
    S.replace(page, "SIZES", products(rows, "sizes", lambda r: r["rows"] % 1024 == 0))
    S.replace(page, "SHAPES", products(rows, "shapes"))
    S.replace(page, "ALIGNMENT", alignment(rows))
    S.replace(page, "DENSITY", density(rows))
    plot(rows, a.o + "/dense.png")


if __name__ == "__main__":
    main()
