#!/usr/bin/env python3
"""
Sets of pairs and decision trees, as in chapter 4 of A. H. El Zein's thesis: docs/results/sets.md and its plots.

    sets.py [-o FOLDER] [-pool 34] [-most 7] [SAMPLES[.xz]]

Products in double. Pool: the pairs that are the best of at least two products, the most often first. What a set loses on a product: rate of the best pair of all
minus that of the best in the set, in GFLOP/s (the thesis), and time over the best time - 1. A pair that was not timed on a product, as it cannot hold the matrix
or was predicted to be far behind, has neither there: by both criteria, sets are preferred that have a timed pair of every product. Sets leave out the products
on which the pair of the least lost rate was not timed, so that this pair stands for a set of one. Trees take csr_merge, which takes every matrix, where
their leaf's pair was not timed.
"""
import argparse, itertools
from collections import Counter
import numpy as np
import clock
import samples as S

NONE = 1e6  # the loss where no pair was timed
FALLBACK = "csr csr_merge"
FEATURES = ("rows", "columns", "nnz", "mean", "max", "deviation", "density", "spread", "sectors", "quads", "twins", "sell", "uneven", "vary")


class Products:
    """Time of each pair on each product in double, rates, and the features"""

    def __init__(self, s):
        self.s = s
        double = ~s.single
        kept = np.unique(s.product[double])
        place = {p: k for k, p in enumerate(kept)}
        self.product = kept
        self.n = len(kept)
        self.time = np.full((len(s.pairs), self.n), np.inf)
        first = np.zeros(self.n, int)
        for k in np.where(double)[0]:
            if s.words[k][3] == "dense" and s.density[k] < 1:
                continue
            self.time[s.pair[k], place[s.product[k]]] = s.us[k]
            first[place[s.product[k]]] = k
        self.matrix = clock.groups(s.matrix_of[first])
        self.best = self.time.min(0)
        self.ratio = self.time / self.best
        self.flops = 2e-3 * s.nnz[first]  # GFLOP/s are these over microseconds
        self.lost = self.flops / self.best - self.flops / self.time
        f = {name: getattr(s, name)[first] for name in ("rows", "columns", "nnz", "max", "deviation", "density", "spread")}
        f["mean"] = s.nnz[first] / np.maximum(1, f["rows"])
        for name in ("sectors", "quads", "sell"):
            f[name] = getattr(s, name)[first] / np.maximum(1, f["nnz"])
        f["twins"] = s.twins[first] / f["rows"]
        f["uneven"], f["vary"] = f["max"] / np.maximum(1e-9, f["mean"]), f["deviation"] / np.maximum(1e-9, f["mean"])
        self.features = np.array([f[name] for name in FEATURES])
        self.mean, self.columns, self.rows = f["mean"], f["columns"], f["rows"]
        self.winner = self.time.argmin(0)


def describe(v):
    none = int((v >= NONE).sum())
    if none:
        return "none of %d | | |" % none
    return "%.3g | %.3g | %.3g | %.3g" % (v.mean(), v.std(), np.median(v), v.max())


def exhaustive(loss, k):
    """The sets of k rows of loss with the least mean, and with the least maximum, of the least in each column: each with that value"""
    n = len(loss)
    head = max(0, k - 3)
    tails = list(itertools.combinations(range(n), k - head))
    table = np.array([loss[list(t)].min(0) for t in tails], np.float32)
    begin = np.array([t[0] for t in tails])
    best = [(np.inf, None), (np.inf, None)]
    for h in itertools.combinations(range(n), head):
        at = np.searchsorted(begin, h[-1] + 1) if head else 0
        if at == len(tails):
            continue
        least = np.minimum(table[at:], loss[list(h)].min(0).astype(np.float32)) if head else table
        for q, v in enumerate((least.mean(1), least.max(1))):
            j = int(np.argmin(v))
            if v[j] < best[q][0]:
                best[q] = (float(v[j]), h + tails[at + j])
    return [b[1] for b in best]


