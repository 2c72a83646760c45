#!/usr/bin/env python3
"""
From the JSON lines of spmv, hostvec and ksp to a page of tables and two plots.

    summary.py [-o FOLDER] [-name NAME] FILE.jsonl ...

Writes NAME.md, NAME.jsonl (all lines together), and with Matplotlib NAME-speedup.png and NAME-bandwidth.png into FOLDER
(docs/results). NAME is by default the device and the date of the first run. Prints what the results are against the targets.
The fields are those in the head comments of the three programs.
"""
import argparse, json, math, os, re, sys
from collections import defaultdict

THIN = ("text_like", "tall_thin")  # the transposes that the peer is worst at have a target of their own


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def number(v, digits=3):
    return "" if v is None else f"{v:.{digits}g}" if abs(v) < 1000 else f"{v:.0f}"


def table(head, rows):
    """Markdown; the first column to the left, the others to the right"""
    line = lambda cells: "| " + " | ".join(str(c) for c in cells) + " |"
    return [line(head), line([":--"] + ["--:"] * (len(head) - 1))] + [line(r) for r in rows] + [""]


def read(files):
    records = defaultdict(list)
    for name in files:
        with open(name) as f:
            for k, text in enumerate(f, 1):
                try:
                    r = json.loads(text)
                    records[r["record"]].append(r)
                except (ValueError, KeyError):
                    sys.exit(f"summary.py: {name}, line {k}: no JSON object with a record field")
    if not any(records.values()):
        sys.exit("summary.py: nothing to summarize: the files are empty")
    return records


def latest(records, key):
    """Of several runs of the same thing the last one counts"""
    return list({key(r): r for r in records}.values())


# ---- the parts of the page ----


def means(products):
    rows = []
    for cls in ("synthetic", "real", "all"):
        for precision in ("double", "single", "mixed"):
            for side in "NT":
                p = [r for r in products if cls in ("all", r["class"]) and r["precision"] == precision and r["side"] == side]
                if not p:
                    continue
                q = [r for r in p if r["ratio"]]
                rows.append(
                    [f"{cls}, {precision}, {side}", len(p), number(geomean(r["ratio"] for r in q)), number(geomean(r["peer_us"] / r["best_us"] for r in q)), number(min((r["ratio"] for r in q), default=None)), sum(r["ratio"] < 1 for r in q)]
                    + [number(geomean(r["regret"] for r in p)), number(max(r["regret"] for r in p)), number(geomean(r["fraction"] for r in p), 2)]
                    + [number(geomean(r["aijcusparse_ratio"] for r in p if r.get("aijcusparse_ratio")))]
                )
    return table(["class, precision, side", "matrices", "cuSPARSE / chosen", "cuSPARSE / best", "smallest", "slower", "regret", "worst", "of copy", "aijcusparse / chosen"], rows)


def each(products, setups):
    """A row a matrix and side; peak: device memory at most while A is built, over the bytes of its CSR"""
    by = defaultdict(dict)
    for r in products:
        by[r["class"], r["matrix"], r["side"]][r["precision"]] = r
    peak = {(r["matrix"], r["precision"]): r["peak_bytes"] / r["csr_bytes"] for r in setups}
    kinds = [k for k in ("double", "single", "mixed") if any(k in v for v in by.values())]
    peer = any(r.get("aijcusparse_us") for r in products)
    rows = []
    for cls, name, side in sorted(by, key=lambda k: (k[0] == "real", k[1], k[2])):
        any_ = next(iter(by[cls, name, side].values()))
        row = [name, side, any_["nnz"]]
        for k in kinds:
            r = by[cls, name, side].get(k)
            row += [r["chosen"], number(r["chosen_us"]), number(r["best_us"]), number(r["peer_us"]), number(r["ratio"])] if r else [""] * 5
            if k == "double" and peer:
                row.append(number(r.get("aijcusparse_us")) if r else "")
            row.append(number(peak.get((name, k))) if side == "N" else "")
        rows.append(row)
    return table(["matrix", "side", "nnz"] + [h for k in kinds for h in (f"{k}: chosen", "µs", "our best", "cuSPARSE", "ratio", *(["aijcusparse"] if k == "double" and peer else []), "peak")], rows)


