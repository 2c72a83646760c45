"""
The timed products that spmv -samples leaves, as arrays; the terms of the profile's model (plan/profile.c) on them; plots.

  load(FILE, ...)  a Samples; a FILE may end in .xz
  Samples.terms(which, shape)   the terms, as GPUCSRModelTerms() has them
  time(terms, x)                the time, as GPUCSRModelTime() has it
  replace(PAGE, MARK, LINES)    a table into a page of build/papers, where every script of this folder writes unless -o names a folder
"""
import lzma, os, re
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
KEPT = os.path.join(ROOT, "docs", "results", "survey-2026-11-21-samples.txt.xz")
RESULTS = os.path.join(ROOT, "docs", "results")
TABLES = os.path.join(ROOT, "build", "papers")  # gets every row of the tables, and the plots; docs/results quotes the first
DRAWN = os.path.join(RESULTS, "drawn-samples.txt.xz")
NCLASSES = 32
NTERMS, NSHAPE = 18, 4
COLUMNS = "us best convert matrix vectors cache rows stored mean max sectors quads columns density deviation spread twins sell heaviest groups tiles".split()
WINDOW = {"sell_256": 256, "sell_4096": 4096, "sell_sorted": np.inf, "jad": np.inf}  # rows that the format sorts together
NEAR, BLOCKS, THREADS, PROCESSORS, SHARE, STRIP, SECTOR, LONG = 250 << 10, 8, 256, 132, 0.4, 2.2, 32.0, 32  # as profile.c has them
TOGETHER = ("sell", "ell", "jad")  # formats, and variants of them, whose threads go along neighbouring rows side by side
WAITING, MEMORY, CACHE, WORK = range(4)  # the parts of a product's time, and to which each term belongs
PART = np.array([WAITING, CACHE, MEMORY, WORK, WAITING, WORK, WAITING, WORK, WORK, WORK, WORK, CACHE, MEMORY, WAITING, WORK, WORK, MEMORY, WAITING])


class Samples:
    """Arrays of one entry a timed product: the columns of the file by name, pair and product as numbers, lengths and entries by class. A line that was cut short is a ValueError"""

    def __init__(self, lines):
        words, numbers, rows, entries, cache = [], [], [], [], {}
        for at, line in enumerate(lines, 1):
            w = line.split()
            if not line.endswith("\n") or len(w) != 27 or w[26].count(":") != NCLASSES or w[26].count(",") != NCLASSES - 1:
                raise ValueError("line %d is no sample, or was cut short" % at)
            words.append(w[:5])
            numbers.append(w[5:26])
            if w[26] not in cache:
                cache[w[26]] = np.array([c.split(":") for c in w[26].split(",")], float).T
            rows.append(cache[w[26]][0])
            entries.append(cache[w[26]][1])
        self.words = words
        for name, column in zip(COLUMNS, np.array(numbers, float).T):
            setattr(self, name, column)
        self.lengths, self.entries = np.array(rows), np.array(entries)
        self.n = len(words)
        self.pairs, self.pair = number([w[3] + " " + w[4] for w in words])
        self.products, self.product = number([tuple(w[:3]) for w in words])
        self.matrix_of = np.array([w[0] for w in words])
        self.single = np.array([w[2] == "single" for w in words])
        self.transpose = np.array([w[1] == "T" for w in words])
        self.number = np.where(self.single, 4.0, 8.0)
        self.nnz = self.entries.sum(1)
        self.window = window = np.array([WINDOW.get(w[3], 0) for w in words], float)
        self.uneven = np.where(window < self.rows, self.deviation / np.maximum(1e-9, self.mean), 0)
        self.together = np.array([w[3].split("_")[0] in TOGETHER for w in words])
        self.moved = np.where(window > 0, np.minimum(np.minimum(window, self.rows), np.sqrt(12) * self.deviation), 0)

    def touched(self, which, width, threads):
        """Sectors of x that blocks of threads fetch, and those of them that the last-level cache misses: Sectors() of profile.c"""
        g = lambda a: a[which]
        every, block = np.maximum(1, g(self.rows)), THREADS / max(1, min(THREADS, threads))
        rows, size, groups, mean = np.minimum(every, block), g(self.number), g(self.groups), np.maximum(1, g(self.mean))
        x, spread = size * g(self.columns), size * g(self.spread)
        places = np.minimum(np.minimum(rows * (1 + g(self.moved)), rows + g(self.window)) * x / every, np.maximum(0, x - spread))
        reach = np.maximum(size, np.minimum(x, places + spread))
        meeting = np.maximum(1e-6, rows * g(self.sectors) / every / (reach / SECTOR))
        chance = g(self.sectors) * -np.expm1(-meeting) / meeting
        each = np.maximum(1e-9, g(self.tiles) / np.maximum(1e-9, groups)) ** (np.log2(block / 8) / 4)
        counted = np.minimum(g(self.nnz), groups * each)
        touched = np.where(g(self.moved) > 0, np.maximum(counted, chance), counted)
        once = np.minimum(touched, PROCESSORS * x / SECTOR)
        strip = np.where(g(self.together), np.minimum(1, np.maximum(STRIP / np.sqrt(mean), width / mean) + g(self.uneven)), 1)
        used = np.minimum(np.minimum(x, BLOCKS * places + x * strip), BLOCKS * np.minimum(reach, places + spread * strip)) / NEAR
        fetched = once + (touched - once) * used**2 / (1 + used**2)
        far, share = np.minimum(x, BLOCKS * PROCESSORS * places + spread), SHARE * 1e6 * g(self.cache)
        return fetched, np.where(far > share, fetched * (1 - share / np.maximum(far, 1)), 0)

    def terms(self, which, shape):
        """The terms of a pair's shape (width, threads, most, ahead) on the samples `which`, one column a term"""
        width, threads, most, ahead = shape
        g = lambda a: a[which]
        moved, one = g(self.matrix) + g(self.vectors), max(1, threads)
        t = np.zeros((len(moved), NTERMS))
        t[:, 0] = 1
        few, many = 0.4 * g(self.cache), 1.2 * g(self.cache)  # Kept() of profile.c
        t[:, 1] = moved
        t[:, 2] = moved * (1 - np.clip(np.log(many / moved) / np.log(3), 0, 1))
        t[:, 3] = 1e-6 * g(self.rows) * one
        stored = 1e-6 * g(self.stored)
        t[:, 5] = stored * np.maximum(0, np.log2(np.maximum(1e-9, g(self.mean) / width))) if threads > 0 else stored
        t[:, 6] = g(self.max) > most
        t[:, 7] = 1e-6 * g(self.sectors)
        t[:, 8] = 1e-6 * g(self.quads)
        lengths, entries = g(self.lengths)[:, 1:], g(self.entries)[:, 1:]
        long = 2.0 ** np.arange(NCLASSES - 1) >= most
        t[:, 9] = 1e-3 * lengths[:, long].sum(1)
        if np.isfinite(width):
            steps = np.ceil(np.minimum(g(self.max), most) / width)
            t[:, 4], t[:, 13] = np.floor(steps / ahead), np.minimum(steps, ahead - 1)
            t[:, 10] = 1e-6 * one * (lengths * np.ceil(entries / np.maximum(1, lengths) / width)).sum(1)
        fetched, missed = self.touched(which, width, threads)
        t[:, 11], t[:, 12] = 1e-6 * fetched, 1e-6 * missed
        t[:, 14] = 1e-3 * g(self.heaviest)
        t[:, 15] = np.where(g(self.number) > 4, stored, 0)
        t[:, 16] = 1e-6 * g(self.rows)
        t[:, 17] = np.log2(1 + g(self.max) / LONG)
        return t


