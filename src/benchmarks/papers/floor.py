#!/usr/bin/env python3
"""
What stops a model of times: the part "Limits" of docs/results/clock.md.

    floor.py [-o FOLDER] [SAMPLES[.xz] ...]

By repeated measurement: the same products by three processes on two GPUs. By what the features tell: the richest fit in sample, and two regressions, of the nearest neighbours
and by trees, on all features that the inspector has, the matrix left out (scikit-learn; without it their lines stay away).
"""
import argparse, lzma, os
import numpy as np
import clock
import samples as S

REPEATS = os.path.join(S.RESULTS, "repeats.txt.xz")  # process GPU matrix side precision format kernel us
FOLDS = 10
NEAR = 1.6  # times the best: what a regression is trained on, and chooses among


def repeats():
    took, where = {}, {}
    with lzma.open(REPEATS, "rt") as f:
        for process, gpu, *key, us in (line.split() for line in f):
            took.setdefault(process, {})[tuple(key)] = float(us)
            where[process] = gpu
    best = {}
    for key, us in took["1"].items():
        best[key[:3]] = min(us, best.get(key[:3], np.inf))
    out = ["| processes | products and pairs | mean | 90 % | worst |", "| :-- | --: | --: | --: | --: |"]
    for a in took:
        for b in took:
            if a < b:
                e = np.array([abs(took[b][k] / us - 1) for k, us in took[a].items() if k in took[b] and took["1"].get(k, np.inf) < 1.3 * best[k[:3]]])
                out.append("| %s and %s, %s | %d | %.1f %% | %.1f %% | %.0f %% |" % (a, b, "one GPU" if where[a] == where[b] else "two GPUs", len(e), 100 * e.mean(), 100 * np.quantile(e, 0.9), 100 * e.max()))
    return out


def features(s, which, told):
    """One line a sample: what the inspector knows, logarithms of what grows, and what the model says"""
    g = lambda a: a[which]
    log = lambda a: np.log2(np.maximum(1e-9, a))
    nnz, mean = g(s.nnz), g(s.nnz) / np.maximum(1, g(s.rows))
    grows = [g(s.matrix), g(s.vectors), g(s.number) * g(s.columns), g(s.rows), mean, g(s.max), g(s.max) / mean, g(s.deviation) + 0.1, g(s.spread) / g(s.columns), g(s.stored) / nnz, g(s.heaviest) / mean, g(s.rows) / g(s.columns), g(s.moved) + 1, told[which]]
    shares = [g(s.sectors) / nnz, g(s.groups) / nnz, g(s.tiles) / nnz, g(s.quads) / nnz, g(s.number), g(s.pair)]
    return np.column_stack([log(a) for a in grows] + shares)


def regression(s, told, usable, group, make, apart):
    """told times what a regression of measured / told says, group left out; apart: one for each pair"""
    which = np.where(usable & ~np.isnan(told) & (s.us < NEAR * s.best))[0]
    X, y, w = features(s, which, told), np.log(s.us[which] / told[which]), (s.best[which] / s.us[which]) ** 2
    out, fold = np.full(s.n, np.nan), group[which] % FOLDS
    for pair in np.unique(s.pair[which]) if apart else [None]:
        mine = np.ones(len(which), bool) if pair is None else s.pair[which] == pair
        scale = np.maximum(1e-9, X[mine].std(0))
        for f in range(FOLDS):
            test, rest = mine & (fold == f), mine & (fold != f)
            if test.any() and rest.sum() >= 30:
                out[which[test]] = told[which[test]] * np.exp(make(X[rest] / scale, y[rest], w[rest])(X[test] / scale))
    return out


def trees(X, y, w):
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(100, min_samples_leaf=2, max_features=0.5, random_state=1, n_jobs=2).fit(X, y, sample_weight=w).predict


def neighbours(X, y, w):
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(5, weights="distance").fit(X, y).predict


def richest(s, pairs):
    """Each pair and precision a fit of its own, in sample"""
    out = np.full(s.n, np.nan)
    for k, row in pairs.items():
        for single in (False, True):
            which = np.where((s.pair == s.pairs.index(k)) & (s.single == single))[0]
            if len(which):
                X = s.terms(which, row[1])
                out[which] = S.time(X, clock.fit(X, s.us[which], clock.weights(s, which, clock.TIME)))[0]
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-o", default=S.TABLES)
    p.add_argument("samples", nargs="*", default=[S.KEPT, S.DRAWN])
    a = p.parse_args()
    clock.write(a.o, "REPEATS", repeats())
    s = S.load(*a.samples)
    trusted = {k: v for k, v in S.profile().items() if v[0] and k in s.pairs}
    usable = (np.array([w[3] != "dense" for w in s.words]) | (s.density >= 1)) & np.array([s.pairs[k] in trusted for k in s.pair])
    real = np.array([not clock.generated(m) for m in s.matrix_of])
    beyond, group = s.matrix + s.vectors > s.cache, clock.parts(s.matrix_of)
    told = {"the profile's terms, matrix left out": clock.without(s, trusted, group, clock.POWER, False), "the same, a fit for each precision, in sample": richest(s, trusted)}
    left = told["the profile's terms, matrix left out"]
    try:
        told["five nearest neighbours of the same pair, matrix left out"] = regression(s, left, usable, group, neighbours, True)
        told["trees, matrix left out"] = regression(s, left, usable, group, trees, False)
    except ImportError:
        print("no scikit-learn: two lines of the table are left out")
    out = ["| | real, double: mean | 90 % | worst | single: mean | 90 % | worst | generated, beyond the cache, double: mean | single |", "| :-- " + "| --: " * 8 + "|"]
    for name, v in told.items():
        c, cells = clock.chosen(s, np.where(usable, v, np.nan), usable), []
        for of in (real, ~real & beyond):
            for single in (False, True):
                q = c[of[c] & (s.single[c] == single)]
                e = 100 * np.abs(v[q] / s.us[q] - 1)
                cells += ["%.1f %%" % e.mean()] + (["%.1f %%" % np.quantile(e, 0.9), "%.0f %%" % e.max()] if of is real else [])
        out.append("| %s | %s |" % (name, " | ".join(cells)))
    clock.write(a.o, "BOUNDS", out)


if __name__ == "__main__":
    main()
