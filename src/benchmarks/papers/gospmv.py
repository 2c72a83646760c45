#!/usr/bin/env python3
"""
The rule of X. Zhang et al. (GOSpMV) for the size of blocks, beside the profile's: docs/results/gospmv.md and its plot.

    gospmv.py [-o FOLDER] [-dense RECORDS.jsonl[.xz]] [-fill RECORDS.jsonl[.xz]] [SAMPLES[.xz]]

Their rule: a size's rate on a dense matrix, of about as many entries as would be stored, over the fill ratio (stored over entries); the largest is taken. -dense: what `dense -parts blocks` leaves;
without such records the one dense matrix of the samples. -fill: what fill.c leaves.
"""
import argparse
import numpy as np
import clock
import records as R
import samples as S


def dense_rates(name, s):
    """Of each format and precision: [(entries, GFLOP/s)]"""
    out = {}
    for r in R.load(name, "dense"):
        if r["part"] == "blocks":
            out.setdefault((r["how"], r["precision"] == "single"), []).append((r["rows"] * r["columns"], 2e-3 * r["rows"] * r["columns"] / r["us"]))
    if out:
        return out, True
    for k in np.where(np.array([w[0] == "full" and w[1] == "N" for w in s.words]))[0]:
        key = s.words[k][3], bool(s.single[k])
        rate = 2e-3 * s.nnz[k] / s.us[k]
        if rate > out.get(key, [(0, 0)])[0][1]:
            out[key] = [(s.nnz[k], rate)]
    return out, False


def products(s, format_):
    """Of each product: the fastest sample of that format, -1 where there is none"""
    at = np.full(len(s.products), -1)
    for k in np.where(format_)[0]:
        p = s.product[k]
        if at[p] < 0 or s.us[k] < s.us[at[p]]:
            at[p] = k
    return at


def rule(s, rates, sizes):
    """Table of G's choice, ours, and the best, on products whose best pair of all is a block's"""
    names = np.array([w[3] for w in s.words])
    at = {f: products(s, names == f) for f in sizes}
    best_all = products(s, (names != "dense") | (s.density >= 1))
    known = {k: v for k, v in S.profile().items() if v[0] and k in s.pairs}
    told = S.predicted(s, known)
    out, counts = {}, []
    for p in range(len(s.products)):
        k = best_all[p]
        if not names[k].startswith("bcsr") or s.transpose[k]:
            continue
        mine = [f for f in sizes if at[f][p] >= 0]
        us = {f: s.us[at[f][p]] for f in mine}
        guess = {}
        for f in mine:
            q = at[f][p]
            stored = s.stored[q] if f != "csr" else s.nnz[q]
            if (f, bool(s.single[q])) in rates:
                curve = rates[f, bool(s.single[q])]
                guess[f] = min(curve, key=lambda c: abs(np.log(c[0] / stored)))[1] * s.nnz[q] / stored
        if len(guess) < 2:
            continue
        least = min(us.values())
        pairs = [q for q in np.where(s.product == p)[0] if names[q] in mine and np.isfinite(told[q])]
        ours = names[min(pairs, key=lambda q: told[q])] if pairs else None
        took = max(guess, key=guess.get)
        kept = at[took][p]
        gain = us["csr"] - us[took] if "csr" in us else 0
        counts.append((s.products[p], us, took, ours, min(us, key=us.get), us[took] / least - 1, s.us[min(pairs, key=lambda q: told[q])] / least - 1 if pairs else np.nan, s.convert[kept] / us[took], s.convert[kept] / gain if gain > 0 else np.inf))
    return counts


def rule_tables(counts):
    out = []
    for single in ("double", "single"):
        c = [x for x in counts if x[0][2] == single]
        g, o = np.array([x[5] for x in c]), np.array([x[6] for x in c])
        pays = np.array([x[8] for x in c])
        gain = np.array([x[1]["csr"] / x[1][x[2]] for x in c if "csr" in x[1]])
        out.append((single, len(c), sum(x[2] == x[4] for x in c), "%.3f" % g.mean(), "%.2f" % g.max(), sum(x[3] == x[4] for x in c), "%.3f" % np.nanmean(o), "%.2f" % np.nanmax(o), "%.2f" % np.exp(np.log(gain).mean()), "%.0f" % np.median([x[7] for x in c]), "%.0f" % np.median(pays[np.isfinite(pays)]), np.isinf(pays).sum()))
    lines = R.table(("<precision", "products", "their rule takes the best", "its loss: mean", "worst", "ours takes the best", "its loss: mean", "worst", "CSR's time over their block's", "set-up, products: median", "pays after: median", "never"), out)
    worst = sorted(counts, key=lambda x: -x[5])[:8]
    lines += ["", "The largest losses of their rule:", ""]
    return lines + R.table(("<product", "<it takes", "us", "<the best", "us", "<ours", "us"), [("%s %s" % (x[0][0], x[0][2]), "`%s`" % x[2], R.figures(x[1][x[2]]), "`%s`" % x[4], R.figures(x[1][x[4]]), "`%s`" % x[3], R.figures(x[1].get(x[3], np.nan))) for x in worst])