def worst(products):
    lines = []
    slower = sorted((r for r in products if r["ratio"] and r["ratio"] < 1), key=lambda r: r["ratio"])
    lines += ["Slower than cuSPARSE's best:", ""]
    lines += table(["matrix", "precision", "side", "ratio", "chosen", "best", "its ratio"], [[r["matrix"], r["precision"], r["side"], number(r["ratio"]), r["chosen"], r["best"], number(r["peer_us"] / r["best_us"])] for r in slower]) if slower else ["none.", ""]
    regret = sorted((r for r in products if r["regret"] > 1.1), key=lambda r: -r["regret"])[:20]
    if regret:
        lines += ["Where the choice costs most (chosen time over the best kernel's):", ""]
        lines += table(["matrix", "precision", "side", "regret", "chosen", "best", "rows", "mean length", "longest"], [[r["matrix"], r["precision"], r["side"], number(r["regret"]), r["chosen"], r["best"], r["rows"], number(r["length_mean"]), r["length_max"]] for r in regret])
    wrong = [r for r in products if r["failed"]]
    if wrong:
        lines += ["Wrong results:", ""] + table(["matrix", "precision", "side", "kernels"], [[r["matrix"], r["precision"], r["side"], ", ".join(r["failed"])] for r in wrong])
    return lines


SETUP = (
    ("held_setup_ratio", "set-up: conversion, padding, upload; of the bytes PETSc holds"),
    ("held_refresh_ratio", "refresh of values; the same"),
    ("setup_ratio", "set-up with inspection and choice; of the bytes in this precision"),
    ("refresh_ratio", "refresh of values; the same"),
)


def setup(setups):
    rows, memory = [], []
    for precision in ("double", "single", "mixed"):
        p = [r for r in setups if r["precision"] == precision]
        if not p:
            continue
        for key, what in SETUP:
            bad = max(p, key=lambda r: r[key])
            rows.append([f"{precision}, {what}", len(p), number(geomean(r[key] for r in p)), f"{bad[key]:.2f} ({bad['matrix']})", sum(r[key] > 1 for r in p)])
        memory.append([precision] + [number(f(r[key] / r["csr_bytes"] for r in p)) for key in ("device_bytes", "peak_bytes") for f in (geomean, max)] + [number(geomean(r["transpose_us"] / r["product_us"] for r in p))])
    lines = table(["", "matrices", "mean of what is allowed", "worst", "above"], rows)
    lines += ["Device memory over the bytes of CSR, after the build and at most while it runs, and the transpose's build:", ""]
    lines += table(["precision", "bytes", "worst", "peak", "worst", "transpose, in products"], memory)
    lines += ["Microseconds. Parts are waited for one by one, so that together they are more than the whole:", ""]
    head = ["matrix", "precision", "nnz", "format, kernel", "set-up", "upload", "inspect", "choose", "convert", "allowed", "fraction", "without choosing, as held", "refresh", "allowed", "fraction", "as held"]
    lines += table(head, [[r["matrix"], r["precision"], r["nnz"], f"{r['format']}, {r['kernel']}"] + [number(r[k]) for k in ("setup_us", "upload_us", "inspect_us", "choose_us", "convert_us")]
                          + [number(r["setup_us"] / r["setup_ratio"]), f"{r['setup_ratio']:.2f}", f"{r['held_setup_ratio']:.2f}", number(r["refresh_us"]), number(0.7 * r["value_copy_us"] + 2 * r["product_us"]), f"{r['refresh_ratio']:.2f}", f"{r['held_refresh_ratio']:.2f}"]
                          for r in sorted(setups, key=lambda r: (r["precision"], r["nnz"]))])
    return lines


