#!/usr/bin/env python3
"""
Readers against each other on the same files in the same run: MatGPUCSRLoadFile() by threads and ranks, scipy.io.mmread, and
sklearn.datasets.load_svmlight_file where they are installed; PETSc binary against MatLoad() and the page cache.

    src/benchmarks/read.py [--bench build/bench/read] [--convert build/bin/gpucsr-convert] [--megabytes 100] [--rounds 5] [--threads 1,2] [--kinds libsvm,ones,market,pattern] [--compressed gzip,xz,bzip2] [--out FOLDER]

In each round every reader reads every file once (the least time of two calls), in turn, so that a drifting machine is the same for all. Quoted is the median of
the rounds; a ratio is the median of the ratios in each round. Writes FOLDER/read.json and FOLDER/read.md. Matrices are compared by size and entries.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MPIEXEC = os.environ.get("MPIEXEC", "mpiexec --allow-run-as-root --oversubscribe" if os.geteuid() == 0 else "mpiexec").split()


def bench(args, path, threads=1, ranks=1, how="gpucsr", extra=()):
    launch = MPIEXEC + ["-n", str(ranks)] if ranks > 1 else []
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES="")
    r = subprocess.run(launch + [args.bench, "-f", str(path), "-with", how, "-repeat", "2", *extra], env=env, capture_output=True, text=True, check=True)
    return json.loads(r.stdout.splitlines()[-1])


def call(function, *a, **k):
    best = 1e30
    for _ in range(2):
        t = time.perf_counter()
        X = function(*a, **k)
        best = min(best, time.perf_counter() - t)
    X = X[0] if isinstance(X, tuple) else X
    return {"seconds": best, "rows": X.shape[0], "columns": X.shape[1], "entries": X.nnz}


def peers(path, threads):
    """Names and functions of other readers of this file"""
    found = {}
    if path.suffix == ".svm":
        try:
            from sklearn.datasets import load_svmlight_file
            found["scikit-learn"] = lambda: call(load_svmlight_file, str(path))
        except ImportError:
            pass
    if path.suffix == ".mtx":
        try:
            import scipy.io
            import scipy.io._fast_matrix_market as fmm  # SciPy 1.12 and later

            def mmread(n):
                fmm.PARALLELISM = n
                return call(lambda p: scipy.io.mmread(p).tocsr(), str(path))

            def triplets(n):  # what is not yet a matrix of compressed rows
                fmm.PARALLELISM = n
                return call(scipy.io.mmread, str(path))

            for n in threads:
                found[f"SciPy mmread, {n} threads"] = lambda n=n: triplets(n)
                found[f"SciPy mmread and tocsr, {n} threads"] = lambda n=n: mmread(n)
        except ImportError:
            pass
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=str(ROOT / "build/bench/read"))
    p.add_argument("--convert", default=str(ROOT / "build/bin/gpucsr-convert"))
    p.add_argument("--megabytes", type=float, default=100)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--kinds", default="libsvm,ones,market,pattern", help="which of these to read; libsvm as PETSc binary too")
    p.add_argument("--compressed", default="gzip,xz,bzip2", help="which of these to read too")
    p.add_argument("--out", default=str(ROOT / "build/bench-results"))
    args = p.parse_args()
    threads = [int(t) for t in args.threads.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="read-"))
    load = os.getloadavg()[0]

    files = []
    for kind, name in (("libsvm", "text.svm"), ("ones", "ones.svm"), ("market", "real.mtx"), ("pattern", "pattern.mtx")):
        if kind not in args.kinds.split(","):
            continue
        files.append(folder / name)
        subprocess.run([args.bench, "-generate", kind, "-f", str(files[-1]), "-megabytes", str(args.megabytes)], check=True)
    for squeeze, ending in (("gzip -1", ".gz"), ("xz -1", ".xz"), ("bzip2", ".bz2")):
        if squeeze.split()[0] in args.compressed.split(",") and shutil.which(squeeze.split()[0]):
            files.append(folder / ("text.svm" + ending))
            with open(files[-1], "wb") as out:
                subprocess.run(squeeze.split() + ["-c", str(files[0])], stdout=out, check=True)
    files.append(folder / "text.petsc")
    subprocess.run([args.convert, "-quiet", str(files[0]), str(files[-1])], check=True)

    runs = {}  # file -> reader -> list of results
    for r in range(args.rounds):
        for f in files:
            todo = {f"gpucsr, {t} threads": (lambda t=t: bench(args, f, t)) for t in threads}
            todo.update({f"gpucsr, {t} ranks": (lambda t=t: bench(args, f, 1, t)) for t in threads if t > 1})
            todo.update(peers(f, threads))
            if f.suffix == ".petsc":
                for t in threads:
                    todo[f"gpucsr, {t} threads, -mat_no_inode"] = lambda t=t: bench(args, f, t, extra=["-mat_no_inode"])
                todo["MatLoad"] = lambda: bench(args, f, how="matload")
                todo["page cache into new memory"] = lambda: bench(args, f, how="cache")
                todo["page cache into a small buffer"] = lambda: bench(args, f, how="hotcache")
            for name, function in todo.items():
                runs.setdefault(f.name, {}).setdefault(name, []).append(function())
        print(f"round {r + 1} of {args.rounds}", file=sys.stderr)

    table, wrong = [], []
    for f in files:
        of = runs[f.name]
        text = of[f"gpucsr, {threads[0]} threads"][0]["text"]
        shape = None
        for name, results in of.items():
            seconds = statistics.median(x["seconds"] for x in results)
            first = [x["seconds"] for x in of[f"gpucsr, {threads[0]} threads"]]
            ratio = statistics.median(x["seconds"] / y for x, y in zip(results, first))
            size = [results[0].get(k) for k in ("rows", "columns", "entries")]
            if "cache" not in name:
                shape = shape or size
                if size != shape:
                    wrong.append(f"{f.name}: {name} has {size}, not {shape}")
            table.append({"file": f.name, "bytes": f.stat().st_size, "text": text, "reader": name, "seconds": seconds, "least": min(x["seconds"] for x in results), "megabytes_per_second": text / seconds / 1e6, "time_over_gpucsr_1": ratio})

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "read.json").write_text(json.dumps({"load_before": load, "cores": os.cpu_count(), "rounds": args.rounds, "table": table, "runs": runs}, indent=1) + "\n")
    lines = [f"{os.cpu_count()} cores, load average {load:.1f} before, {args.rounds} rounds, medians (least in brackets). MB are those of the text, decompressed.", "",
             "| file | MB | reader | seconds | MB/s | time over gpucsr's, one thread |", "|---|---|---|---|---|---|"]
    for t in table:
        lines.append(f"| {t['file']} | {t['bytes'] / 1e6:.0f} | {t['reader']} | {t['seconds']:.3f} ({t['least']:.3f}) | {t['megabytes_per_second']:.0f} | {t['time_over_gpucsr_1']:.2f} |")
    (out / "read.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    shutil.rmtree(folder)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