def greedy(loss, k):
    """One row after the other, that with which the mean is least"""
    taken, now = [], np.full(loss.shape[1], 1e9)
    for _ in range(k):
        v = np.minimum(now, loss).mean(1)
        taken.append(int(np.argmin(v)))
        now = np.minimum(now, loss[taken[-1]])
    return taken


def leaf(loss, which):
    return int(np.argmin(loss[:, which].sum(1)))


def split(loss, which, x):
    """The threshold of x that parts the products `which` so that one pair each side loses least: (loss, threshold, pairs)"""
    order = which[np.argsort(x[which], kind="stable")]
    c = np.cumsum(loss[:, order], 1)
    left, right = c, c[:, -1:] - c
    cost = left.min(0)[:-1] + right.min(0)[:-1]
    cost = np.where(np.diff(x[order]) > 0, cost, np.inf)
    whole = c[:, -1].min()
    if not len(cost) or not np.isfinite(cost.min()) or cost.min() >= whole:
        k = int(np.argmin(c[:, -1]))
        return whole, np.inf, (k, k)
    j = int(np.argmin(cost))
    return cost[j], (x[order[j]] + x[order[j + 1]]) / 2, (int(np.argmin(left[:, j])), int(np.argmin(right[:, j])))


def four(p, loss, which, means):
    """The thesis' form: mean length, then columns on either side, every threshold tried"""
    best = None
    for t in means:
        low, high = which[p.mean[which] < t], which[p.mean[which] >= t]
        if not len(low) or not len(high):
            continue
        a, b = split(loss, low, p.columns), split(loss, high, p.columns)
        if best is None or a[0] + b[0] < best[0]:
            best = (a[0] + b[0], t, a[1:], b[1:])
    return best[1:]


def four_takes(tree, p, j):
    t, low, high = tree
    columns, pairs = low if p.mean[j] < t else high
    return pairs[0] if p.columns[j] < columns else pairs[1]


def grow(p, loss, which, leaves):
    """Best first: the leaf whose split by any feature saves most is split next"""

    def best(w):
        whole = loss[:, w].sum(1).min()
        options = [(split(loss, w, x), f) for f, x in enumerate(p.features)]
        (cost, t, pairs), f = min(options, key=lambda o: o[0][0])
        return whole - cost, f, t, pairs

    root = {"which": which, "pair": leaf(loss, which)}
    front = [(root, best(which))]
    for _ in range(leaves - 1):
        k = max(range(len(front)), key=lambda q: front[q][1][0])
        node, (gain, f, t, pairs) = front[k]
        if gain <= 1e-9 or not np.isfinite(t):
            break
        front.pop(k)
        below = p.features[f][node["which"]] < t
        node.update(feature=f, at=t, children=[])
        for side, pair in zip((below, ~below), pairs):
            child = {"which": node["which"][side], "pair": pair}
            node["children"].append(child)
            front.append((child, best(child["which"]) if side.sum() >= 6 else (0, 0, np.inf, None)))
    return root


def grow_takes(node, p, j):
    while "children" in node:
        node = node["children"][0 if p.features[node["feature"]][j] < node["at"] else 1]
    return node["pair"]


MEANS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, np.inf)
COLUMNS = (1e3, 1e4, 1e5, 1e6, np.inf)


def table(p, loss, which):
    """The table of -mat_gpucsr_select tree, as fit.c makes it, of the pairs of `loss`"""
    cell = np.searchsorted(MEANS, p.mean) * len(COLUMNS) + np.searchsorted(COLUMNS, p.columns)
    return cell, {c: leaf(np.log1p(loss), which[cell[which] == c]) for c in np.unique(cell[which])}