def hostvec(records, bandwidths):
    b = bandwidths[-1] if bandwidths else None
    lines = [f"Pinned {b['pinned_up_gbs']:.1f} GB/s up, {b['pinned_down_gbs']:.1f} down, {b['duplex_gbs']:.1f} both at once; pageable {b['pageable_up_gbs']:.1f} up, {b['pageable_down_gbs']:.1f} down.", ""] if b else []
    rows = [[r["rows"], r["precision"], r["pin"], r["threads"]] + [number(r[k], 4) for k in ("first_us", "second_us", "product_us", "kernel_us", "transfer_us")] + [number(r["ratio"])] for r in records]
    return lines + table(["rows", "precision", "page-locked", "threads", "first µs", "second µs", "product µs", "kernel µs", "transfer µs", "/ allowed"], rows)


def ksp(records):
    rows = []
    for r in sorted(records, key=lambda r: (r["matrix"], r["mat_type"], r["vec_type"])):
        rows.append([r["matrix"], r["rows"], r["mat_type"], r["vec_type"], r["petsc"].split(",")[0].replace("Petsc Release Version ", ""), r["iterations"]] + [number(r[k], 4) for k in ("iteration_us", "setup_us", "solve_us", "total_us")] + [f"{r['residual']:.1e}"])
    return table(["matrix", "rows", "matrix type", "vectors", "PETSc", "iterations", "µs an iteration", "set-up µs", "solve µs", "set-up and first solve µs", "residual"], rows)


def targets(products, setups, hostvecs, ksps):
    """What the project promises, and what was measured: (what, measured, met)"""
    rows = []

    def add(what, value, met, text=""):
        if value is not None:
            rows.append([what, (text or "{:.3g}").format(value), "yes" if met else "**no**"])

    n = [r for r in products if r["precision"] == "double" and r["side"] == "N" and r["ratio"]]
    t = [r for r in products if r["precision"] == "double" and r["side"] == "T" and r["ratio"]]
    if n:
        low = min(n, key=lambda r: r["ratio"])
        add("f64 product, vectors on the device: never slower than cuSPARSE's best", low["ratio"], low["ratio"] >= 1, f"smallest ratio {{:.3g}}, {low['matrix']}; {sum(r['ratio'] < 1 for r in n)} of {len(n)} slower")
        add("the same, geometric mean of the ratios at least 1.25", geomean(r["ratio"] for r in n), geomean(r["ratio"] for r in n) >= 1.25)
    for name in THIN:
        for r in t:
            if r["matrix"] == name:
                add(f"f64 transposed product of {name}: at least 5 times faster", r["ratio"], r["ratio"] >= 5)
    rest = [r["ratio"] for r in t if r["matrix"] not in THIN]
    if rest:
        add("f64 transposed product of the others: at least 1.3, geometric mean", geomean(rest), geomean(rest) >= 1.3)
    for precision in ("double", "single"):
        s = [r for r in setups if r["precision"] == precision]
        for key, what in SETUP if s else ():
            bad = max(s, key=lambda r: r[key])
            add(f"{precision}, {what}: at most 0.7 of their pageable copy and {30 if 'setup' in key else 2} products", bad[key], bad[key] <= 1, f"worst {{:.3g}} of it, {bad['matrix']}; mean {geomean(r[key] for r in s):.2g}; {sum(r[key] > 1 for r in s)} of {len(s)} above")
    s = [r for r in setups if r["precision"] == "double" and r["format"] == "csr"]
    if s:
        bad = max(s, key=lambda r: r["device_bytes"] / r["csr_bytes"])
        add("device memory of A with the CSR kernels: at most 1.15 of its CSR", bad["device_bytes"] / bad["csr_bytes"], bad["device_bytes"] <= 1.15 * bad["csr_bytes"], f"worst {{:.3g}}, {bad['matrix']}")
    h = defaultdict(list)
    for r in hostvecs:
        if r["precision"] == "double" and r["rows"] >= 1000000:
            h[r["rows"]].append(r["ratio"])
    if h:
        add("f64 product with host vectors, a million rows and more: at most 1.5 of kernel or bus", max(map(min, h.values())), max(map(min, h.values())) <= 1, "{:.3g} of it at the best setting")
    by = defaultdict(dict)
    for r in ksps:
        by[r["matrix"], r["petsc"]][re.sub("^(seq|mpi)", "", r["mat_type"])] = r
    both = [(v["aijgpucsr"], v["aijcusparse"]) for v in by.values() if "aijgpucsr" in v and "aijcusparse" in v]
    if both:
        each, total = min(p["iteration_us"] / g["iteration_us"] for g, p in both), min(p["total_us"] / g["total_us"] for g, p in both)
        add("KSPCG with Jacobi: an iteration faster than with aijcusparse", each, each > 1, "smallest ratio {:.3g}")
        add("the same, in total", total, total > 1, "smallest ratio {:.3g}")
        add("the same number of iterations", max(abs(p["iterations"] - g["iterations"]) for g, p in both), all(p["iterations"] == g["iterations"] for g, p in both), "differ by {:.0f}")
    return rows


