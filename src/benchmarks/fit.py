#!/usr/bin/env python3
"""
Fit the model by which a kernel is chosen (src/mat/impls/gpucsr/plan/choose.c) to measured products.

    fit.py bench.jsonl > src/mat/impls/gpucsr/plan/costs.h

bench.jsonl is what run.sh leaves. For each kernel, non-negative least squares on relative errors, a product the heavier the
nearer the kernel is to the best there. What the choice then loses goes to stderr: regret is chosen time / best time.
"""
import json, math, sys
import numpy as np
from scipy.optimize import nnls

# kernel: (entries a step, threads a row, longest row that stays on its usual way); 0 threads: no fixed number
KERNELS = {"csr_scalar": (1, 1, None), "csr_vector2": (4, 2, None), "csr_vector4": (8, 4, None), "csr_vector8": (16, 8, None), "csr_vector16": (32, 16, None), "csr_vector32": (64, 32, None),
           "csr_block": (512, 256, None), "csr_adaptive": (32, 0, 1024), "sell_row": (8, 1, None), "dense_gemv": (None, 0, None)}


def shape(r):
    return (r["rows"], r["columns"]) if r["side"] == "N" else (r["columns"], r["rows"])


def terms(r, k):
    """launch, megabytes, million threads, steps of the longest row, uneven, cut: as Predict() in choose.c"""
    (m, n), nnz, longest = shape(r), r["nnz"], r["length_max"]
    width, threads, most = KERNELS[k]
    value = 8 if r["precision"] == "double" else 4
    stored = m * n if k == "dense_gemv" else nnz * (1 + r["sell_padding"]) if k == "sell_row" else nnz
    moved = value * (m + n) + (value * stored if k == "dense_gemv" else 4 * m + (4 + value) * stored)
    uneven = stored * (max(0, math.log2(max(1e-9, nnz / max(1, m) / width))) if threads else 1)
    steps = 0 if width is None else math.ceil(min(longest, most or longest) / width)
    return np.array([1, moved / 1e6, m * threads / 1e6, steps, uneven / 1e6, 1.0 if most and longest > most else 0.0])


def allowed(r, k):
    return k in r["us"] and (k != "dense_gemv" or r["nnz"] == r["rows"] * r["columns"])


products = [r for r in map(json.loads, open(sys.argv[1])) if r["record"] == "product"]
model = {}
for k in KERNELS:
    rows = [(terms(r, k), r["us"][k], r["best_us"]) for r in products if k in r["us"] and r["us"][k] <= 5 * r["best_us"]]
    weight = [best / t**2 for _, t, best in rows]
    model[k] = nnls(np.array([x * w for (x, _, _), w in zip(rows, weight)]), np.array([t * w for (_, t, _), w in zip(rows, weight)]))[0]

print("/*\n  Cost of the kernels, microseconds, on one H200: kernel, width, threads, most, launch, bytes, row, step, uneven, cut. Made by\n  src/benchmarks/fit.py from docs/results/; a kernel without a row is never chosen unless asked for.\n*/")
for k, (width, threads, most) in KERNELS.items():
    print('{"%s", %s, %d, %s, %s},' % (k, width or "INT_MAX", threads, most or "INT_MAX", ", ".join("%.4g" % c for c in model[k])))
for precision in ("double", "single"):
    regret = []
    for r in products:
        if r["precision"] == precision:
            chosen = min((k for k in KERNELS if allowed(r, k)), key=lambda k: float(model[k] @ terms(r, k)))
            regret.append(r["us"][chosen] / r["best_us"])
    print("%s: regret %.3f in the geometric mean, %.2f at worst, of %d products" % (precision, math.exp(np.mean(np.log(regret))), max(regret), len(regret)), file=sys.stderr)