def judge(p, loss, make, takes, every):
    """Of a tree made of all products, and of those made without the matrix: the pair (of the rows of loss) taken of each product"""
    whole = make(every)
    inside = np.array([takes(whole, p, j) for j in every])
    outside = inside.copy()
    for m in np.unique(p.matrix):
        tree = make(every[p.matrix != m])
        for j in np.where(p.matrix == m)[0]:
            outside[j] = takes(tree, p, j)
    return whole, inside, outside


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("-pool", type=int, default=34)
    a.add_argument("-most", type=int, default=7)
    a.add_argument("samples", nargs="?", default=S.KEPT)
    a = a.parse_args()
    s = S.load(a.samples)
    p = Products(s)
    page = lambda mark, lines: S.replace(a.o + "/sets.md", mark, lines)
    wins = Counter(p.winner)
    twice = [k for k, n in wins.most_common() if n >= 2]
    pool = np.array(twice[: a.pool])
    short = lambda k: s.pairs[pool[k]].replace("csr csr_", "csr_")
    ratio, lost = p.ratio[pool] - 1, p.lost[pool]  # an infinite time is a rate of 0
    complete = np.isfinite(ratio).all(1)
    page("POOL", ["%d products of %d matrices. %d pairs are the best for some product, %d for at least two; the pool is the first %d of those. %d of them were timed on every product; %.0f %% of the pool's pairs and products were timed." % (p.n, p.matrix.max() + 1, len(wins), len(twice), len(pool), complete.sum(), 100 * np.isfinite(ratio).mean())])

    single = int(np.argmin(lost.mean(1)))
    timed = np.isfinite(ratio[single])
    missing = [" ".join(s.products[p.product[k]]) for k in np.where(~timed)[0]]
    big, less = (np.where(np.isfinite(ratio), v, NONE)[:, timed] for v in (ratio, lost))
    page("LEFT", ["Sets are judged by %d products: `%s` was not timed on %s." % (timed.sum(), short(single), ", ".join(missing) or "none of fewer")])
    out = ["| k | criterion | set | time: mean | sd | median | max | GFLOP/s: mean | sd | median | max |", "| --: | :-- | :-- " + "| --: " * 8 + "|"]
    line = lambda k, how, t: out.append("| %d | %s | %s | %s | %s |" % (k, how, ", ".join(short(q) for q in t), describe(big[list(t)].min(0)), describe(less[list(t)].min(0))))
    for k in range(1, a.most + 1):
        for name, v in (("time", big), ("GFLOP/s", less)):
            first, second = exhaustive(v, k)
            line(k, name + ", mean", first)
            line(k, name + ", worst", second)
        line(k, "time, greedy", greedy(big, k))
    page("SETS", out)

    merge = p.ratio[s.pairs.index(FALLBACK)] - 1
    safe = np.where(np.isfinite(ratio), ratio, merge)  # what a leaf costs where its pair was not timed
    rate = np.where(np.isfinite(ratio), lost, p.lost[s.pairs.index(FALLBACK)])
    every = np.arange(p.n)
    means = np.unique(np.quantile(p.mean, np.linspace(0, 1, 60)))
    out = ["| | leaves | in sample, time: mean | sd | median | max | GFLOP/s: mean | sd | median | max | matrix left out, time: mean | sd | median | max |", "| :-- | --: " + "| --: " * 12 + "|"]
    cell, _ = table(p, safe, every)
    trees = (
        ("the thesis' form", lambda w: four(p, safe, w, means), four_takes, lambda t: 4),
        ("table of mean length and columns", lambda w: table(p, safe, w)[1], lambda t, q, j: t.get(cell[j], leaf(safe, every)), len),
        ("cost-sensitive tree, 6 leaves", lambda w: grow(p, safe, w, 6), grow_takes, lambda t: 6),
        ("cost-sensitive tree, 12 leaves", lambda w: grow(p, safe, w, 12), grow_takes, lambda t: 12),
    )
    told = []
    for name, make, takes, leaves in trees:
        tree, inside, outside = judge(p, safe, make, takes, every)
        out.append("| %s | %d | %s | %s | %s |" % (name, leaves(tree), describe(safe[inside, every]), describe(rate[inside, every]), describe(safe[outside, every])))
        told.append(tree)
    ideal = exhaustive(big, 4)
    for name, t in (("ideal choice in the best four by mean", ideal[0]), ("ideal choice in the best four by worst", ideal[1])):
        out.append("| %s | 4 | %s | %s | | | | |" % (name, describe(big[list(t)].min(0)), describe(less[list(t)].min(0))))
    out += estimate(s, p)
    page("TREES", out)
    t, low, high = told[0]
    say = lambda side: "columns below %.0f %s, else %s" % (side[0], short(side[1][0]), short(side[1][1])) if np.isfinite(side[0]) else short(side[1][0])
    lines = ["```", "mean below %.3g: %s" % (t, say(low)), "else: " + say(high), "", *show(told[2], short), "```"]
    page("LEAVES", lines)
    plot(a.o, s, p)


