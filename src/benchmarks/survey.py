#!/usr/bin/env python3
"""
The survey of the pool: the loss of the choice, its gain over cuSPARSE, sets of kernels that suffice, threads a block.

    survey.py [-o FOLDER] [-name NAME] [-profile TEXT] bench.jsonl[.xz] SAMPLES[.xz]

bench.jsonl and SAMPLES come from one or more runs of spmv (-o, -samples, -threads). Writes NAME.md and, with Matplotlib, plots
into FOLDER (docs/results). -profile describes the profile that made the choices.
A pair is a format and a kernel. The loss of a set on a product is the time of its best pair over that of the best of all, minus 1. A pair that was not
timed on a product because its format cannot hold the matrix, or needs far too many bytes, counts as 50 times the best; a kernel on CSR that was predicted to be slow counts as twice. Sets of up to 3 are searched exhaustively
among the 40 pairs that are most often near the best, larger ones greedily.
"""
import argparse, itertools, json, lzma, math, os, re
from collections import Counter, defaultdict

p = argparse.ArgumentParser()
p.add_argument("-o", default="docs/results")
p.add_argument("-name", default="survey")
p.add_argument("-profile", default="")
p.add_argument("jsonl")
p.add_argument("samples")
a = p.parse_args()


def lines(name):
    with (lzma.open if name.endswith(".xz") else open)(name, "rt") as f:
        yield from f


def geometric(v):
    return math.exp(sum(map(math.log, v)) / len(v)) if v else math.nan


