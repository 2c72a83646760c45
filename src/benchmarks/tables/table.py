#!/usr/bin/env python3
"""
The table of README and docs/results/table.md from what table.sh measured.

    table.py [FILE.jsonl[.xz] ...]            prints the page and a table of each part; without a file of docs/results/table.jsonl.xz
    table.py -write FILE ...                  writes that record, the page and README's rows
    table.py -check [FILE ...]                fails if README or the page say anything else than the record

A figure is the median of the rounds; a ratio is the peer's median over that of the library. A row of README that is not of this record links to its page.
"""
import argparse, json, lzma, math, os, re, statistics, sys, textwrap
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "learning"))
import learn

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
KEPT = "docs/results/table.jsonl.xz"
HEAD = ["| | peer | faster by |", "|---|---|---|"]
LARGE = 1e6  # entries
OFF = 0.03  # of the reference row


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def number(v, digits=3):
    return "" if v is None else f"{v:.{max(0, digits - len(f'{abs(v):.0f}'))}f}" if abs(v) >= 1 else f"{v:.{digits}g}"


def power(v):
    exponent = math.floor(math.log10(v)) if v else 0
    return f"{v / 10**exponent:.2g}·10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "|".join([":--"] + ["--:"] * (len(head) - 1)) + "|"] + ["| " + " | ".join(str(c) for c in r) + " |" for r in rows] + [""]


def read(files):
    records = defaultdict(list)
    for name in files:
        try:
            with (lzma.open if name.endswith(".xz") else open)(name, "rt") as f:
                for k, line in enumerate(f, 1):
                    r = json.loads(line)
                    records[r["record"]].append(r)
        except (OSError, EOFError, lzma.LZMAError) as e:
            sys.exit(f"table.py: {name}: {e}")
        except (ValueError, KeyError):
            sys.exit(f"table.py: {name}, line {k}: no JSON object with a record field: it was cut short, or is of another program")
    if not records:
        sys.exit("table.py: nothing to summarize: the files are empty")
    return records


def medians(records, key, fields):
    """key(r): {field: median of the rounds, "r": the last record, "n": rounds, "spread": of the first field}"""
    groups, out = defaultdict(list), {}
    for r in records:
        groups[key(r)].append(r)
    for k, rs in groups.items():
        out[k] = {f: statistics.median(v) for f in fields if (v := [r[f] for r in rs if r.get(f) is not None])}
        first = [r[fields[0]] for r in rs if r.get(fields[0]) is not None]
        out[k].update(r=rs[-1], n=len(rs), spread=(max(first) - min(first)) / statistics.median(first) if first else None)
    return out


class Page:
    def __init__(self):
        self.readme, self.all, self.lines, self.below, self.shares = [], [], [], [], []

    def row(self, what, peer, *ratios, readme=False):
        """ratios: {name: ratio} for each of the row's figures. The least is said, as well as the mean"""
        if not all(ratios):
            return
        figures = []
        for r in ratios:
            least = min(r, key=r.get)
            figures.append(number(geomean(r.values())) + (f" ({number(r[least])} at least, {least})" if len(r) > 1 else "" if least in what else f" ({least} alone)"))
        below = ["; ".join(f"{n} {number(v)}" for n, v in sorted(r.items(), key=lambda v: v[1]) if v < 1) for r in ratios]
        self.below += [f"row {len(self.all) + 1}, figure {k}: {b}" for k, b in enumerate(below, 1) if b]
        self.all.append(f"| {what} | {peer} | {'; '.join(figures)} |")
        self.readme += self.all[-1:] if readme else []

    def share(self, what, r):
        """r: {name: share of the copy's rate}"""
        if r:
            least = min(r, key=r.get)
            self.shares.append(f"{what} {number(geomean(r.values()), 2)} ({number(r[least], 2)} at least, {least})")

    def section(self, title, text, head, rows):
        if rows:
            self.lines += [f"## {title}", "", text, ""] + table(head, rows)


