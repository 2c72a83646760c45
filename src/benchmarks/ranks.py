#!/usr/bin/env python3
"""
Products and CG over ranks, a table and a plot: what ranks.c measured.

    ranks.py [-o FOLDER] [-name NAME] ranks.jsonl

Prints a table in Markdown, microseconds, for each matrix a row and for each number of ranks a column, ours and the peer's; with Matplotlib, FOLDER/NAME.png: strong scaling (time on one rank over
that on n), and weak scaling (the same, where the matrix grows with the ranks: records whose name ends in x and the number of ranks). Of several records of one thing the last counts.
"""
import argparse, json, os, re
from collections import defaultdict

p = argparse.ArgumentParser()
p.add_argument("-o", default="docs/results")
p.add_argument("-name", default="ranks")
p.add_argument("jsonl")
a = p.parse_args()

# (program, operation): matrix: ranks: microseconds
times = defaultdict(lambda: defaultdict(dict))
for line in open(a.jsonl):
    r = json.loads(line)
    if r.get("record") != "ranks":
        continue
    who = "gpucsr" if "gpucsr" in r["mat_type"] else r["mat_type"].replace("seq", "").replace("mpi", "")
    matrix = re.sub(r"x\d+$", "x", r["matrix"])
    for what, key in (("A x", "product_us"), ("Aᵀ x", "transpose_us"), ("x'y", "dot_us")):
        if key in r:
            times[who, what][matrix][r["ranks"]] = r[key]
    if "ksp" in r:
        times[who, r["ksp"]][matrix][r["ranks"]] = r["iteration_us"]

counts = sorted({n for t in times.values() for m in t.values() for n in m})
matrices = list(dict.fromkeys(m for t in times.values() for m in t))
print("| matrix | | " + " | ".join(f"{n}" for n in counts) + " | scaling on " + str(counts[-1]) + " |")
print("|---|---|" + "--:|" * (len(counts) + 1))
for m in matrices:
    for (who, what), t in times.items():
        if m not in t:
            continue
        got = t[m]
        last = f"{got[counts[0]] / got[counts[-1]]:.2f}" if counts[0] in got and counts[-1] in got else ""
        print(f"| {m} | {what}, {who} | " + " | ".join(f"{got[n]:.4g}" if n in got else "" for n in counts) + f" | {last} |")

try:
    import matplotlib
except ImportError:
    raise SystemExit

matplotlib.use("Agg")
import matplotlib.pyplot as plt

shown = [k for k in (("gpucsr", "A x"), ("gpucsr", "gpucg"), ("gpucsr", "cg"), ("gpucsr", "gpubcgs"), ("aijcusparse", "A x"), ("aijcusparse", "cg"), ("aijcusparse", "bcgs")) if k in times]
weak = [m for m in matrices if m.endswith("x")]
panels = [("strong", m) for m in matrices if m not in weak] + [("weak", m) for m in weak]
columns = min(3, len(panels))
rows = (len(panels) + columns - 1) // columns
figure, axes = plt.subplots(rows, columns, figsize=(4 * columns, 3.2 * rows), squeeze=False)
for axis, (kind, m) in zip(axes.flat, panels):
    for k, ((who, what), mark) in enumerate(zip(shown, "os^Pv<>")):
        got = times[who, what].get(m, {})
        n = [c for c in counts if c in got]
        if counts[0] in got and len(n) > 1:
            axis.plot(n, [got[counts[0]] / got[c] for c in n], mark + "-", ms=5, color=f"C{k}", label=f"{what}, {who}")
    axis.plot(counts, counts if kind == "strong" else [1] * len(counts), "k:", lw=0.8)
    axis.set_xticks(counts)
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.set_title(m if kind == "strong" else f"{m} ranks, weak")
    axis.set_xlabel("GPUs")
    axis.set_ylabel("time on one / time")
for axis in axes.flat[len(panels) :]:
    axis.set_visible(False)
labels = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels())}
figure.legend(labels.values(), labels.keys(), loc="lower center", ncol=max(1, len(labels)), fontsize=8)
plt.tight_layout(rect=(0, 0.05, 1, 1))
plt.savefig(os.path.join(a.o, f"{a.name}.png"), dpi=110)
