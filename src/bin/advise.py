"""
The drawing of gpucsr-advise: the places of the entries, the lengths of the rows, and the times in each format and place.

    python3 advise-draw.py DATA DRAWING.png      DATA: as gpucsr-advise -data, or MatGPUCSRAdviceWrite(), writes it
"""
import json
import sys


def fail(why):
    sys.exit(f"gpucsr-advise: no drawing: {why}")


def read(name):
    try:
        with open(name) as f:
            data = json.load(f)
    except (OSError, ValueError) as e:
        fail(f"{name} is not what gpucsr-advise -data writes: {e}")
    if not isinstance(data, dict) or data.get("record") != "advice" or "end" not in data:
        fail(f"{name} is not what gpucsr-advise -data writes")
    return data


def picture(ax, d):
    from matplotlib.colors import LogNorm
    cells = [[c if c else float("nan") for c in row] for row in d["picture"]]
    image = ax.imshow(cells, norm=LogNorm(vmin=1), cmap="viridis", extent=(0, d["columns"], d["rows"], 0), aspect="equal" if max(d["rows"], d["columns"]) < 3 * min(d["rows"], d["columns"]) else "auto", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="entries of a cell", shrink=0.8)
    ax.set(title=f"{d['rows']} x {d['columns']}, {d['nnz']} entries", xlabel="column", ylabel="row")


def lengths(ax, d):
    names = ["0", "1"] + [f"{2**k}-{2**(k + 1) - 1}" for k in range(1, 32)]
    ax.bar(range(len(d["lengths"])), d["lengths"], color="tab:blue")
    ax.set_xticks(range(len(d["lengths"])), names[: len(d["lengths"])], rotation=60, ha="right")
    ax.set(title=f"lengths of rows, the longest {d['longest']}", xlabel="entries of a row", ylabel="rows")
    if max(d["lengths"]) > 100 * min(n for n in d["lengths"] if n):
        ax.set_yscale("log")
        ax.set_ylabel("rows, logarithmic axis")


def formats(ax, d):
    best = d["formats"][:14]
    ax.barh([f"{f['format']}, {f['kernel']}" for f in best], [f["us"] for f in best], color=["tab:green" if f["format"] == d["format"] and f["kernel"] == d["kernel"] else "tab:blue" for f in best])
    ax.invert_yaxis()
    ax.set(title="a product by format, vectors on the GPU", xlabel="microseconds, predicted")


def places(ax, d):
    names = ["CPU, one core", "GPU, vectors on the host", "GPU, vectors there", "GPU, gpucg"]
    rows = [(f"{what}: {name}", t) for what, times in (("product", d["product_us"]), ("CG iteration", d["iteration_us"])) for name, t in zip(names, times) if t > 0]
    rows += [(f"{what}: {2**k} GPUs", t) for what, times in (("product", d["products_us"]), ("CG iteration", d["iterations_us"])) for k, t in enumerate(times) if k and t > 0]
    ax.barh([r[0] for r in rows], [r[1] for r in rows], color=["tab:blue" if r[0].startswith("product") else "tab:orange" for r in rows])
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set(title="by place", xlabel="microseconds, predicted, logarithmic axis")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    d = read(sys.argv[1])
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        fail("python3 has no Matplotlib: install python3-matplotlib, or pip install matplotlib; -data FILE keeps the data of the drawing")
    figure, axes = plt.subplots(2, 2, figsize=(14, 10))
    for draw, ax in zip((picture, lengths, formats, places), axes.flat):
        draw(ax, d)
    figure.suptitle(d["take"], wrap=True)
    figure.tight_layout()
    try:
        figure.savefig(sys.argv[2], dpi=90)
    except (OSError, ValueError) as e:
        fail(f"{sys.argv[2]}: {e}")


main()