def products(page, records):
    latest = {(r["matrix"], r["side"]): r for r in records["product"] if r["precision"] == "double"}
    for large in (True, False):
        rows, every = [], []
        for side, name in (("N", "A x"), ("T", "Aᵀ x")):
            rs = sorted((r for r in latest.values() if r["side"] == side and (r["nnz"] >= LARGE) == large), key=lambda r: r["nnz"])
            seen, cold, gpu = {}, {}, {r["matrix"]: r["peer_us"] / r["chosen_us"] for r in rs if r.get("peer_us")}
            for r in rs:
                for ratios, us in ((seen, "us"), (cold, "cold_us")):
                    ways = [r[k + us] for k in ("aijcusparse_", "aijcusparse_explicit_") if r.get(k + us)]
                    if ways:
                        ratios[r["matrix"]] = min(ways) / r["gpucsr_" + us]
                rows.append([r["matrix"], name, r["nnz"]] + [number(r.get(k)) for k in ("gpucsr_us", "aijcusparse_us", "aijcusparse_explicit_us")] + [number(seen.get(r["matrix"])), number(cold.get(r["matrix"])), number(r["chosen_us"]), number(r.get("peer_us")), number(gpu.get(r["matrix"]), 3), number(r["fraction"], 2), number(r.get("gpucsr_spread"), 2)])
            every.append((seen, cold, gpu))
        entries = [r[2] for r in rows] or [0]
        size = f"{len({r[0] for r in rows})} matrices of at most {power(max(entries))} entries, where a launch takes longer than a product" if not large else f"{len({r[0] for r in rows})} matrices of {power(min(entries))} to {power(max(entries))} entries"
        (seen, cold, gpu), (seent, coldt, gput) = every
        page.row(f"products A x; Aᵀ x, {size}", "`aijcusparse`; the better with and without `-mat_form_explicit_transpose`", seen, seent, readme=large)
        page.row(f"the same, with cold caches where a matrix fits the cache: {len(cold)} of these" if len(cold) > 1 else "the same, with cold caches where a matrix fits the cache", "the same", cold, coldt)
        page.row("the same, time of the GPU alone", "the best of cuSPARSE's algorithms; its transposed product", gpu, gput)
        if large:
            for name, rs in (("A x, CSR and two vectors:", "N"), ("Aᵀ x, the same:", "T")):
                page.share(name, {r["matrix"]: r["fraction"] for r in latest.values() if r["side"] == rs and r["nnz"] >= LARGE})
        text = ("Microseconds: a product as a program sees it, by the host's clock over successive calls (gpucsr, `aijcusparse`, the same with `-mat_form_explicit_transpose`); then the GPU's time of the chosen kernel and of cuSPARSE's best. "
                "*copy*: bytes of CSR and vectors over the chosen kernel's time, of the rate of a device copy. *spread*: most less least of the rounds, over the median. *cold*: the ratio where copies of the matrix take turns that together exceed the last-level cache three times; it is missing where one matrix does, and where 32 copies are too few.")
        page.section(f"Products, {size}", text, ["matrix", "", "entries", "gpucsr", "aijcusparse", "explicit", "ratio", "cold", "GPU", "cuSPARSE", "ratio", "copy", "spread"], rows)


KSP = (  # the records, the row's words and peer, whether README has it
    (lambda r: r["pc"] == "jacobi" and not re.match("lap7|st27|conv", r["matrix"]), "`gpucg` with Jacobi, variable coefficients, half a million to two million unknowns", "`KSPCG`, `aijcusparse`", True),
    (lambda r: r["pc"] == "jacobi" and re.match("lap7|st27|conv", r["matrix"]), "`gpucg` with Jacobi, constant coefficients ([limit](stencil.md)), 8 thousand to 8 million unknowns", "`KSPCG`, `aijcusparse`", False),
    (lambda r: r["pc"] == "ilu", "`gpugmres` with ILU(0), 0.2 to 0.9 million unknowns", "`KSPGMRES`, `aijcusparse`", True),
)


def ksp(page, records):
    every = medians(records["ksp"], lambda r: (r["pc"], r["matrix"], "gpucsr" in r["mat_type"]), ["solve_us", "setup_us", "first_us", "iteration_us"])
    rows, copy = [], [1e3 * r["copy_gbs"] for r in records["run"]]
    for wanted, what, peer, readme in KSP:
        first, later, share = {}, {}, {}
        for (pc, matrix, mine), g in every.items():
            p = every.get((pc, matrix, False))
            if not mine or not wanted(g["r"]):
                continue
            r, constant = g["r"], "constant" in what
            if copy and pc == "jacobi" and r["rows"] >= 1e5:
                share[matrix] = (80 * r["rows"] + (0 if constant else 12 * r["nnz"] + 12 * r["rows"])) / g["iteration_us"] / statistics.median(copy)
            if p:
                first[matrix], later[matrix] = (p["setup_us"] + p["first_us"]) / (g["setup_us"] + g["first_us"]), p["solve_us"] / g["solve_us"]
            for m in filter(None, (g, p)):
                rows.append([matrix, f"{m['r']['ksp']}, {pc}, {'gpucsr' if m is g else 'aijcusparse'}", m["r"]["rows"], m["r"]["iterations"]] + [number(1e-3 * m[k]) for k in ("setup_us", "first_us", "solve_us")] + [number(m["iteration_us"]), f"{m['r']['residual']:.0e}", number(m["spread"], 2)])
        page.share("with constant coefficients, ten vectors, which is what a code of the stencil moves:" if "constant" in what else "iterations of `gpucg` with Jacobi, CSR, the diagonal and ten vectors:", share)
        page.row(f"{what}, upload and first solve; a later solve", peer, first, later, readme=readme)
    page.section("Krylov methods", "Milliseconds: upload and first product, first solve, later solve; microseconds an iteration; true relative residual.", ["system", "by", "unknowns", "iterations", "set-up", "first", "solve", "an iteration", "residual", "spread"], rows)


