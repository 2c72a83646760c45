#!/usr/bin/env python3
"""
Table 4 of M. M. Baskaran and R. Bordawekar (IBM RC24704, 2009), coalesced and other accesses, counted from the places that the kernels read: a section of docs/results/ladder.md.

    accesses.py [-o FOLDER] [MATRIX.petsc ...]

A request is what a warp asks for at once, a sector 32 bytes of memory; loads of values and columns of a row in pairs begin at an even place. Without names four matrices of share/datasets.
"""
import argparse, os
import numpy as np
import records as R
import samples as S

FEW = ("bcsstk16", "cavity14", "wiki-Vote", "de2010")


def read(name):
    """Row pointers and columns of a matrix in PETSc's binary format"""
    with open(name, "rb") as f:
        head = np.fromfile(f, ">i4", 4)
        if len(head) < 4 or head[0] != 1211216:
            raise SystemExit("%s: is no matrix in PETSc's binary format" % name)
        length, col = np.fromfile(f, ">i4", head[1]), np.fromfile(f, ">i4", head[3])
    if len(col) < head[3]:
        raise SystemExit("%s: ends after %d of %d columns" % (name, len(col), head[3]))
    return np.concatenate([[0], np.cumsum(length)]).astype(np.int64), col.astype(np.int64)


def requests(ptr, threads, width):
    """Of each entry the request that reads it: rows of `threads` threads, `width` entries a load"""
    rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    first = ptr[rows] // width * width
    step = (np.arange(ptr[-1]) - first) // (threads * width)
    warp = rows // (32 // threads)
    return warp * (step.max() + 1) + step


def sectors(request, place):
    """Pairs of a request and a sector that it touches"""
    return len(np.unique(request * (place.max() // 32 + 1) + place // 32))


def count(ptr, col, threads, width, size=8):
    q, at = requests(ptr, threads, width), np.arange(ptr[-1])
    n = len(np.unique(q))
    slots = q if width == 1 else q * 2 + (at - ptr[np.searchsorted(ptr, at, "right") - 1] // width * width) % width  # x is read entry by entry
    return n, sectors(q, size * at), sectors(q, 4 * at), len(np.unique(slots)), sectors(slots, size * col)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", default=S.TABLES)
    a.add_argument("matrices", nargs="*")
    a = a.parse_args()
    out = []
    for name in a.matrices or [os.path.join(S.ROOT, "share", "datasets", n + ".petsc") for n in FEW]:
        ptr, col = read(name)
        word = os.path.basename(name).replace(".petsc", "")
        for kernel, threads, width in (("a thread a row", 1, 1), ("16 threads a row", 16, 1), ("… aligned, in pairs", 16, 2), ("32 threads a row, in pairs", 32, 2)):
            n, val, idx, nx, x = count(ptr, col, threads, width)
            least = (8 + 4) * ptr[-1] / 32
            out.append((word, kernel, n, "%.2f" % (val / n), "%.2f" % (idx / n), "%.2f" % ((val + idx) / least), nx, "%.2f" % (x / nx)))
            word = ""
    S.replace(a.o + "/ladder.md", "ACCESSES", R.table(("<matrix", "<kernel", "requests of values", "sectors a request: values", "columns", "A's sectors over the fewest", "requests of x", "sectors a request"), out))


if __name__ == "__main__":
    main()