# ---- plots ----


def plots(products, path, title):
    try:
        import matplotlib
    except ImportError:
        print("summary.py: no Matplotlib, no plots", file=sys.stderr)
        return []
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    def panels(kinds):
        """One panel a kind, double first, in rows of two"""
        rows = (len(kinds) + 1) // 2
        fig, axes = plt.subplots(rows, 2, figsize=(9, 3.4 * rows), sharey=True, squeeze=False)
        axes = axes.ravel()
        for ax in axes[len(kinds):]:
            ax.set_visible(False)
        for ax in axes:
            ax.set_yscale("log")
            for axis in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
                axis(FuncFormatter(lambda v, _: f"{v:g}" if f"{v:e}"[0] in "125" else ""))
            ax.grid(True, which="both", alpha=0.25)
            ax.axhline(1, color="black", linewidth=0.8)
        fig.suptitle(title, fontsize=9)
        return fig, axes

    def save(fig, suffix, text):
        fig.tight_layout()
        fig.savefig(path + suffix, dpi=100)
        made.append((suffix, text))

    made = []
    kinds = sorted({(r["precision"], r["side"]) for r in products if r["ratio"]})
    if kinds:
        fig, axes = panels(kinds)
        for ax, (precision, side) in zip(axes, kinds):
            p = sorted((r for r in products if (r["precision"], r["side"]) == (precision, side) and r["ratio"]), key=lambda r: r["ratio"])
            for cls, colour in (("real", "tab:blue"), ("synthetic", "tab:orange")):
                xy = [(k, r["ratio"]) for k, r in enumerate(p) if r["class"] == cls]
                ax.plot([q[0] for q in xy], [q[1] for q in xy], ".", color=colour, label=cls)
            ax.set_title(f"{precision}, {side}: geometric mean {geomean(r['ratio'] for r in p):.2f}", fontsize=9)
            ax.set_xlabel("matrices, sorted")
        axes[0].set_ylabel("time of cuSPARSE's best / ours")
        axes[0].legend()
        save(fig, "-speedup.png", "Speed-up over cuSPARSE's best algorithm, matrix by matrix")
    if products:
        kinds = sorted({(r["precision"], r["side"]) for r in products})
        fig, axes = panels(kinds)
        for ax, (precision, side) in zip(axes, kinds):
            p = [r for r in products if (r["precision"], r["side"]) == (precision, side)]
            ax.plot([r["nnz"] for r in p], [r["fraction"] for r in p], ".", color="tab:blue", label="chosen")
            q = [r for r in p if r["ratio"]]
            ax.plot([r["nnz"] for r in q], [r["fraction"] / r["ratio"] for r in q], "x", markersize=3, color="tab:red", label="cuSPARSE's best")
            ax.set_xscale("log")
            ax.set_title(f"{precision}, {side}", fontsize=9)
            ax.set_xlabel("nonzeros")
        axes[0].set_ylabel("of the device copy bandwidth")
        axes[0].legend()
        save(fig, "-bandwidth.png", "Compulsory bytes over time, as a fraction of the copy bandwidth (above 1: the matrix stays in the cache)")
    return made