PEERS = {"amgx": "AmgX", "hypre": "hypre", "amgcl": "AMGCL", "ginkgo": "Ginkgo"}


def together(words):
    return ", ".join(words[:-1]) + " and " * (len(words) > 1) + words[-1] if words else ""


def who(r):
    single = ", single" if r["id"].endswith(" single") else ""
    if "setting" in r:
        return PEERS[r["mat_type"]] + ", " + r["setting"]
    return f"{'gpucsr' if 'gpucsr' in r['mat_type'] else r['mat_type'].replace('seq', '')}, {r['ksp']}, {r['pc']}{single}"


def amg(page, records):
    for r in records["amg"]:
        r["total_ms"] = r["setup_ms"] + r["first_ms"]
    large = [r for r in records["amg"] if r["id"].endswith(" large")]
    usual = [r for r in records["amg"] if not r["id"].endswith(" large")]
    turn = {(r["matrix"], who(r)) for r in usual if not r.get("sweep")}
    every = medians([r for r in usual if not r.get("sweep") or (r["matrix"], who(r)) not in turn], lambda r: (r["matrix"], who(r)), ["total_ms", "upload_ms", "setup_ms", "first_ms", "solve_ms", "again_ms"])
    rows, total, later = [], {}, {}
    for matrix in dict.fromkeys(m for m, _ in every):
        here = {w: g for (m, w), g in every.items() if m == matrix}
        peers = {w: g for w, g in here.items() if not w.startswith("gpucsr") and g["r"].get("solved", True)}
        mine = here.get("gpucsr, gpucg, gpuamg")
        best = [min(peers, key=lambda w: peers[w][k]) for k in ("total_ms", "solve_ms")] if peers else []
        if mine and best:
            total[matrix], later[matrix] = peers[best[0]]["total_ms"] / mine["total_ms"], peers[best[1]]["solve_ms"] / mine["solve_ms"]
        for w, g in here.items():
            if w.startswith(("gpucsr", "aij")) or w in best:
                rows.append([matrix, w] + [number(g.get(k)) for k in ("upload_ms", "setup_ms", "first_ms", "total_ms", "solve_ms", "again_ms")] + [g["r"]["iterations"], f"{g['r']['residual']:.0e}", number(g["spread"], 2)])
    named = [k for k in PEERS if any(r["mat_type"] == k for r in usual)]
    classical = any(r["mat_type"] == "amgx" and r["setting"].startswith("PMIS") and r.get("solved", True) for r in usual)
    peers = [PEERS[k] + " by aggregation" * (k == "amgx" and not classical) for k in named] + ["`aijcusparse` with GAMG"] * any("aijcusparse" in r["mat_type"] for r in usual)
    page.row("multigrid (`gpucg`, `gpuamg`), 0.3 to 2 million unknowns, set-up and first solve; a later solve", "the best of " * (len(peers) > 1) + together(peers), total, later, readme=True)
    page.section("Multigrid", "CG to 1e-8 of the unpreconditioned norm. Milliseconds: upload with the first product (which the peers' drivers do not time, and no ratio holds), set-up, first solve, these two, later solve, set-up with new values." + f" Of {together([PEERS[k] for k in named])} the best of all settings of their drivers, with set-up and for later solves." * bool(named),
                 ["system", "by", "upload", "set-up", "first", "both", "solve", "new values", "iterations", "residual", "spread"], rows)
    copy = [r["copy_gbs"] for r in records["run"]]
    if not copy:
        return
    rows = []
    for matrix, g in medians(large, lambda r: r["matrix"], ["setup_ms", "again_ms", "first_ms", "solve_ms"]).items():
        r, ten = g["r"], 10 * 2 * 1e-6 * (12 * g["r"]["nnz"] + 4 * g["r"]["rows"]) / statistics.median(copy)
        rows.append([matrix, r["rows"], r["nnz"], number(g["setup_ms"]), number(g["again_ms"]), number(ten), number(g["setup_ms"] / ten), number(g["again_ms"] / ten), number(g["first_ms"]), number(g["solve_ms"]), r["iterations"], number(g["spread"], 2)])
    page.section("Large systems", "`gpuamg`, milliseconds. *ten copies*: the time in which the device copies the matrix ten times.", ["system", "unknowns", "entries", "set-up", "new values", "ten copies", "set-up over it", "new values over it", "first", "solve", "iterations", "spread"], rows)


