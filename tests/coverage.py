#!/usr/bin/env python3
"""Lines of src/ that a build with --coverage has run, by file, and those that it has not, with the reason where tests/coverage.list has one.

    tests/coverage.py build-coverage [PAGE.md [NOTE]]      writes build-coverage/uncovered.txt, prints a line a file and the total; PAGE.md gets the tables, NOTE below its head
"""
import datetime
import fnmatch
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build-coverage")
page = sys.argv[2] if len(sys.argv) > 2 else None
note = sys.argv[3] + "\n\n" if len(sys.argv) > 3 else ""


def counts():
    """{path: {line: [times, function]}}"""
    hits = {}
    with tempfile.TemporaryDirectory() as folder:
        for data in glob.glob(build + "/obj/**/*.gcda", recursive=True):
            subprocess.run(["gcov", "--json-format", "--object-directory", os.path.dirname(data), data], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for name in glob.glob(folder + "/*.gcov.json.gz"):
                with gzip.open(name) as f:
                    for source in json.load(f)["files"]:
                        path = os.path.relpath(os.path.join(os.getcwd(), source["file"]))
                        if path.startswith("src/"):
                            lines = hits.setdefault(path, {})
                            for line in source["lines"]:
                                one = lines.setdefault(line["line_number"], [0, line.get("function_name", "")])
                                one[0] += line["count"]
                os.unlink(name)
    return hits


def reasons():
    """[(pattern of paths, pattern of functions, reason)] of tests/coverage.list: PATH FUNCTION REASON, the first that fits counts"""
    rows = []
    for row in open("tests/coverage.list"):
        if row.strip() and not row.startswith("#"):
            rows.append(row.rstrip("\n").split(None, 2))
    return rows


hits = counts()
if not hits:
    sys.exit(f"{build} holds nothing that was run")
known, why = reasons(), {}
total = reached = 0
table = []
with open(build + "/uncovered.txt", "w") as out:
    for path in sorted(hits):
        lines = hits[path]
        missed = sorted(n for n, (times, _) in lines.items() if not times)
        total += len(lines)
        reached += len(lines) - len(missed)
        print(f"{100 * (1 - len(missed) / len(lines)):5.1f} % of {len(lines):4} lines  {path}")
        table.append((len(missed), len(lines), path))
        text = open(path).read().split("\n")
        for n in missed:
            function = lines[n][1]
            reason = next((r for p, f, r in known if fnmatch.fnmatch(path, p) and fnmatch.fnmatch(function, f)), None)
            if not reason and any(word in text[n - 1] for word in ("PetscCheck(", "SETERRQ(", "GPUCSRFaultSet(", "PetscError(")):
                reason = "an error that no test meets"
            reason = reason or "no test of this run"
            why.setdefault(reason, {}).setdefault((path, function), []).append(n)
            out.write(f"{path}:{n}: {function}: {text[n - 1].strip()}\n")
summary = f"{100 * reached / total:.1f} % of {total} lines in all"
print(f"{summary}; those that no test reaches are in {os.path.relpath(build)}/uncovered.txt")
if page:
    with open(page, "w") as out:
        out.write(f"# Coverage, {datetime.date.today()}\n\nLines of `src/` without `.cu` that `make check` reaches on the host, by gcov. The host has no kernels and no stream that can be timed, so what only a GPU runs is not reached.\n\n")
        out.write("```\nmake coverage PAGE=FILE.md        writes this page; the reasons are those of tests/coverage.list\n```\n\n")
        out.write(note)
        out.write(f"{summary}, {total - reached} are not reached.\n\n| lines not reached | why | where |\n|--:|---|---|\n")
        for reason, places in sorted(why.items(), key=lambda row: -sum(map(len, row[1].values()))):
            where = {}
            for (path, function), lines in places.items():
                where.setdefault(path, []).append(f"`{function}` {len(lines)}")
            out.write(f"| {sum(map(len, places.values()))} | {reason} | {'; '.join(path.removeprefix('src/') + ': ' + ', '.join(fs) for path, fs in where.items())} |\n")
        out.write("\n| file | lines | not reached |\n|---|--:|--:|\n")
        for missed, lines, path in sorted(table, key=lambda row: -row[0]):
            if missed:
                out.write(f"| `{path}` | {lines} | {missed} |\n")