def show(node, short, indent=""):
    if "children" not in node:
        return [indent + "%s (%d products)" % (short(node["pair"]), len(node["which"]))]
    out = [indent + "%s below %.3g:" % (FEATURES[node["feature"]], node["at"])] + show(node["children"][0], short, indent + "  ")
    return out + [indent + "else:"] + show(node["children"][1], short, indent + "  ")


def estimate(s, p):
    """-mat_gpucsr_select estimate, and measure: the best of the first six within 1.6 of the first; by the profile, and by models that do not know the matrix"""
    known = {k: v for k, v in S.profile().items() if k in s.pairs}
    trusted = np.array([known.get(k, (False,))[0] for k in s.pairs])
    inside = S.predicted(s, known)
    outside = clock.without(s, known, clock.groups(s.matrix_of), clock.POWER, False)
    cells = {}
    for q, predicted in enumerate((inside, outside)):
        took, tried = np.zeros(p.n), np.zeros(p.n)
        for j, product in enumerate(p.product):
            w = np.where((s.product == product) & ~np.isnan(predicted) & np.isfinite(p.time[s.pair, j]))[0]
            w = w[np.argsort(predicted[w])]
            first = w[trusted[s.pair[w]]][0]
            took[j] = s.us[first]
            tried[j] = min(s.us[first], s.us[[k for n, k in enumerate(w[:6]) if n < 2 or predicted[k] <= 1.6 * predicted[first]]].min())
        for name, t in (("estimate", took), ("measure", tried)):
            cells[name, q] = describe(t / p.best - 1), describe(p.flops / p.best - p.flops / t)
    return ["| `%s` | | %s | %s | %s |" % (name, *cells[name, 0], cells[name, 1][0]) for name in ("estimate", "measure")]


def plot(folder, s, p):
    plt = S.pyplot()
    if not plt:
        return
    kind = lambda k: "a thread a row (csr_scalar, sell, ell, jad)" if s.pairs[k].split()[1].startswith(("csr_scalar", "sell", "jad")) else "threads share a row (csr_vector, csr_block)" if s.pairs[k].startswith(("csr csr_vector", "csr csr_block")) else "tiles (csr_adaptive, csr_merge, coo, hyb)" if s.pairs[k].startswith(("csr", "coo", "hyb")) else "blocks (bcsr, dense)" if s.pairs[k].startswith(("b", "dense")) else "diagonals, stencils"
    kinds = [kind(k) for k in p.winner]
    f, axes = plt.subplots(1, 3, figsize=(15, 4.5), sharey=True)
    for ax, x, name in zip(axes, (p.columns, p.rows, None), ("columns", "rows", "best rate, GFLOP/s")):
        for q, k in enumerate(sorted(set(kinds))):
            w = np.array([v == k for v in kinds])
            ax.plot((x if x is not None else p.flops / p.best)[w], p.mean[w], "os^vD"[q], label=k, markersize=4, alpha=0.7)
        ax.set(xscale="log", yscale="log", xlabel=name)
    axes[0].set_ylabel("mean length of a row")
    axes[2].legend(fontsize=7)
    f.tight_layout()
    f.savefig(folder + "/sets.png", dpi=80)


if __name__ == "__main__":
    main()
