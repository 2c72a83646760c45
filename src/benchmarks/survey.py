#!/usr/bin/env python3
"""
The survey of the pool: which sets of kernels do, and what choosing loses.

    survey.py [-o FOLDER] [-name NAME] bench.jsonl SAMPLES

bench.jsonl and SAMPLES are of one run of spmv (-o, -samples). Writes NAME.md and, with Matplotlib, NAME-sets.png into FOLDER (docs/results).
A pair is a format and a kernel. The loss of a set on a product is the time of its best pair over that of the best of all, minus 1; a product that no pair
of a set can hold counts as 50 times. Sets of up to 3 are searched exhaustively among the 40 pairs that are most often near the best, larger ones greedily.
"""
import argparse, itertools, json, math, os
from collections import Counter, defaultdict

p = argparse.ArgumentParser()
p.add_argument("-o", default="docs/results")
p.add_argument("-name", default="survey")
p.add_argument("jsonl")
p.add_argument("samples")
a = p.parse_args()
records = [json.loads(line) for line in open(a.jsonl)]
run = next(r for r in records if r["record"] == "run")
products = [r for r in records if r["record"] == "product"]
time = defaultdict(dict)
for line in open(a.samples):
    w = line.split()
    time[w[0], w[1], w[2]][w[4] if w[3] == "csr" else w[3] + " " + w[4]] = float(w[5])
cases = [{k: math.log(t / min(d.values())) for k, t in d.items()} for d in time.values()]
pairs = sorted({k for d in cases for k in d})
near = Counter(k for d in cases for k, v in d.items() if v < math.log(1.05))
best = Counter(min(d, key=d.get) for d in cases)
few = [k for k, _ in near.most_common(40)]
column = {k: [d.get(k, math.log(50)) for d in cases] for k in pairs}


def judge(least):
    return math.exp(sum(least) / len(least)) - 1, math.exp(max(least)) - 1


def exhaustive(n, by):
    found = None
    for s in itertools.combinations(few, n):
        score = judge([min(v) for v in zip(*(column[k] for k in s))])[by]
        if found is None or score < found[0]:
            found = score, s
    return found[1]


def greedy(n, by):
    chosen, least = [], [math.log(50)] * len(cases)
    for _ in range(n):
        k = min((k for k in pairs if k not in chosen), key=lambda k: (judge([min(v) for v in zip(least, column[k])])[by], judge([min(v) for v in zip(least, column[k])])[0]))
        chosen.append(k)
        least = [min(v) for v in zip(least, column[k])]
    return chosen


def cells(s):
    mean, worst = judge([min(v) for v in zip(*(column[k] for k in s))])
    return f"{mean:.3f} | {worst:.2f} | {', '.join(s)}"


out = [f"# Survey of the pool, {run['device']}, {run['date']}", "", f"Version {run['id']}, {run['petsc']}; device copy {run['copy_gbs']:.0f} GB/s. {len({k[0] for k in time})} matrices, {len(cases)} products (double and single, A and its transpose), {len(pairs)} pairs of a format and a kernel.",
       "Made by `src/benchmarks/survey.py` from `spmv -o bench.jsonl -samples SAMPLES`.", "", "## Sets of pairs", "", "| pairs | criterion, search | mean loss | worst | set |", "| --: | :-- | --: | --: | :-- |"]
curve = []
for n in range(1, 8):
    for by, word in ((0, "mean"), (1, "worst")):
        if n <= 3:
            out.append(f"| {n} | {word}, exhaustive | {cells(exhaustive(n, by))} |")
        s = greedy(n, by)
        out.append(f"| {n} | {word}, greedy | {cells(s)} |")
for n in (10, 16, 24, 36):
    out.append(f"| {n} | mean, greedy | {cells(greedy(n, 0)).rsplit('|', 1)[0]}| |")
out += ["", "## How often a pair is the best, and within 5 % of it", "", "| pair | best | near |", "| :-- | --: | --: |"]
out += [f"| {k} | {best[k]} | {near[k]} |" for k, _ in near.most_common(40)]
out += ["", "## What choosing lost in that run", "", "With the profile of that day, made before most of the pool was there.", "", "| | double N | double T | single N | single T |", "| :-- | --: | --: | --: | --: |"]
for word, key in (("estimate", "regret"), ("measure", "measure_regret"), ("tree", "tree_regret")):
    row = []
    for precision in ("double", "single"):
        for side in "NT":
            v = [r[key] for r in products if r["precision"] == precision and r["side"] == side]
            row.append(f"{sum(v) / len(v) - 1:.3f} ({max(v) - 1:.2f})")
    out.append(f"| {word}: mean (worst) | " + " | ".join(row) + " |")
out += ["", "cuSPARSE's best over our best pair, geometric mean (smallest):", "", "| double N | double T | single N | single T |", "| --: | --: | --: | --: |"]
row = []
for precision in ("double", "single"):
    for side in "NT":
        v = [r["peer_us"] / r["best_us"] for r in products if r["precision"] == precision and r["side"] == side and r["peer_us"]]
        row.append(f"{math.exp(sum(map(math.log, v)) / len(v)):.2f} ({min(v):.2f})")
out += ["| " + " | ".join(row) + " |", ""]
try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    s = greedy(36, 0)
    y = [judge([min(v) for v in zip(*(column[k] for k in s[: n + 1]))]) for n in range(len(s))]
    plt.figure(figsize=(7, 4))
    plt.semilogy(range(1, len(s) + 1), [v[0] for v in y], "o-", label="mean loss")
    plt.semilogy(range(1, len(s) + 1), [v[1] for v in y], "s-", label="worst loss")
    plt.xlabel("pairs of a format and a kernel, taken greedily by the mean")
    plt.ylabel("time over the best of all, minus 1")
    plt.legend()
    plt.grid(alpha=0.3)
    plt.tight_layout()
    plt.savefig(os.path.join(a.o, a.name + "-sets.png"), dpi=110)
    out += [f"![Loss over the number of pairs]({a.name}-sets.png)", ""]
except ImportError:
    pass
open(os.path.join(a.o, a.name + ".md"), "w").write("\n".join(out))
