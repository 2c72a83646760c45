#!/usr/bin/env python3
"""
The rooms of the library, from the ground up, and what a file may include: files of its own room and of rooms below it. Prints each include that points up or across, each
circle of files, and each folder of more than 20 files. Part of lint.sh.

    tests/rooms.py [FOLDER]
"""
import os, re, sys
from collections import Counter

if len(sys.argv) > 1:
    os.chdir(sys.argv[1])

# A row a floor: rooms of one floor do not see each other
MAT, KSP = "src/mat/impls/gpucsr/", "src/ksp/"
FLOORS = [
    ["include/"],
    ["src/sys/"],
    ["src/io/"],
    ["src/sys/peer/", "src/sys/backends/", "src/sys/debug/"],
    ["src/vec/impls/gpu/"],
    [MAT + "blackbox/format/", MAT + "blackbox/inspect/"],
    [MAT + "blackbox/kernels/"],
    [MAT + "blackbox/assemble/", MAT + "blackbox/peerhalo/", MAT + "blackbox/spgemm/", MAT + "blackbox/triangles/", MAT + "blackbox/plan/"],
    [MAT + "blackbox/amg/"],
    [MAT],
    [KSP + "wrap."],
    [KSP + "pc/impls/", KSP + "impls/petsc/"],
    [KSP + "impls/gpu/", "src/tao/impls/"],
    ["src/foreign."],
    ["src/dlregisgpucsr.c", "src/bin/", "src/learn/"],
]


def room(f):
    best = None
    for level, rooms in enumerate(FLOORS):
        for r in rooms:
            if f.startswith(r) and (best is None or len(r) > len(best[1])):
                best = (level, r)
    return best


# Formats and the inspector look at each other's structs
TOGETHER = [{MAT + "blackbox/format/", MAT + "blackbox/inspect/"}]

everything = sorted(os.path.join(d, f) for top in ("include", "src") for d, _, names in os.walk(top) if "__pycache__" not in d for f in names)
files = [f for f in everything if re.search(r"\.(c|h|cu|cuh)$", f) and not re.match(r"src/(benchmarks|ksp/examples)/", f)]
known, includes = set(files), {}
for f in files:
    found = []
    for k, line in enumerate(open(f, encoding="utf-8", errors="replace"), 1):
        m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if not m:
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(f), m[2])) if m[1] == '"' else os.path.join("include", m[2])
        if target not in known:
            continue
        found.append(target)
        here, there = room(f), room(target)
        if not here or not there:
            print(f"{f}:{k}: is in no room of tests/rooms.py")
        elif there[0] > here[0]:
            print(f"{f}:{k}: must not include {m[2]}, of a room above")
        elif there[0] == here[0] and there[1] != here[1] and {here[1], there[1]} not in TOGETHER:
            print(f"{f}:{k}: must not include {m[2]}, of another room of its floor")
    includes[f] = found

# Circles of files
index, low, stack, on, circles = {}, {}, [], set(), []


def visit(f):
    index[f] = low[f] = len(index)
    stack.append(f)
    on.add(f)
    for t in includes[f]:
        if t not in index:
            visit(t)
            low[f] = min(low[f], low[t])
        elif t in on:
            low[f] = min(low[f], index[t])
    if low[f] == index[f]:
        part = []
        while True:
            t = stack.pop()
            on.discard(t)
            part.append(t)
            if t == f:
                break
        if len(part) > 1:
            circles.append(sorted(part))


sys.setrecursionlimit(10000)
for f in files:
    if f not in index:
        visit(f)
for c in circles:
    print("a circle of includes:", " ".join(c))

for folder, n in sorted(Counter(os.path.dirname(f) for f in everything).items()):
    if n > 20:
        print(f"{folder}: has {n} files, of at most 20")
