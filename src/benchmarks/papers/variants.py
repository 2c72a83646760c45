#!/usr/bin/env python3
"""
Do memory spaces still matter? docs/results/variants.md and its plot, from what src/benchmarks/variants/variants.c leaves (the kernels of A. H. El Zein's thesis, ANU 2009, section 4.4).

    variants.py [-o FOLDER] [RECORDS.jsonl[.xz]]
    variants.py sweep                            the tables of docs/results/sweep.jsonl.xz, which variants -sweep leaves
"""
import argparse
import numpy as np
import records as R
import samples as S

SPACES = {"plain": "plain loads", "ldg": "read-only (`__ldg`)", "cs": "streaming (`__ldcs`)", "tex": "texture", "const": "constant memory", "shared": "shared memory"}
THREADS = 132 * 2048
PARTS = (("load", "values and columns"), ("ptr", "row pointers"), ("x", "x"), ("width", "entries a load"), ("threads", "threads a row"))


def split(name):
    """Of a variant's name, its options; None of a kernel of the library's"""
    w = name.split("-")
    if len(w) < 5:
        return None
    rows = w[5] if len(w) > 5 else "1"
    return {"threads": w[0][1:].replace("b", "128"), "width": w[1][1:], "load": w[2], "ptr": w[3], "x": w[4], "rows": rows}


class Pool:
    """Microseconds by product and variant, not a number where there was none; ours: the library's CSR kernels"""

    def __init__(self, rows):
        self.rows = rows
        names = sorted({n for r in rows for n in r["us"] if split(n)})
        self.names, self.of = names, [split(n) for n in names]
        at = {n: k for k, n in enumerate(names)}
        self.us = np.full((len(rows), len(names)), np.nan)
        for q, r in enumerate(rows):
            for n, us in r["us"].items():
                if n in at:
                    self.us[q, at[n]] = us
        self.single = np.array([len(o["rows"]) == 1 for o in self.of])  # a row a unit
        self.best = np.nanmin(self.us, 1)
        self.ours = np.array([min(us for n, us in r["us"].items() if not split(n)) for r in rows])
        self.chosen = np.array([r["chosen_us"] for r in rows])

    def least(self, allowed):
        """The least time of the variants allowed, of each product; infinite where there is none"""
        return np.nanmin(np.where(np.isnan(self.us), np.inf, self.us)[:, allowed], 1)


def loss(t, best):
    """Mean and most of what is lost, and the number of products that it is about"""
    q = np.isfinite(t)
    e = t[q] / best[q] - 1
    return q.sum(), e.mean() if len(e) else np.nan, e.max() if len(e) else np.nan


def percent(e):
    return "%.1f %%" % (100 * e)


def spaces(p):
    out, winner = [], np.nanargmin(np.where(p.single, np.where(np.isnan(p.us), np.inf, p.us), np.inf), 1)
    best = p.least(p.single)
    for key, name in PARTS:
        words = [o[key] for o in p.of]
        for word in sorted(set(words), key=lambda w: (w.isdigit(), int(w) if w.isdigit() else list(SPACES).index(w))):
            has = np.array([w == word for w in words])
            n, mean, most = loss(p.least(p.single & has), best)
            _, without, worst = loss(p.least(p.single & ~has), best)
            out.append((name, SPACES.get(word, word), n, sum(has[winner]), percent(mean), percent(most), percent(without), percent(worst)))
            name = ""
    return R.table(("<", "<", "products", "the best of", "it alone loses: mean", "worst", "all without it lose: mean", "worst"), out)