def programs(page, records):
    every = medians(records["program"], lambda r: (r["program"], r["who"]), ["seconds"])
    rows = []
    for program in dict.fromkeys(p for p, _ in every):
        mine, peer = every.get((program, "gpucsr")), next(((w, g) for (p, w), g in every.items() if p == program and w != "gpucsr"), None)
        if mine and peer:
            page.row(f"`{program}`, the whole process with loading and start of CUDA", f"the same program, {peer[0].replace('aij, ', '')} of `MATAIJ`", {program: peer[1]["seconds"] / mine["seconds"]}, readme=True)
            rows.append([f"`{program}`", number(mine["seconds"]), number(mine["spread"], 2), f"{peer[0]}: {number(peer[1]['seconds'])}", number(peer[1]["spread"], 2)])
    page.section("Whole programs", "Seconds of the whole process, by the wall clock.", ["program", "gpucsr, a process", "spread", "peer", "spread"], rows)


def learning(page, records):
    found = learn.medians(records["learn"])
    ranks, liblinear, rows = {}, {}, []
    for key in filter(lambda k: k[2], found):
        (t, noise), name, c = learn.times(found, key), " ".join(key), found[key]
        if t.get("gpu") and t.get("ranks"):
            ranks[name] = t["ranks"] / t["gpu"]
        if t.get("gpu") and (t.get("liblinear") or 0) >= noise > 0:
            liblinear[name] = t["liblinear"] / t["gpu"]
        rows.append([name, next(iter(c.values()))["entries"]] + [number(t.get(w)) for w in ("gpu", "ranks", "liblinear")] + [number(r[name]) if name in r else "" for r in (ranks, liblinear)])
    entries = [r["entries"] for r in records["learn"]] or [0]
    page.row(f"learning linear models, {len({r['set'] for r in records['learn']})} sets of {power(min(entries))} to {power(max(entries))} entries, three losses", "the same program on 16 cores; LIBLINEAR on one, where reading does not hide its time", ranks, liblinear, readme=True)
    page.section("Learning", "Seconds, without start, loading and set-up; of LIBLINEAR the processor's, without reading.", ["set, loss, lambda", "entries", "gpucsr", "16 ranks", "LIBLINEAR", "ratio", "ratio"], rows)


def vectors(page, records):
    every = medians(records["vec"], lambda r: (r["op"], r["n"], r["vec_type"].replace("seq", "")), ["us"])
    types = sorted({t for _, _, t in every}, reverse=True)
    page.section("Vector operations", "Microseconds.", ["operation", "entries"] + types, [[op, n] + [number(every[op, n, t]["us"]) if (op, n, t) in every else "" for t in types] for op, n in dict.fromkeys((op, n) for op, n, _ in every)])


