#!/usr/bin/env python3
"""
Copies and reads: docs/results/bandwidth.md and its plot, from what src/benchmarks/copies.c and reads.c leave (tables 3.2, 4.1, 4.2, A.1 and figure 4.2 of A. H. El Zein's thesis, ANU 2009).

    reads.py [-o FOLDER] [RECORDS.jsonl[.xz]]
"""
import argparse
import numpy as np
import records as R
import samples as S

WAYS = {"plain": "plain", "ldg": "read-only", "cs": "streaming", "tex": "texture", "async": "`cp.async`", "bulk": "bulk copies"}


def size(n):
    return "%d B" % n if n < 1024 else "%g KiB" % (n / 1024) if n < 1 << 20 else "%g MiB" % (n / (1 << 20))


def copies(rows):
    """The thesis' table: latency of a byte, and rates of three sizes; staged by so many threads"""
    of = {}
    for r in rows:
        of.setdefault((r["way"], r["direction"], r["threads"]), {})[r["bytes"]] = r["us"]
    out = []
    for (way, direction, threads), us in of.items():
        if way == "register":
            continue
        most = max(us)
        cell = lambda b: R.figures(1e-3 * b / us[b]) if b in us else ""
        both = 2 if way == "both" else 1
        out.append((way + (", %d threads" % threads if way == "staged" else ""), direction, R.figures(us.get(both, np.nan)) if both in us else "", cell(both << 10), cell(both << 16), cell(both << 20), cell(most)))
    lines = R.table(("<way", "<direction", "us of 1 byte", "GB/s of 1 KiB", "64 KiB", "1 MiB", size(max(r["bytes"] for r in rows if r["way"] != "both"))), out)
    locked = {r["bytes"]: r["us"] for r in rows if r["way"] == "register"}
    if locked:
        lines += ["", "Page-locking memory in place takes " + ", ".join("%s us for %s" % (R.figures(locked[b]), size(b)) for b in sorted(locked) if b == 1 or b >= 1 << 16) + "."]
    return lines


def best(rows):
    return max(rows, key=lambda r: r["gbs"])


def tables(rows):
    """Of each total, pattern, way and width, the best number of threads and workload"""
    out = []
    for total in sorted({r["total"] for r in rows}):
        for pattern in ("block", "thread"):
            for way in WAYS:
                cells = []
                for bytes_ in (4, 8, 16):
                    q = [r for r in rows if (r["total"], r["pattern"], r["way"], r["bytes"]) == (total, pattern, way, bytes_)]
                    b = best(q) if q else None
                    cells += ["%.0f (%d × %d)" % (b["gbs"], b["threads"], b["row"] / (b["threads"] if pattern == "block" else 1))] if b else [""]
                if any(cells):
                    out.append(["%g MiB" % total, "a block" if pattern == "block" else "a thread", WAYS[way]] + cells)
    return R.table(("<total", "<a row is read by", "<loads", "4 bytes, GB/s (threads × floats a thread)", "8 bytes", "16 bytes"), out)


def threads(rows, total):
    """One total by threads of a block and floats a thread, read-only loads of 4 and 16 bytes"""
    out = []
    for pattern in ("block", "thread"):
        for bytes_ in (4, 16):
            for work in (20, 100, 1000):
                cells = []
                for t in (32, 64, 128, 256, 512, 1024):
                    q = [r for r in rows if (r["total"], r["pattern"], r["way"], r["bytes"], r["threads"]) == (total, pattern, "ldg", bytes_, t) and r["row"] == work * (t if pattern == "block" else 1)]
                    cells.append("%.0f" % q[0]["gbs"] if q else "")
                if any(cells):
                    out.append(["a block" if pattern == "block" else "a thread", bytes_, work] + cells)
    return R.table(("<read by", "bytes a load", "floats a thread", "32 threads, GB/s", "64", "128", "256", "512", "1024"), out)


def figure(rows):
    """By floats a row: the best of each pattern, and where they cross"""
    out, cross = [], []
    for total in sorted({r["total"] for r in rows}):
        last = None
        for n in sorted({r["row"] for r in rows}):
            q = [r for r in rows if r["total"] == total and r["row"] == n]
            b, t = best([r for r in q if r["pattern"] == "block"]), best([r for r in q if r["pattern"] == "thread"])
            out.append(("%g MiB" % total, "%d" % n, "%.0f" % b["gbs"], "%d threads, %d bytes" % (b["threads"], b["bytes"]), "%.0f" % t["gbs"], "%d bytes" % t["bytes"]))
            if last is False and b["gbs"] > t["gbs"]:
                cross.append("%g MiB: a block from %d floats a row on" % (total, n))
            last = b["gbs"] > t["gbs"]
    return R.table(("<total", "floats a row", "a block a row, GB/s", "<by", "a thread a row, GB/s", "<by"), out) + ["", "They cross: " + "; ".join(cross or ["nowhere"]) + "."]


def plot(rows, name):
    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for ax, total in zip(axes, sorted({r["total"] for r in rows})):
        for pattern in ("block", "thread"):
            for k, b in enumerate((4, 8, 16)):
                q = {}
                for r in rows:
                    if (r["total"], r["pattern"], r["bytes"]) == (total, pattern, b):
                        q[r["row"]] = max(q.get(r["row"], 0), r["gbs"])
                ax.plot(sorted(q), [q[n] for n in sorted(q)], "-o" if pattern == "block" else "--s", color="C%d" % k, markersize=3, label="a %s a row, loads of %d bytes" % (pattern, b))
        ax.set(xscale="log", yscale="log", xlabel="floats a row, %g MiB" % total, ylabel="GB/s")
        ax.legend(fontsize=7)
    f.tight_layout()
    f.savefig(name, dpi=80)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("records", nargs="?", default="bandwidth")
    a = a.parse_args()
    page, copy = a.o + "/bandwidth.md", R.load(a.records, "run")[0]["copy_gbs"]
    rows = R.load(a.records, "table")
    S.replace(page, "COPIES", copies(R.load(a.records, "copy")))
    S.replace(page, "COPY", ["In this run a copy on the device reached %.0f GB/s, read and written bytes added." % copy])
    S.replace(page, "TABLES", tables(rows))
    S.replace(page, "THREADS", threads(rows, 55) + [""] + ["390 MiB:", ""] + threads(rows, 390))
    lines = R.load(a.records, "figure")
    S.replace(page, "FIGURE", figure(lines))
    plot(lines, a.o + "/bandwidth.png")


if __name__ == "__main__":
    main()