def ladder(p):
    """What each freedom brings: all by plain loads, then one after another"""
    out, best = [], p.least(p.single)
    free = {"load": {"plain"}, "ptr": {"plain"}, "x": {"plain"}}
    steps = ((None, None, "plain loads alone"), ("x", {"plain", "ldg"}, "x also read-only"), ("load", {"plain", "ldg"}, "values and columns too"), ("ptr", {"plain", "ldg"}, "row pointers too"), ("load", {"plain", "ldg", "cs"}, "values and columns also streaming"), ("ptr", {"plain", "ldg", "shared"}, "row pointers also in shared memory"), ("x", {"plain", "ldg", "tex"}, "x also by texture"), ("x", {"plain", "ldg", "tex", "const"}, "x also in constant memory"), ("x", {"plain", "ldg", "tex", "const", "shared"}, "x also in shared memory"))
    for key, allowed, name in steps:
        if key:
            free[key] = allowed
        n, mean, most = loss(p.least(p.single & np.array([all(o[k] in v for k, v in free.items()) for o in p.of])), best)
        out.append((name, percent(mean), percent(most)))
    return R.table(("<", "loss against all of them: mean", "worst"), out)


def several(p):
    """Rows a unit, cyclic and neighbours, over one row a unit: all by read-only loads, of matrices that still fill the GPU's threads"""
    out, rows_ = [], np.array([r["rows"] for r in p.rows])
    at = {n: k for k, n in enumerate(p.names)}
    for threads in ("1", "4", "16", "b"):
        for rows in ("2", "5", "10", "20"):
            cells = []
            for how in "cb":
                ratio = []
                for w in ("1", "2", "4"):
                    one, many = at.get("t%s-w%s-ldg-ldg-ldg" % (threads, w)), at.get("t%s-w%s-ldg-ldg-ldg-%s%s" % (threads, w, how, rows))
                    if one is not None and many is not None:
                        full = rows_ * int(threads.replace("b", "128")) >= int(rows) * THREADS
                        ratio += [x for x in (p.us[:, one] / p.us[:, many])[full] if np.isfinite(x)]
                cells += ["%.2f" % np.exp(np.log(ratio).mean()), "%.2f" % max(ratio)] if ratio else ["none", ""]
            out.append([threads.replace("b", "128"), rows] + cells)
    return R.table(("threads a row", "rows a unit", "cyclic: gain, geometric mean", "largest", "neighbours: gain", "largest"), out)


def ours(p, precision):
    gain = p.ours / p.best
    out = ["%s: %d products. The best variant takes %.2f of the time of the library's best CSR kernel in the median, %.2f of that of the pair that the library chooses among all formats (%.0f at most, where a few rows hold most entries and a variant has no other threads for them); it is more than 3 %% faster than the former on %d, than the latter on %d." % (precision, len(gain), np.median(1 / gain), np.median(p.best / p.chosen), (p.best / p.chosen).max(), (gain > 1.03).sum(), (p.chosen / p.best > 1.03).sum()), ""]
    order = np.argsort(-gain)[:10]
    rows = []
    for q in order:
        r = p.rows[q]
        kernels = {n: us for n, us in r["us"].items() if not split(n)}
        rows.append((r["matrix"], r["rows"], r["columns"], r["nnz"], "`%s`" % p.names[np.nanargmin(p.us[q])], R.figures(p.best[q]), "`%s`" % min(kernels, key=kernels.get), R.figures(p.ours[q]), "%.2f" % gain[q], "`%s`" % r["chosen"], R.figures(p.chosen[q])))
    return out + R.table(("<matrix", "rows", "columns", "entries", "<best variant", "us", "<best of ours in CSR", "us", "gain", "<chosen", "us"), rows)


def sets(p):
    """Greedy: the thesis' criterion, the mean of what is lost, in time and in GFLOP/s"""
    t = np.where(np.isnan(p.us), np.inf, p.us)
    flops = 2e-3 * np.array([r["nnz"] for r in p.rows])
    have, least, out = [], np.full(len(p.rows), np.inf), []
    for k in range(1, 8):
        with np.errstate(invalid="ignore"):
            mean = np.array([(np.minimum(least, t[:, c]) / p.best - 1).mean() for c in range(t.shape[1])])
        c = int(np.nanargmin(mean))
        have.append(p.names[c])
        least = np.minimum(least, t[:, c])
        e, d = least / p.best - 1, flops / p.best - flops / least
        out.append((k, "`%s`" % p.names[c], percent(e.mean()), percent(np.median(e)), percent(e.max()), R.figures(d.mean()), R.figures(d.std()), R.figures(np.median(d)), R.figures(d.max())))
    return R.table(("k", "<the one that is added", "time lost: mean", "median", "worst", "GFLOP/s lost: mean", "sd", "median", "worst"), out)


