#!/usr/bin/env python3
"""
A plot of a path of lambdas:

    bmrm -f a9a.petsc -loss logistic -lambdas 1e-6:1:7 -cv 5 | path.py PATH.png

Quality on the rows learned from, on those to judge by and by cross-validation, as far as bmrm printed them, and iterations; the best lambda is marked. What is read is printed too. Needs Matplotlib.
"""
import re, sys


def read(lines):
    """names of columns, rows of numbers, the best lambda"""
    names, rows, best, quality = [], [], None, ""
    for line in lines:
        sys.stdout.write(line)
        words = re.split(r"\s{2,}", line.strip())
        if line.startswith("path"):
            quality, first = line.split("objective", 1)[1].split(":")
            names = ["lambda", "iterations", "objective"] + first.split()
        elif names and line.startswith(" "):
            rows.append([float(w) for w in words[: len(names)]])
        elif line.startswith("best"):
            best = float(words[-1].split()[-1])
    return names, rows, best, quality.strip()


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    names, rows, best, quality = read(sys.stdin)
    if not rows:
        sys.exit("path.py: no path was read: bmrm prints one with -lambdas")
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        sys.exit("path.py: needs Matplotlib")
    lambdas = [r[0] for r in rows]
    figure, (top, below) = plt.subplots(2, 1, sharex=True, figsize=(6, 5), height_ratios=(3, 1))
    for k, name in enumerate(names[3:], 3):
        top.semilogx(lambdas, [r[k] for r in rows], marker="o", label=name)
    top.axvline(best, color="gray", linestyle=":", label=f"best, {best:g}")
    top.set_ylabel(quality)
    top.legend()
    below.loglog(lambdas, [max(r[1], 1) for r in rows], marker="o", color="gray")
    below.set_ylabel("iterations")
    below.set_xlabel("lambda")
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=100)


if __name__ == "__main__":
    main()