def time(X, x, part=PART):
    """The time of each line of X, the terms, if they take x each: GPUCSRModelTime() of profile.c. And how it grows with each term"""
    parts = np.array([X[:, part == q] @ x[part == q] for q in range(4)])
    together = np.cbrt((parts[1:] ** 3).sum(0))
    slope = np.ones_like(parts)
    at = together > 0
    slope[1:, at] = (parts[1:, at] / together[at]) ** 2
    return parts[WAITING] + together, X * slope[part].T


def number(names):
    """Names in the order they come, and the number of each"""
    known = {}
    of = np.array([known.setdefault(n, len(known)) for n in names])
    return list(known), of


def load(*names):
    """The samples of one file or of several (KEPT where none is named), each packed by xz or not"""

    def lines():
        for name in names or (KEPT,):
            with (lzma.open if name.endswith(".xz") else open)(name, "rt") as f:
                yield from f

    try:
        return Samples(lines())
    except (OSError, EOFError, ValueError, lzma.LZMAError) as e:
        raise SystemExit("%s: %s: spmv -samples writes one anew" % (", ".join(names or (KEPT,)), e))


def predicted(s, rows):
    """The time of every sample whose pair the profile knows"""
    out = np.full(s.n, np.nan)
    for k, v in rows.items():
        which = np.where(s.pair == s.pairs.index(k))[0]
        out[which] = time(s.terms(which, v[1]), v[2])[0]
    return out


def profile(name=os.path.join(ROOT, "src", "mat", "impls", "gpucsr", "blackbox", "plan", "h200.h")):
    """Lines cost and measure of a profile: {pair: (trusted, shape, times, setup)}"""
    rows = {}
    for line in open(name):
        w = line.strip().strip('"').replace("\\n", "").split()
        if w and w[0] in ("cost", "measure"):
            v = [float(x) for x in w[3:]]
            rows[w[1] + " " + w[2]] = (w[0] == "cost", tuple(v[:NSHAPE]), np.array(v[NSHAPE : NSHAPE + NTERMS]), v[NSHAPE + NTERMS :])
    return rows


def family(name):
    """Matrices that were made alike: what stands before the first digit, underscore or hyphen of the name, with the few that need a word"""
    return re.match(r"[A-Za-z]+", name).group(0).lower()


def replace(page, mark, lines):
    """Puts lines between <!-- mark --> and <!-- /mark --> of a page; a page that lacks them gets them at its end"""
    os.makedirs(os.path.dirname(page), exist_ok=True)
    text = open(page).read() if os.path.exists(page) else ""
    begin, end = "<!-- %s -->\n" % mark, "<!-- /%s -->\n" % mark
    if begin not in text or end not in text:
        text += ("\n" if text else "") + begin + end
    with open(page, "w") as f:
        f.write(text[: text.index(begin) + len(begin)] + "\n".join(lines) + "\n" + text[text.index(end) :])


def pyplot():
    """Matplotlib's, or None where it is not: the tables are made all the same"""
    try:
        import matplotlib
    except ImportError:
        print("no Matplotlib: no plot")
        return None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