def sweep(rows):
    """The thesis' sweep: best time of a thread a row over that of several; and what constant memory for x brings"""
    p = Pool(rows)
    one = np.array([o["threads"] == "1" for o in p.of]) & p.single
    const = np.array([o["x"] == "const" for o in p.of])
    ratio = p.least(one) / p.least(p.single & ~one)
    gain = p.least(p.single & ~const) / p.least(p.single & const)
    at = {tuple(r["matrix"].split("_")[1:]): q for q, r in enumerate(p.rows)}
    columns, shares = sorted({int(c) for c, _ in at}), sorted({s for _, s in at}, key=float)
    cell = lambda v, c, s: "%.2f" % v[at[str(c), s]] if (str(c), s) in at and 0 < v[at[str(c), s]] < np.inf else ""
    heads = ["columns"] + ["%g %%" % (100 * float(s)) for s in shares]
    out = ["A thread a row over several threads a row"] + R.table(heads, [[c] + [cell(ratio, c, s) for s in shares] for c in columns])
    return out + ["", "x outside constant memory over x in it"] + R.table(heads, [[c] + [cell(gain, c, s) for s in shares] for c in columns])


def plot(pools, name):
    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for ax, (precision, p) in zip(axes, pools.items()):
        columns = [r["columns"] for r in p.rows]
        base = p.least(p.single & np.array([o["x"] == "ldg" for o in p.of]))
        for word in ("plain", "tex", "const", "shared"):
            t = p.least(p.single & np.array([o["x"] == word for o in p.of]))
            ax.plot(columns, np.where(np.isfinite(t), base / t, np.nan), "o", markersize=3, label="x " + SPACES[word])
        ax.axhline(1, color="k", linewidth=0.5)
        ax.set(xscale="log", xlabel="columns, " + precision, ylabel="gain over x read-only")
        ax.legend(fontsize=8)
    f.tight_layout()
    f.savefig(name, dpi=80)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("records", nargs="?", default="variants")
    a = a.parse_args()
    rows = R.load(a.records, "variants")
    if rows[0]["matrix"].startswith("sweep_"):
        print("\n".join(sweep([r for r in rows if r["precision"] == "double"])))
        return
    pools = {w: Pool([r for r in rows if r["precision"] == w]) for w in ("double", "single") if any(r["precision"] == w for r in rows)}
    page, all_ = a.o + "/variants.md", Pool(rows)
    timed = np.isfinite(all_.us)
    text = ["%d matrices, %d kernels; %d kernels are the best for some product. %d products were timed (all %d kernels if constant and shared memory suffice)." % (len({r["matrix"] for r in rows}), len(all_.names), len(set(np.nanargmin(all_.us, 1))), timed.sum(), timed.sum(1).max())]
    S.replace(page, "POOL", text)
    S.replace(page, "LADDER", sum((["**%s**" % w, ""] + ladder(p) + [""] for w, p in pools.items()), []))
    S.replace(page, "SPACES", sum((["**%s**" % w, ""] + spaces(p) + [""] for w, p in pools.items()), []))
    S.replace(page, "ROWS", several(all_))
    S.replace(page, "OURS", sum((ours(p, w.capitalize()) + [""] for w, p in pools.items()), []))
    S.replace(page, "SETS", sets(pools["double"]))
    plot(pools, a.o + "/variants.png")


if __name__ == "__main__":
    main()
