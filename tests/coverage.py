#!/usr/bin/env python3
"""Lines of src/ that a build with --coverage has run, by file, and those that it has not.

    tests/coverage.py build-coverage        writes build-coverage/uncovered.txt, prints a line a file and the total
"""
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build-coverage")
hits = {}
with tempfile.TemporaryDirectory() as folder:
    for data in glob.glob(build + "/obj/**/*.gcda", recursive=True):
        subprocess.run(["gcov", "--json-format", "--object-directory", os.path.dirname(data), data], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in glob.glob(folder + "/*.gcov.json.gz"):
            with gzip.open(name) as f:
                for source in json.load(f)["files"]:
                    path = os.path.relpath(os.path.join(os.getcwd(), source["file"]))
                    if not path.startswith("src/"):
                        continue
                    lines = hits.setdefault(path, {})
                    for line in source["lines"]:
                        lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
            os.unlink(name)
if not hits:
    sys.exit(f"{build} holds nothing that was run")
total = reached = 0
with open(build + "/uncovered.txt", "w") as out:
    for path in sorted(hits):
        lines = hits[path]
        missed = sorted(n for n, count in lines.items() if not count)
        total += len(lines)
        reached += len(lines) - len(missed)
        print(f"{100 * (1 - len(missed) / len(lines)):5.1f} % of {len(lines):4} lines  {path}")
        text = open(path).read().split("\n")
        for n in missed:
            out.write(f"{path}:{n}: {text[n - 1].strip()}\n")
print(f"{100 * reached / total:5.1f} % of {total} lines in all; those that no test reaches are in {os.path.relpath(build)}/uncovered.txt")