def make(records):
    page, rs = Page(), records["reference"]
    ids = sorted({r["id"].split(" ")[0] for r in records["call"] + records["learn"]})
    if len(ids) > 1:
        print(f"table.py: records of several versions: {', '.join(ids)}", file=sys.stderr)
    for part in (products, ksp, amg, programs, learning, vectors):
        part(page, records)
    usual = statistics.median(r["iteration_us"] for r in rs) if rs else 0
    off = sorted({r["call"] for r in rs if abs(r["iteration_us"] / usual - 1) > OFF})
    if off:
        print(f"table.py: the reference row is off by more than {OFF:.0%} in {', '.join(off)}: measure these calls again", file=sys.stderr)
    call, run = max(records["call"], key=lambda c: len(c.get("peers", "")), default={}), records["run"][-1] if records["run"] else {}
    petsc = next((r["petsc"] for r in records["ksp"] + records["amg"] + records["run"] if "petsc" in r), "").split(",")[0].replace("Petsc Release Version ", "PETSc ")
    gpu = (call.get("gpu", "none") + ",,,").split(",")
    counts = [r["rounds"] for r in records["call"]] or [0]
    rounds = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(counts[0])
    intro = ["# README's table", "", f"The library and its peers in turn, in one build of {petsc} at {', '.join(ids)}: medians of {rounds} rounds in turn with the peer's, of several timings each; a round of products is a part of one process, any other a process. {gpu[0]}, driver {gpu[1].strip()}, clocks up to {gpu[2].strip()} MHz, memory {gpu[3].strip()} MHz; "
             f"CUDA {run.get('cuda', 0) // 1000}.{run.get('cuda', 0) % 1000 // 10}; device copy {number(run.get('copy_gbs', 0))} GB/s; host {call.get('cpu', '')}, {call.get('cores', '')} cores; {call.get('peers') or 'no AmgX, no hypre'}. Record: [table.jsonl.xz](table.jsonl.xz). A figure is the geometric mean of ratios, each the peer's median over that of the library.", "",
             "```", "src/benchmarks/table.sh -build BUILD -peers FOLDER        on a GPU; parts of it by -part", "src/benchmarks/tables/table.py -write bench-results/table.jsonl", "src/benchmarks/tables/table.py                           prints all tables of the record, a matrix or system a row", "```", ""]
    intro += [r["text"] for r in records["note"]] + [""] * bool(records["note"])
    if rs:
        intro += [f"The reference row, an iteration of `gpucg` on {rs[0]['matrix']}, took {number(min(r['iteration_us'] for r in rs))} to {number(max(r['iteration_us'] for r in rs))} µs over {len({r['call'] for r in rs})} calls.", ""]
    intro = [w for line in intro for w in (textwrap.wrap(line, 160) if len(line) > 200 else [line])]
    shares = [""] + textwrap.wrap("Bytes over time, of the device copy's rate, which caches and smaller formats exceed. " + "; ".join(page.shares) + ".", 160) if page.shares else []
    below = [""] + textwrap.wrap("A peer is faster in " + ". In ".join(page.below) + ".", 160) if page.below else []
    return page.readme, intro + HEAD + page.all + shares + below, page.lines


def readme_rows(lines):
    """Begin and end of the rows of README's table"""
    begin = lines.index(HEAD[0]) + 2
    return begin, next(k for k in range(begin, len(lines) + 1) if k == len(lines) or not lines[k].startswith("|"))


def main():
    p = argparse.ArgumentParser(description="The table of README and docs/results/table.md", prefix_chars="-")
    p.add_argument("-write", action="store_true")
    p.add_argument("-check", action="store_true")
    p.add_argument("-root", default=ROOT)
    p.add_argument("files", nargs="*", metavar="FILE.jsonl")
    o = p.parse_args()
    kept, readme, page = (os.path.join(o.root, f) for f in (KEPT, "README.md", "docs/results/table.md"))
    files = o.files or [kept]
    rows, lines, parts = make(read(files))
    if not o.write and not o.check:
        print("\n".join(lines + [""] + parts))
        return 0
    with open(readme) as f:
        text = f.read().split("\n")
    begin, end = readme_rows(text)
    linked = [r for r in text[begin:end] if "](docs/results/" in r and not (r.startswith("| learning") and any(n.startswith("| learning") for n in rows))]
    if o.write:
        with open(readme, "w") as f:
            f.write("\n".join(text[:begin] + rows + linked + text[end:]))
        with open(page, "w") as f:
            f.write("\n".join(lines).rstrip("\n") + "\n")
        texts = []
        for name in files:
            with (lzma.open if name.endswith(".xz") else open)(name, "rt") as f:
                texts.append(f.read())
        with lzma.open(kept, "wt") as f:  # perhaps one of the files
            f.writelines(texts)
        return 0
    with open(page) as f:
        have = f.read().rstrip("\n").split("\n")
    want = "\n".join(lines).rstrip("\n").split("\n")
    wrong = [f"README.md lacks: {r}" for r in rows if r not in text[begin:end]] + [f"README.md: neither in the record nor with a link to a page: {r}" for r in text[begin:end] if r not in rows + linked]
    wrong += [f"docs/results/table.md, line {k + 1}: not as the record has it: {b}" for k, (a, b) in enumerate(zip(want + [""] * len(have), have)) if a != b][:10] + [f"docs/results/table.md lacks: {a}" for a in want[len(have):][:10]]
    print("\n".join(wrong), end="\n" if wrong else "")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