def curves(rates):
    out = []
    sizes = sorted({e for v in rates.values() for e, _ in v})
    for (f, single), v in sorted(rates.items(), key=lambda t: (t[0][1], t[0][0])):
        if f == "csr" or f.startswith("bcsr"):
            d = dict(v)
            out.append(["`%s`" % f, "single" if single else "double"] + ["%.0f" % d[e] if e in d else "" for e in sizes])
    return R.table(["<format", "<precision"] + ["%d entries, GFLOP/s" % e for e in sizes], out)


def fills(rows):
    out = []
    for fraction in sorted({r["fraction"] for r in rows}):
        e = np.array([abs(r["fill"] / r["exact"] - 1) for r in rows if r["fraction"] == fraction])
        out.append(["%g" % fraction] + ["%.1f %%" % (100 * v) for v in (e.mean(), np.median(e), np.quantile(e, 0.9), e.max())])
    return R.table(("fraction of the rows", "error of the fill ratio: mean", "median", "90 %", "worst"), out)


ORDERS = {"natural": "as it comes", "rcm": "reverse Cuthill-McKee", "nd": "nested dissection", "1wd": "one-way dissection", "qmd": "quotient minimum degree", "rowlength": "by length of row", "random": "random"}


def orders(rows):
    """Fill of each order over that of the natural one, geometric means"""
    natural = {(r["matrix"], r["size"]): r["fill"] for r in rows if r["order"] == "natural"}
    sizes, out = ("2x2", "3x3", "4x4", "8x8"), []
    for o, name in ORDERS.items():
        q = [r for r in rows if r["order"] == o]
        cells = []
        for size in sizes:
            v = np.array([r["fill"] for r in q if r["size"] == size])
            over = np.array([r["fill"] / natural[r["matrix"], size] for r in q if r["size"] == size])
            cells += ["%.2f" % np.exp(np.log(v).mean()), "%.2f" % np.exp(np.log(over).mean()), (over < 0.97).sum()] if len(v) else ["", "", ""]
        out.append([name, len({r["matrix"] for r in q})] + cells)
    return R.table(["<order", "matrices"] + sum([[s.replace("x", "×") + ": fill", "over natural", "better for"] for s in sizes], []), out)


def plot(rates, rows, name):
    plt = S.pyplot()
    if not plt:
        return
    f, axes = plt.subplots(1, 2, figsize=(12, 4.5))
    for (fmt, single), v in sorted(rates.items()):
        if not single and fmt in ("csr", "bcsr2x2", "bcsr3x3", "bcsr4x4", "bcsr8x8", "bcsr1x4", "bcsr4x1"):
            v = sorted(v)
            axes[0].plot([e for e, _ in v], [g for _, g in v], "-o", markersize=4, label=fmt)
    axes[0].set(xscale="log", yscale="log", xlabel="entries of a dense matrix", ylabel="GFLOP/s, double")
    axes[0].legend(fontsize=8)
    for k, size in enumerate(("2x2", "4x4", "8x8")):
        q = [r for r in rows if r["size"] == size]
        axes[1].plot([r["fraction"] * (1 + 0.06 * k) for r in q], [r["fill"] / r["exact"] for r in q], ".", markersize=4, label=size)
    axes[1].set(xscale="log", xlabel="fraction of the rows", ylabel="fill ratio, estimated / exact")
    axes[1].legend(fontsize=8)
    f.tight_layout()
    f.savefig(name, dpi=80)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("-dense", default="dense")
    a.add_argument("-fill", default="fill")
    a.add_argument("samples", nargs="?", default=S.KEPT)
    a = a.parse_args()
    s = S.load(a.samples)
    rates, measured = dense_rates(a.dense, s)
    sizes = ["csr"] + sorted({w[3] for w in s.words if w[3].startswith("bcsr")})
    page, fill = a.o + "/gospmv.md", R.load(a.fill, "fill")
    S.replace(page, "DENSE", curves(rates))
    S.replace(page, "RULE", rule_tables(rule(s, rates, sizes)))
    S.replace(page, "FILL", ["%d matrices, blocks of 1×2 to 8×8." % len({r["matrix"] for r in fill}), ""] + fills(fill))
    S.replace(page, "ORDERS", orders(R.load(a.fill, "order")))
    plot(rates, fill, a.o + "/gospmv.png")


if __name__ == "__main__":
    main()