def median(v):
    v = sorted(v)
    return v[len(v) // 2] if v else math.nan


records = [json.loads(line) for line in lines(a.jsonl)]
run = next(r for r in records if r["record"] == "run")
products = [r for r in records if r["record"] == "product"]
here = os.path.dirname(os.path.abspath(__file__))
tutorials = set(re.findall(r"^system (\S+)", open(os.path.join(here, "problems/tutorials.sh")).read(), re.M))
time = defaultdict(dict)
for line in lines(a.samples):
    w = line.split()
    time[w[0], w[1], w[2]][w[4] if w[3] == "csr" else w[3] + " " + w[4]] = float(w[5])
cases = [{k: math.log(t / min(d.values())) for k, t in d.items()} for d in time.values()]
pairs = sorted({k for d in cases for k in d})
near = Counter(k for d in cases for k, v in d.items() if v < math.log(1.05))
best = Counter(min(d, key=d.get) for d in cases)
few = [k for k, _ in near.most_common(40)]
column = {k: [d.get(k, math.log(50 if " " in k else 2)) for d in cases] for k in pairs}


def judge(least):
    return math.exp(sum(least) / len(least)) - 1, math.exp(max(least)) - 1


def of(s):
    return judge([min(v) for v in zip(*(column[k] for k in s))])


def exhaustive(n, by):
    return min(itertools.combinations(few, n), key=lambda s: of(s)[by])


def greedy(n, by):
    chosen, least = [], [math.log(50)] * len(cases)
    for _ in range(n):
        score = {k: judge([min(v) for v in zip(least, column[k])]) for k in pairs if k not in chosen}
        k = min(score, key=lambda k: (score[k][by], score[k][0]))
        chosen.append(k)
        least = [min(v) for v in zip(least, column[k])]
    return chosen


def cells(s):
    mean, worst = of(s)
    return f"{mean:.3f} | {worst:.2f} | {', '.join(s)}"


def where(precision, side=None):
    return [r for r in products if r["precision"] == precision and (side is None or r["side"] == side)]


def kind(r):
    return "a tutorial's" if r["matrix"] in tutorials else "real" if r["class"] == "real" else "generated"


out = [f"# Survey of the pool, {run['device']}, {run['date']}", ""]
matrices = {r["matrix"]: r for r in products}
count = Counter(map(kind, matrices.values()))
out += [f"Version {run['id']}, {run['petsc']}; device copy {run['copy_gbs']:.0f} GB/s. {len(matrices)} matrices ({', '.join(f'{n} {k}' for k, n in sorted(count.items()))}) of {min(r['nnz'] for r in products):.0f} to {max(r['nnz'] for r in products):.3g} entries, "
        f"{len(cases)} products ({' and '.join(sorted({k[2] for k in time}))}, A and its transpose), {len(pairs)} pairs of a format and a kernel.", a.profile, f"Made by `src/benchmarks/survey.py` from `spmv -collection {'-threads ' if any(r['record'] == 'threads' for r in records) else ''}-o bench.jsonl -samples SAMPLES` and from `src/benchmarks/problems/tutorials.sh`.", ""]
out += ["## Loss of the choice", "", "Chosen time / best time − 1: mean (worst).", "", "| | double N | double T | single N | single T | double |", "| :-- | --: | --: | --: | --: | --: |"]
columns = [("double", "N"), ("double", "T"), ("single", "N"), ("single", "T"), ("double", None)]
for word, key in (("estimate", "regret"), ("measure", "measure_regret"), ("tree", "tree_regret")):
    row = []
    for c in columns:
        v = [r[key] for r in where(*c)]
        row.append(f"{sum(v) / len(v) - 1:.3f} ({max(v) - 1:.2f})" if v else "")
    out.append(f"| {word} | " + " | ".join(row) + " |")
halves = [(word, [r[key] for r in where("double") if r.get(key)]) for word, key in (("estimate", "regret_halves"), ("measure", "measure_regret_halves"), ("tree", "tree_regret_halves"))]
if halves[0][1]:
    out += ["", "With many similar candidates the best one is partly luck. With the best found by half of the rounds and timed by the other half, in double: " + ", ".join(f"{word} {sum(v) / len(v) - 1:.3f}" for word, v in halves) + "."]
out += ["", "Above 0.3:", "", "| | matrix | | lost | took | best |", "| :-- | :-- | :-- | --: | :-- | :-- |"]
for word, key, took in (("estimate", "regret", "chosen"), ("measure", "measure_regret", "measure")):
    for r in sorted(products, key=lambda r: -r[key]):
        if r[key] > 1.3:
            out.append(f"| {word} | {r['matrix']} | {r['precision']} {r['side']} | {r[key] - 1:.2f} | {r[took]} | {r['best']} |")
out += ["", "## Against cuSPARSE's best", "", "Its time over ours: geometric mean (smallest), how many below 0.97.", "", "| | double N | double T | single N | single T |", "| :-- | --: | --: | --: | --: |"]
for word, key in (("estimate", "chosen_us"), ("the best pair", "best_us")):
    row = []
    for c in columns[:4]:
        v = [r["peer_us"] / r[key] for r in where(*c) if r["peer_us"]]
        row.append(f"{geometric(v):.2f} ({min(v):.2f}), {sum(x < 0.97 for x in v)} of {len(v)}" if v else "")
    out.append(f"| {word} | " + " | ".join(row) + " |")
slow = sorted((r for r in products if r["peer_us"] and r["ratio"] < 0.97), key=lambda r: r["ratio"])
if slow:
    out += ["", "| matrix | | ratio | took, us | best, us | cuSPARSE, us |", "| :-- | :-- | --: | :-- | :-- | --: |"]
    out += [f"| {r['matrix']} | {r['precision']} {r['side']} | {r['ratio']:.2f} | {r['chosen']} {r['chosen_us']:.2f} | {r['best']} {r['best_us']:.2f} | {r['peer_us']:.2f} |" for r in slow]
large = [r for r in where("double", "N") if r["nnz"] * 12 > 200e6 and r["length_deviation"] < 0.3 * r["length_mean"]]
if large:
    out += ["", "## Large matrices with regular rows", "", "Bytes of A's CSR and of both vectors over the time, as a fraction of the device copy's rate. Matrices of more than 200 MB whose row lengths deviate by less than 0.3 of the mean.", "", "| matrix | rows | entries | took | fraction |", "| :-- | --: | --: | :-- | --: |"]
    out += [f"| {r['matrix']} | {r['rows']:.0f} | {r['nnz']:.3g} | {r['chosen']} | {r['fraction']:.2f} |" for r in sorted(large, key=lambda r: r["fraction"])]
gflops = {r["matrix"]: r for r in where("double", "N")}
long = [r for r in gflops.values() if r["length_max"] >= 50000 and r["length_mean"] < 30]
if long:
    regular = gflops.get("regular_like", {}).get("gflops")
    out += ["", "## A few rows of 10^5 entries among short ones", "", f"GFLOP/s in double. `regular_like`, with as many rows of 6 entries each: {regular or math.nan:.0f}.", "", "| matrix | rows | entries | longest | N | T |", "| :-- | --: | --: | --: | --: | --: |"]
    t = {r["matrix"]: r["gflops"] for r in where("double", "T")}
    out += [f"| {r['matrix']} | {r['rows']:.0f} | {r['nnz']:.3g} | {r['length_max']:.0f} | {r['gflops']:.0f} | {t.get(r['matrix'], math.nan):.0f} |" for r in long]
setups = [r for r in records if r["record"] == "setup" and r["precision"] == "double"]
csr = [(r["inspect_us"] + r["convert_us"]) / r["product_us"] for r in setups if r["format"] == "csr"]
other = [(r["inspect_us"] + r["convert_us"]) / r["product_us"] for r in setups if r["format"] != "csr"]
out += ["", "## Inspection and conversion", "", f"In products, double, median: {median(csr):.0f} for the {len(csr)} matrices that stayed in CSR, {median(other):.0f} for the {len(other)} others.", ""]
out += ["## Sets of pairs", "", "| pairs | criterion, search | mean loss | worst | set |", "| --: | :-- | --: | --: | :-- |"]
for n in range(1, 8):
    for by, word in ((0, "mean"), (1, "worst")):
        if n <= 3:
            out.append(f"| {n} | {word}, exhaustive | {cells(exhaustive(n, by))} |")
        out.append(f"| {n} | {word}, greedy | {cells(greedy(n, by))} |")
for n in (10, 16, 24, 36):
    out.append(f"| {n} | mean, greedy | {cells(greedy(n, 0)).rsplit('|', 1)[0]}| |")
out += ["", "## How often a pair is the best, and within 5 % of it", "", "| pair | best | near |", "| :-- | --: | --: |"]
out += [f"| {k} | {best[k]} | {near[k]} |" for k, _ in near.most_common(40)]
sizes = (64, 128, 256, 512)
blocks = defaultdict(list)
for r in records:
    if r["record"] == "threads":
        for k, t in r["us"].items():
            blocks[re.sub(r"^.*\+", "", k), r["rows"] >= 100000].append(t)
if blocks:
    out += ["", "## Threads a block", "", "A x in double, where the kernel is within 1.3 of the best: geometric mean of the time over that of the best size for the same matrix, for fewer than 10^5 rows and for more. SELL's kernels take at most 256, or the warps of one slice.", "", "| kernel | rows | products | " + " | ".join(map(str, sizes)) + " |", "| :-- | :-- | --: |" + " --: |" * len(sizes)]
    for (k, many), v in sorted(blocks.items()):
        if len(v) >= 3:
            out.append(f"| {k} | {'more' if many else 'fewer'} | {len(v)} | " + " | ".join(f"{geometric([t[q] / min(t) for t in v]):.3f}" for q in range(4)) + " |")
try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def save(name, text):
        plt.grid(alpha=0.3)
        plt.tight_layout()
        plt.savefig(os.path.join(a.o, f"{a.name}-{name}.png"), dpi=110)
        plt.close()
        out.extend(["", f"![{text}]({a.name}-{name}.png)"])

    s = greedy(36, 0)
    y = [of(s[: n + 1]) for n in range(len(s))]
    plt.figure(figsize=(7, 4))
    plt.semilogy(range(1, len(s) + 1), [v[0] for v in y], "o-", label="mean loss")
    plt.semilogy(range(1, len(s) + 1), [v[1] for v in y], "s-", label="worst loss")
    plt.xlabel("pairs of a format and a kernel, selected greedily by the mean")
    plt.ylabel("time over the best of all, minus 1")
    plt.legend()
    save("sets", "Loss over the number of pairs")
    plt.figure(figsize=(7, 4))
    for k, mark in (("real", "o"), ("generated", "s"), ("a tutorial's", "^")):
        v = [r for r in where("double", "N") if kind(r) == k and r["peer_us"]]
        plt.loglog([r["nnz"] for r in v], [r["ratio"] for r in v], mark, ms=4, label=k)
    plt.axhline(1, color="k", lw=0.8)
    plt.xlabel("entries")
    plt.ylabel("cuSPARSE's best time over ours, A x in double")
    plt.legend()
    save("peer", "cuSPARSE's time over ours")
    plt.figure(figsize=(7, 4))
    for word, key in (("tree", "tree_regret"), ("estimate", "regret"), ("measure", "measure_regret")):
        v = sorted(r[key] - 1 for r in products)
        plt.plot([100 * (k + 1) / len(v) for k in range(len(v))], v, label=word)
    plt.ylim(0, 0.5)
    plt.xlabel("per cent of the products")
    plt.ylabel("chosen time / best time - 1")
    plt.legend()
    save("regret", "What choosing loses")
except ImportError:
    pass
open(os.path.join(a.o, a.name + ".md"), "w").write("\n".join(line for line in out if line is not None) + "\n")
