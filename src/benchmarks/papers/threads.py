#!/usr/bin/env python3
"""
Threads of a block: for how many matrices each number is the best, of the kernels that leave it open (A. H. El Zein's thesis, ANU 2009, section 4.4): a section of docs/results/sets.md.

    threads.py [-o FOLDER] [RECORDS.jsonl[.xz]]       what spmv -threads -o leaves
"""
import argparse
import numpy as np
import records as R
import samples as S

SIZES = (64, 128, 256, 512)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("records", nargs="?", default="threads")
    a = a.parse_args()
    rows = R.load(a.records, "threads")
    of = {}
    for r in rows:
        for pair, t in r["us"].items():
            if all(v and v > 0 for v in t):
                of.setdefault(pair.replace("+", " "), []).append(t)
    out = []
    for pair, t in sorted(of.items(), key=lambda v: -len(v[1])):
        t = np.array(t)
        best = t.min(1, keepdims=True)
        out.append(["`%s`" % pair, len(t)] + [(t.argmin(1) == k).sum() for k in range(4)] + ["%.3f" % np.exp(np.log(t[:, k : k + 1] / best).mean()) for k in range(4)])
    S.replace(a.o + "/sets.md", "THREADS", ["%d matrices." % len(rows), ""] + R.table(["<pair", "matrices"] + ["%d threads the best of" % n for n in SIZES] + ["%d: time over the best" % n for n in SIZES], out[:30]))


if __name__ == "__main__":
    main()