def main():
    p = argparse.ArgumentParser(description="From the JSON lines of the benchmarks to tables and plots", prefix_chars="-")
    p.add_argument("-o", default="docs/results", metavar="FOLDER")
    p.add_argument("-name")
    p.add_argument("files", nargs="+", metavar="FILE.jsonl")
    o = p.parse_args()
    records = read(o.files)
    products = latest(records["product"], lambda r: (r["matrix"], r["precision"], r["side"]))
    setups = latest(records["setup"], lambda r: (r["matrix"], r["precision"]))
    hostvecs = latest(records["hostvec"], lambda r: (r["rows"], r["precision"], r["pin"], r["threads"]))
    ksps = latest(records["ksp"], lambda r: (r["matrix"], r["mat_type"], r["vec_type"], r["petsc"]))
    run = records["run"][0] if records["run"] else {"device": "unknown device", "date": "", "id": "unknown", "petsc": "", "cuda": 0, "copy_gbs": 0}
    name = o.name or re.sub(r"[^a-z0-9]+", "-", f"{run['device']} {' '.join(run['date'].split()[1:3])} {run['date'].split()[-1] if run['date'] else ''}".lower()).strip("-")
    os.makedirs(o.o, exist_ok=True)
    path = os.path.join(o.o, name)

    page = [f"# {run['device']}, {run['date']}", ""]
    page += [f"Version {run['id']}; {run['petsc'].split(',')[0]}; CUDA {run['cuda'] // 1000}.{run['cuda'] % 1000 // 10}; device copy {run['copy_gbs']:.0f} GB/s. Made by `src/benchmarks/run.sh` and `src/benchmarks/tables/summary.py`; how each number is measured is in the head comments of the programs there.", ""]
    goals = targets(products, setups, hostvecs, ksps)
    if goals:
        page += ["## Targets", ""] + table(["target", "measured", "met"], goals)
    if products:
        page += ["## Products, vectors on the device", "", "Ratios are the time of cuSPARSE's best CSR algorithm over ours, geometric means; regret is the time of the chosen kernel over that of our best.", ""] + means(products)
        for suffix, text in plots(products, path, f"{run['device']}, version {run['id']}"):
            page += [f"![{text}]({name}{suffix})", ""]
        page += worst(products)
        page += ["### Each matrix", "", "Microseconds; the ratio is cuSPARSE's time over that of the chosen kernel; peak is the device memory that building A takes, over the bytes of its CSR. Synthetic matrices first.", ""] + each(products, setups)
    if setups:
        page += ["## Set-up and refresh", "", "Allowed: 0.7 of the time of one pageable copy, and 30 products for a set-up, 2 for a refresh.", ""] + setup(setups)
    if hostvecs:
        page += ["## Host vectors", "", "Allowed: 1.5 of the larger of the kernel's time and that of the vectors' bytes at the pinned bandwidth.", ""] + hostvec(hostvecs, records["bandwidth"])
    if ksps:
        page += ["## PETSc's conjugate gradients with Jacobi", ""] + ksp(ksps)
    if records["failure"]:
        page += ["## Failures", ""] + table(["matrix", "precision", "side", "message"], [[r["matrix"], r["precision"], r["side"], r["message"]] for r in records["failure"]])
    with open(path + ".md", "w") as f:
        f.write("\n".join(page))
    lines = [line for f in o.files for line in open(f)]
    with open(path + ".jsonl", "w") as f:
        f.writelines(lines)
    for what, measured, met in goals:
        print(f"{'ok  ' if met == 'yes' else 'MISS'}  {what}: {measured}")
    print(f"{path}.md")


if __name__ == "__main__":
    main()
