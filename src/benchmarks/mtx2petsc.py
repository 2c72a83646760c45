#!/usr/bin/env python3
"""
Turn Matrix Market files into PETSc binary ones for the benchmarks.

    mtx2petsc.py [-o FOLDER] [-fit MIB] FILE_OR_FOLDER ...

Takes .mtx and .mtx.gz, writes NAME.petsc into FOLDER (default: here): 32-bit indices, real values in
double. Files that hold a pattern alone get values: multiples of 1/64 between -1 and 1, zero left out, from a seed that is
the file's name, symmetric where the pattern is. Complex files and empty matrices are left out, and named.

With -fit, files are left out until all of them, compressed with xz, take at most so many MiB: first of two matrices that are
alike (mean row length, spread of row lengths, number of rows), the one that takes more room.
"""
import argparse, gzip, lzma, math, os, sys, zlib
import numpy as np
import scipy.io, scipy.sparse as sp

MAT_FILE_CLASSID = 1211216


def header(name):
    with (gzip.open if name.endswith(".gz") else open)(name, "rt") as f:
        return f.readline().lower().split()


def read(name, stem):
    """The matrix as sorted CSR, or None and the reason"""
    field = header(name)[3]
    if field == "complex":
        return None, "complex"
    A = sp.coo_matrix(scipy.io.mmread(name))
    if not A.nnz or not A.shape[0] or not A.shape[1]:
        return None, "no entries"
    A = A.tocsr()
    A.sum_duplicates()
    A.sort_indices()
    A = A.astype(np.float64)
    if field == "pattern":
        symmetric = A.shape[0] == A.shape[1] and (abs(A - A.T)).nnz == 0
        row = np.repeat(np.arange(A.shape[0], dtype=np.uint64), np.diff(A.indptr))
        col = A.indices.astype(np.uint64)
        a, b = (np.minimum(row, col), np.maximum(row, col)) if symmetric else (row, col)
        # SplitMix64 of the position (Steele, Lea, Flood, OOPSLA 2014)
        with np.errstate(over="ignore"):
            h = np.uint64(zlib.crc32(stem.encode())) + (a * np.uint64(A.shape[1]) + b) * np.uint64(0x9E3779B97F4A7C15)
            h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        k = ((h ^ (h >> np.uint64(31))) % np.uint64(128)).astype(np.int64) - 64
        A.data = np.where(k >= 0, k + 1, k) / 64.0
    return A, ""


def petsc(A):
    """A in PETSc's binary format"""
    head = np.array([MAT_FILE_CLASSID, A.shape[0], A.shape[1], A.nnz])
    ints = np.concatenate([head, np.diff(A.indptr), A.indices]).astype(">i4")
    return ints.tobytes() + A.data.astype(">f8").tobytes()


def features(A):
    length = np.diff(A.indptr)
    return np.array([math.log(length.mean()), math.log1p(length.std() / length.mean()), math.log(A.shape[0]), math.log(A.shape[1] / A.shape[0])])


def thin_out(found, limit):
    """Names to leave out: {name: (size, features)} down to limit bytes"""
    out = []
    keep = dict(found)
    while len(keep) > 1 and sum(s for s, _ in keep.values()) > limit:
        names = sorted(keep)
        F = np.array([keep[q][1] for q in names])
        D = np.abs(F[:, None, :] - F[None, :, :]).sum(2) + np.diag(np.full(len(names), np.inf))
        # the room it gives back counts half as much, on a scale of logarithms, as how unlike all others it is
        size = np.array([keep[q][0] for q in names], dtype=float)
        k = int(np.argmin(D.min(1) / np.sqrt(size)))
        out.append(names[k])
        del keep[names[k]]
    return out


def main():
    p = argparse.ArgumentParser(description="Turn Matrix Market files into PETSc binary ones", prefix_chars="-")
    p.add_argument("-o", default=".", metavar="FOLDER")
    p.add_argument("-fit", type=float, metavar="MIB")
    p.add_argument("source", nargs="+", metavar="FILE_OR_FOLDER")
    o = p.parse_args()
    files = []
    for s in o.source:
        if not os.path.exists(s):
            sys.exit(f"mtx2petsc.py: {s}: there is no such file or folder")
        files += sorted(os.path.join(s, f) for f in os.listdir(s) if f.endswith((".mtx", ".mtx.gz"))) if os.path.isdir(s) else [s]
    os.makedirs(o.o, exist_ok=True)
    found, left = {}, []
    for f in files:
        stem = os.path.basename(f).split(".mtx")[0]
        A, why = read(f, stem)
        if A is None:
            left.append(f"{stem} ({why})")
            continue
        data = petsc(A)
        with open(os.path.join(o.o, stem + ".petsc"), "wb") as out:
            out.write(data)
        found[stem] = (len(lzma.compress(data, preset=2)) if o.fit else len(data), features(A))
    if o.fit:
        for stem in thin_out(found, o.fit * 2**20):
            os.remove(os.path.join(o.o, stem + ".petsc"))
            left.append(f"{stem} (room)")
            del found[stem]
    print(f"{len(found)} matrices, {sum(s for s, _ in found.values()) / 2**20:.1f} MiB{' compressed' if o.fit else ''} in {o.o}")
    if left:
        print("left out: " + ", ".join(left))


if __name__ == "__main__":
    main()
