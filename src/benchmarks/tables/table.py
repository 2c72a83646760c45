#!/usr/bin/env python3
"""
The table of README and docs/results/table.md from what table.sh measured.

    table.py [FILE.jsonl[.xz] ...]            prints the page and a table of each part; without a file of docs/results/table.jsonl.xz
    table.py -write FILE ...                  writes that record, the page and README's rows
    table.py -check [FILE ...]                fails if README, the page, or docs/results/gamg.md (table, and figures of all systems) say anything else than the record

A figure is the median of the rounds; a ratio is the peer's median over that of the library. A row of README that is not of this record links to its page.
"""
import argparse, json, lzma, math, os, re, statistics, sys, textwrap
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "learning"))
import learn

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
KEPT = "docs/results/table.jsonl.xz"
HEAD = ["| | peer | faster by |", "|---|---|---|"]
PAGE = ["| | peer | faster by | spread |", "|---|---|---|---|"]
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
    """key(r): {field: median of the rounds, "r": the last record, "all": of them, "n": how many, "spreads": a field's most less least over the median, "spread": that of the first field}"""
    groups, out = defaultdict(list), {}
    for r in records:
        groups[key(r)].append(r)
    for k, rs in groups.items():
        every = {f: v for f in fields if (v := [r[f] for r in rs if r.get(f) is not None])}
        out[k] = {f: statistics.median(v) for f, v in every.items()}
        spreads = {f: (max(v) - min(v)) / statistics.median(v) for f, v in every.items() if len(v) > 1 and any(v)}
        out[k].update(r=rs[-1], all=rs, n=len(rs), spreads=spreads, spread=spreads.get(fields[0]))
    return out


def solved(r):
    """Has it converged? For multigrid as peers/peer.h asks of the peers, by the true residual"""
    return r.get("solved", r["residual"] <= 1.1e-8) if r["record"] == "amg" else r.get("reason", "CONVERGED").startswith("CONVERGED")


class Figure:
    """A figure of a row: ratios by name, and the spreads of both sides' times"""
    def __init__(self):
        self.ratios, self.spreads = {}, []

    def add(self, name, peer, mine, *spreads):
        self.ratios[name] = peer / mine
        self.spreads += [s for s in spreads if s is not None]

    def text(self, row, brief=False):
        least = min(self.ratios, key=self.ratios.get)
        return number(geomean(self.ratios.values())) + (f" ({'' if brief else 'least '}{number(self.ratios[least])}{'' if brief else ','} {least})" if len(self.ratios) > 1 else "" if least in row else f" ({least} alone)")


class Page:
    def __init__(self):
        self.readme, self.all, self.lines, self.below, self.shares, self.notes, self.unsolved, self.gamg, self.says = [], [], [], [], [], [], [], [], []

    def row(self, what, peer, *figures, readme=False, short=None):
        """A row of README, and of the page with fewer words and the spreads. The least is said, as well as the mean"""
        if not all(f.ratios for f in figures):
            return
        for k, f in enumerate(figures, 1):
            slower = "; ".join(f"{n} {number(v)}" for n, v in sorted(f.ratios.items(), key=lambda v: v[1]) if v < 1)
            self.below += [f"row {len(self.all) + 1}, figure {k}: {slower}"] if slower else []
        spreads = "; ".join(f"{number(statistics.median(f.spreads), 2)}, {number(max(f.spreads), 2)}" for f in figures if f.spreads)
        self.all.append(f"| {' | '.join(short or (what, peer))} | {'; '.join(f.text(what, True) for f in figures)} | {spreads} |")
        self.readme += [f"| {what} | {peer} | {'; '.join(f.text(what) for f in figures)} |"] if readme else []

    def share(self, what, r):
        """r: {name: share of the copy's rate}"""
        if r:
            least = min(r, key=r.get)
            self.shares.append(f"{what} {number(geomean(r.values()), 2)} (least {number(r[least], 2)}, {least})")

    def section(self, title, text, head, rows):
        if rows:
            self.lines += [f"## {title}", "", text, ""] + table(head, rows)


def products(page, records):
    latest = {(r["matrix"], r["side"]): r for r in records["product"] if r["precision"] == "double"}
    for large in (True, False):
        rows, figures = [], []
        chosen = [r for r in latest.values() if (r["nnz"] >= LARGE) == large]
        entries = [r["nnz"] for r in chosen] or [0]
        count = len({r["matrix"] for r in chosen})
        made = len({r["matrix"] for r in chosen if r.get("class") == "synthetic"})
        size = f"{count} matrices{f', {made} of them generated,' if made else ''} of {power(min(entries))} to {power(max(entries))} entries" if large else f"{count} matrices of at most {power(max(entries))} entries, where a launch takes longer than a product"
        for side, name in (("N", "A x"), ("T", "Aᵀ x")):
            seen, cold, gpu = Figure(), Figure(), Figure()
            for r in sorted((r for r in chosen if r["side"] == side), key=lambda r: r["nnz"]):
                if r.get("peer_us"):
                    gpu.add(r["matrix"], r["peer_us"], r["chosen_us"], r.get("chosen_spread"), r.get("peer_spread"))
                for f, us in ((seen, "us"), (cold, "cold_us")):
                    ways = [k for k in ("aijcusparse_", "aijcusparse_explicit_") if r.get(k + us)]
                    if ways:
                        best = min(ways, key=lambda k: r[k + us])
                        f.add(r["matrix"], r[best + us], r["gpucsr_" + us], *[r.get(k + "spread") for k in ("gpucsr_", best) if f is seen])
                rows.append([r["matrix"], name, r["nnz"]] + [number(r.get(k)) for k in ("gpucsr_us", "aijcusparse_us", "aijcusparse_explicit_us")] + [number(seen.ratios.get(r["matrix"])), number(cold.ratios.get(r["matrix"])), number(r["chosen_us"]), number(r.get("peer_us")), number(gpu.ratios.get(r["matrix"]), 3), number(r["fraction"], 2), number(r.get("gpucsr_spread"), 2)])
            figures.append((seen, cold, gpu))
        fit = figures[0][1].ratios
        explicit = all(any(k.startswith("cusparse_explicit") for k in r.get("us", ())) for r in chosen if r["side"] == "T")
        words = (("the better with and without `-mat_form_explicit_transpose`", f"products A x; Aᵀ x, {size}"), ("the same", "the same, with cold caches where a matrix fits the cache" + (f": {len(fit)} of these" if len(fit) > 1 else "")), ("with and without an explicit transpose" if explicit else "its transposed product", "the same, time of the GPU alone"))
        for k, (peer, what) in enumerate(words):
            page.row(what, ("the best of cuSPARSE's algorithms; " if k == 2 else "`aijcusparse`; " if k == 0 else "") + peer, figures[0][k], figures[1][k], readme=large and k == 0, short=(what.replace("products ", "").replace("where a launch takes longer than a product", "launch latency"), "`aijcusparse`; the better way") if k == 0 else None)
        if large:
            for name, rs in (("A x, CSR and two vectors:", "N"), ("Aᵀ x, the same:", "T")):
                page.share(name, {r["matrix"]: r["fraction"] for r in latest.values() if r["side"] == rs and r["nnz"] >= LARGE})
        text = ("Microseconds: a product as a program sees it, by the host's clock over successive calls (gpucsr, `aijcusparse`, the same with `-mat_form_explicit_transpose`); then the GPU's time of the chosen kernel and of cuSPARSE's best. "
                "*copy*: bytes of CSR and vectors over the chosen kernel's time, of the rate of a device copy. *spread*: most less least of the rounds, over the median. *cold*: the ratio where copies of the matrix take turns that together exceed the last-level cache three times; it is missing where one matrix does, and where 32 copies are too few.")
        page.section(f"Products, {size}", text, ["matrix", "", "entries", "gpucsr", "aijcusparse", "explicit", "ratio", "cold", "GPU", "cuSPARSE", "ratio", "copy", "spread"], rows)


def constant(r):
    return bool(re.match("lap7|st27|conv", r["matrix"]))


KSP = (  # the records, the row's words and peer, whether README has it
    (lambda r: r["pc"] == "jacobi" and not constant(r), "`gpucg` with Jacobi, variable coefficients, half a million to two million unknowns", "`KSPCG`, `aijcusparse`", True),
    (lambda r: r["pc"] == "jacobi" and constant(r), "`gpucg` with Jacobi, constant coefficients ([limit](stencil.md)), 0.008 to 8 million unknowns", "`KSPCG`, `aijcusparse`", False),
    (lambda r: r["pc"] == "ilu" and not constant(r), "`gpugmres` with ILU(0), variable coefficients, 0.2 to 0.9 million unknowns", "`KSPGMRES`, `aijcusparse`", True),
    (lambda r: r["pc"] == "ilu" and constant(r), "`gpugmres` with ILU(0), constant coefficients, 0.9 million unknowns", "`KSPGMRES`, `aijcusparse`", False),
)


def iteration_bytes(r):
    """Of Jacobi CG ten vectors, the diagonal and CSR; of ILU GMRES CSR of A and of both factors, ten vectors, and twice the basis of its iterations in the mean. None: the record does not say the restart"""
    if r["pc"] == "jacobi":
        return 80 * r["rows"] + (0 if constant(r) else 12 * r["nnz"] + 12 * r["rows"])
    if not r.get("restart") or not r["iterations"]:
        return None
    basis = statistics.mean(k % r["restart"] + 1 for k in range(r["iterations"]))
    return 24 * r["nnz"] + 12 * r["rows"] + 8 * (10 + 2 * basis) * r["rows"]


def ksp(page, records):
    every = medians(records["ksp"], lambda r: (r["pc"], r["matrix"], "gpucsr" in r["mat_type"]), ["solve_us", "setup_us", "first_us", "total_us", "iteration_us"])
    rows, copy = [], [1e3 * r["copy_gbs"] for r in records["run"]]
    for wanted, what, peer, readme in KSP:
        first, later, share = Figure(), Figure(), {}
        for (pc, matrix, mine), g in every.items():
            p = every.get((pc, matrix, False))
            if not mine or not wanted(g["r"]):
                continue
            r = g["r"]
            moved = iteration_bytes(r) if copy and r["rows"] >= 1e5 else None
            if moved:
                share[matrix] = moved / g["iteration_us"] / statistics.median(copy)
            if p and all(map(solved, g["all"] + p["all"])):
                first.add(matrix, p["setup_us"] + p["first_us"], g["setup_us"] + g["first_us"], *[m["spreads"].get("total_us") for m in (g, p)])
                later.add(matrix, p["solve_us"], g["solve_us"], g["spread"], p["spread"])
            elif p:
                page.unsolved.append(f"{matrix}, {pc}")
            for m in filter(None, (g, p)):
                rows.append([matrix, f"{m['r']['ksp']}, {pc}, {'gpucsr' if m is g else 'aijcusparse'}", m["r"]["rows"], m["r"]["iterations"]] + [number(1e-3 * m[k]) for k in ("setup_us", "first_us", "solve_us")] + [number(m["iteration_us"]), f"{m['r']['residual']:.0e}", number(m["spread"], 2)])
        same = "constant" in what
        if "Jacobi" in what:
            page.share("with constant coefficients, ten vectors, which is what a code of the stencil moves:" if same else "iterations of `gpucg` with Jacobi, CSR, the diagonal and ten vectors:", share)
        else:
            page.share("`gpugmres` with ILU(0) and constant coefficients, the same:" if same else "iterations of `gpugmres` with ILU(0), CSR of A and of the factors, ten vectors and twice the basis, by the restart in the mean:", share)
        page.row(f"{what}, upload and first solve; a later solve", peer, first, later, readme=readme, short=(what.replace("half a million to two million", "0.5 to 2 million").replace(" with ", ", ").replace(" unknowns", "") + "; later", peer))
    page.section("Krylov methods", "Milliseconds: upload and first product, first solve, later solve; microseconds an iteration; true relative residual.", ["system", "by", "unknowns", "iterations", "set-up", "first", "solve", "an iteration", "residual", "spread"], rows)


PEERS = {"amgx": "AmgX", "hypre": "hypre", "amgcl": "AMGCL", "ginkgo": "Ginkgo"}


def together(words):
    return ", ".join(words[:-1]) + " and " * (len(words) > 1) + words[-1] if words else ""


def who(r):
    single = ", single" if r["id"].endswith(" single") else ""
    if "setting" in r:
        return PEERS[r["mat_type"]] + ", " + r["setting"]
    return f"{'gpucsr' if 'gpucsr' in r['mat_type'] else r['mat_type'].replace('seq', '')}, {r['ksp']}, {r['pc']}{single}"


def multigrid_says(every, best):
    """Phrases of docs/results/gamg.md with figures of all systems: every[matrix][who], best[matrix][peer][column]"""
    mine = {m: here.get("gpucsr, gpucg, gpuamg") for m, here in every.items()}
    if not mine or not all(mine.values()):
        return []
    figures = lambda f, digits: [f"{f(m, g):.{digits}f}" for m, g in mine.items()]
    says = [", ".join(figures(lambda m, g: g["first_ms"] / g["solve_ms"], 2)) + "; PETSc"]
    if all("hypre" in b for b in best.values()):
        says += ["`gpuamg` is " + together(figures(lambda m, g: best[m]["hypre"]["total_ms"] / g["total_ms"], 2)) + " times as fast",
                 "Later solves are " + together(figures(lambda m, g: best[m]["hypre"]["solve_ms"] / g["solve_ms"], 1)) + " times as fast as hypre's best",
                 "| set-up and first solve at most half of the best peer | " + ", ".join(figures(lambda m, g: g["total_ms"] / min(b["total_ms"] for b in best[m].values()), 2)) + " |"]
    if all("AmgX" in b for b in best.values()):
        says += ["AmgX takes " + together([number(best[m]["AmgX"]["total_ms"]) for m in mine]) + " ms for both"]
    if all("aijcusparse" in b for b in best.values()):
        says += ["and " + together(figures(lambda m, g: best[m]["aijcusparse"]["solve_ms"] / g["solve_ms"], 1)) + " times as fast as GAMG's on `aijcusparse`"]
    here = every.get("lognormal7_128", {})
    if all("gpucsr, gpucg, jacobi" in e for e in every.values()):
        iterations = lambda ms: together(figures(lambda m, g: sum(g[k] for k in ms) / statistics.median(r["solve_ms"] / r["iterations"] for r in every[m]["gpucsr, gpucg, jacobi"]["all"]), 0))
        says += [f"the time of {iterations(('setup_ms', 'first_ms'))} of Jacobi's iterations, a later solve of {iterations(('solve_ms',))},"]
    if "gpucsr, gpucg, jacobi" in here:
        upload = here["gpucsr, gpucg, jacobi"]["again_ms"]
        says += [f"besides their upload ({upload:.1f}, Jacobi's new values) | {here['gpucsr, gpucg, gpuamg']['again_ms'] - upload:.1f}; with old prolongators {here['gpucsr, gpucg, gpuamg']['kept_ms'] - upload:.1f} |"]
    return says


def amg(page, records):
    for r in records["amg"]:
        r["total_ms"] = r["setup_ms"] + r["first_ms"]
    large = [r for r in records["amg"] if r["id"].endswith(" large")]
    usual = [r for r in records["amg"] if not r["id"].endswith(" large")]
    turn = {(r["matrix"], who(r)) for r in usual if not r.get("sweep")}
    every = medians([r for r in usual if not r.get("sweep") or (r["matrix"], who(r)) not in turn], lambda r: (r["matrix"], who(r)), ["total_ms", "upload_ms", "setup_ms", "first_ms", "solve_ms", "again_ms", "kept_ms"])
    what = "multigrid (`gpucg`, `gpuamg`), 0.3 to 2 million unknowns"
    rows, total, later, share = [], Figure(), Figure(), {}
    copy = [r["copy_gbs"] for r in records["run"]]
    systems, bests = {}, {}
    for matrix in dict.fromkeys(m for m, _ in every):
        here = systems[matrix] = {w: g for (m, w), g in every.items() if m == matrix}
        others = {w: g for w, g in here.items() if not w.startswith("gpucsr") and any(map(solved, g["all"]))}
        mine = here.get("gpucsr, gpucg, gpuamg")
        best = [min(others, key=lambda w: others[w][k]) for k in ("total_ms", "solve_ms")] if others else []
        bests[matrix] = {name: {k: min(g[k] for w, g in others.items() if w.split(",")[0] == name) for k in ("total_ms", "solve_ms")} for name in {w.split(",")[0] for w in others}}
        if mine and not all(map(solved, mine["all"])):
            page.unsolved.append(f"{matrix}, gpuamg")
        elif mine and best:
            for f, w, k in zip((total, later), best, ("total_ms", "solve_ms")):
                f.add(matrix, others[w][k], mine[k], mine["spreads"].get(k), others[w]["spreads"].get(k))
            for name, by, g in ((matrix, "gpuamg", mine), ("", who(others[best[0]]["r"]).split(",")[0], others[best[0]])):
                page.gamg.append(" ".join(f"| {c}".rstrip() for c in [name, by] + [number(g[k]) for k in ("setup_ms", "again_ms", "first_ms", "solve_ms", "total_ms")] + [g["r"]["iterations"]]) + " |")
        if copy and mine and mine["r"].get("degree") and mine["r"]["rows"] >= 1e5:
            r = mine["r"]
            share[matrix] = 1e-6 * r["iterations"] * (12 * r["nnz"] + 84 * r["rows"] + 2 * r["degree"] * (r["complexity"] * (12 * r["nnz"] + 4 * r["rows"]) + 32 * r["rows"])) / mine["solve_ms"] / statistics.median(copy)
        for w, g in here.items():
            if w.startswith(("gpucsr", "aij")) or w in best:
                rows.append([matrix, w] + [number(g.get(k)) for k in ("upload_ms", "setup_ms", "first_ms", "total_ms", "solve_ms", "again_ms")] + [g["r"]["iterations"], f"{g['r']['residual']:.0e}", number(g["spread"], 2)])
    page.says = multigrid_says(systems, bests)
    named = [k for k in PEERS if any(r["mat_type"] == k for r in usual)]
    classical = any(r["mat_type"] == "amgx" and r["setting"].startswith("PMIS") and r.get("solved", True) for r in usual)
    peers = [PEERS[k] + " by aggregation" * (k == "amgx" and not classical) for k in named] + ["`aijcusparse` with GAMG"] * any("aijcusparse" in r["mat_type"] for r in usual)
    peers = "the best of " * (len(peers) > 1) + together(peers)
    page.row(f"{what}, set-up and first solve; a later solve", peers, total, later, readme=True, short=(what.replace(" unknowns", "") + ", uploaded; later", "the best of the peers"))
    page.notes += [f"Multigrid's peer is {peers}."] if total.ratios else []
    page.share("later solves by `gpuamg`, an iteration's CSR and ten vectors, and in its cycle twice the smoother's degree times CSR, by the operator complexity, and four vectors of the finest level:", share)
    page.section("Multigrid", "CG to 1e-8 of the unpreconditioned norm. Milliseconds: upload with the first product (which the peers' drivers do not time, and no ratio holds), set-up, first solve, these two, later solve, set-up with new values." + f" Of {together([PEERS[k] for k in named])} the best of all settings of their drivers, with set-up and for later solves." * bool(named),
                 ["system", "by", "upload", "set-up", "first", "both", "solve", "new values", "iterations", "residual", "spread"], rows)
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
            f = Figure()
            f.add(program, peer[1]["seconds"], mine["seconds"], mine["spread"], peer[1]["spread"])
            page.row(f"`{program}` (CG with Jacobi), the whole process with loading and start of CUDA", f"the same program, {peer[0].replace('aij, ', '')} of `MATAIJ`", f, readme=True)
            rows.append([f"`{program}`", number(mine["seconds"]), number(mine["spread"], 2), f"{peer[0]}: {number(peer[1]['seconds'])}", number(peer[1]["spread"], 2)])
    page.section("Whole programs", "Seconds of the whole process, by the wall clock.", ["program", "gpucsr, a process", "spread", "peer", "spread"], rows)


def learning(page, records):
    found = learn.medians(records["learn"])
    entries = [r["entries"] for r in records["learn"]] or [0]
    what = f"learning linear models, {len({r['set'] for r in records['learn']})} sets of {power(min(entries))} to {power(max(entries))} entries, three losses"
    ranks, liblinear, rows, share, hidden = Figure(), Figure(), [], {}, []
    copy = [1e9 * r["copy_gbs"] for r in records["run"]]
    spread = lambda r: (r["most"] - r["least"]) / r["seconds"]
    for key in filter(lambda k: k[2], found):
        (t, noise), name, c = learn.times(found, key), " ".join(key), found[key]
        if not all(c[w].get("converged", True) for w in ("gpu", "ranks") if w in c):
            page.unsolved.append(name)
            continue
        if t.get("gpu") and t.get("ranks"):
            ranks.add(name, t["ranks"], t["gpu"], spread(c["gpu"]), spread(c["ranks"]))
        if t.get("gpu") and (t.get("liblinear") or 0) > noise:
            liblinear.add(name, t["liblinear"], t["gpu"], spread(c["gpu"]), (c["liblinear"]["most"] - c["liblinear"]["least"] + 2 * noise) / t["liblinear"])
        elif t.get("gpu") and t.get("liblinear") is not None:
            hidden.append(f"{name} (less than {number(noise / t['gpu'])} times the library's)")
        gpu = c.get("gpu", {})
        if copy and gpu.get("rows") and t.get("gpu"):
            share[name] = gpu["products"] * (12 * gpu["entries"] + 12 * gpu["rows"] + 8 * gpu["columns"]) / t["gpu"] / statistics.median(copy)
        rows.append([name, next(iter(c.values()))["entries"]] + [number(t.get(w)) for w in ("gpu", "ranks", "liblinear")] + [number(f.ratios[name]) if name in f.ratios else "" for f in (ranks, liblinear)])
    fewest = min((found[k]["liblinear"]["rounds"] for k in found if found[k].get("liblinear", {}).get("seconds") is not None), default=0)
    if 0 < fewest < max((r["rounds"] for r in records["call"]), default=0):
        page.notes.append(f"LIBLINEAR had time for {fewest} rounds.")
    if hidden:
        page.notes.append(f"Reading hides LIBLINEAR's time for {', '.join(hidden)}.")
    page.row(what, "the same program on 16 cores; LIBLINEAR on one, but for runs shorter than its reading", ranks, liblinear, readme=True, short=(what.replace(" linear models", "").replace(", three losses", ""), f"16 cores; LIBLINEAR on one, {len(liblinear.ratios)} of {len(ranks.ratios)}"))
    page.share("learning, CSR and both vectors for the two products of an evaluation, over all of its time:", share)
    page.section("Learning", "Seconds, without start, loading and set-up; of LIBLINEAR the processor's, without reading. `bmrm` ends with a gap of 1e-4 of the objective, LIBLINEAR with its own tolerance.", ["set, loss, lambda", "entries", "gpucsr", "16 ranks", "LIBLINEAR", "ratio", "ratio"], rows)


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
    petsc = next((r["petsc"] for r in records["ksp"] + records["amg"] + records["run"] if "petsc" in r), "").split(",")[0].lower().replace("petsc release version ", "PETSc ")
    gpu = (call.get("gpu", "none") + ",,,").split(",")
    counts = [r["rounds"] for r in records["call"]] or [0]
    rounds = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(counts[0])
    dates = sorted({f"{c['call'][:4]}-{c['call'][4:6]}-{c['call'][6:8]}" for c in records["call"] if len(c["call"]) > 8})
    versions = sorted({r["version"] for r in records["learn"] if "version" in r})
    others = ", ".join(filter(None, [", ".join(dict.fromkeys(p for c in records["call"] for p in filter(None, c.get("peers", "").split(", ")))) or "no AmgX, no hypre", "LIBLINEAR " + ", ".join(versions) if versions else "LIBLINEAR of a version that the record does not hold" if any(r["who"] == "liblinear" for r in records["learn"]) else ""]))
    intro = ["# README's table", "", f"The library and its peers in turn, in one build of {petsc} at {', '.join(ids)}, {' to '.join(dict.fromkeys((dates or ['undated'])[::max(1, len(dates) - 1)]))}: medians of {rounds} rounds in turn with the peer's, of several timings each; a round of products is a part of one process, any other a process. {gpu[0]}, driver {gpu[1].strip()}, clocks up to {gpu[2].strip()} MHz, memory {gpu[3].strip()} MHz; "
             f"CUDA {run.get('cuda', 0) // 1000}.{run.get('cuda', 0) % 1000 // 10}; device copy {number(run.get('copy_gbs', 0))} GB/s; host {call.get('cpu', '')}, {call.get('cores', '')} cores; {others}. Record: [table.jsonl.xz](table.jsonl.xz).", "",
             "A figure is the geometric mean of ratios, each the peer's median over that of the library, with the least in brackets. A spread is the range of the rounds over their median; the column has the median and the largest of both sides for each figure. The time of a product excludes the matrix' [set-up](setup.md). "
             "The better way for Aᵀ x is with or without `-mat_form_explicit_transpose`. Solves: upload and first solve, for multigrid set-up and first solve; then a later solve.", "",
             "```", "src/benchmarks/table.sh -build BUILD -peers FOLDER        on a GPU; parts of it by -part", "src/benchmarks/tables/table.py -write bench-results/table.jsonl", "src/benchmarks/tables/table.py                           prints all tables of the record, a matrix or system a row", "```", ""]
    intro += [r["text"] for r in records["note"]] + [""] * bool(records["note"])
    if rs:
        intro += [f"The reference row, an iteration of `gpucg` on {rs[0]['matrix']}, took {number(min(r['iteration_us'] for r in rs))} to {number(max(r['iteration_us'] for r in rs))} µs over {len({r['call'] for r in rs})} calls.", ""]
    said = []
    if page.shares:
        said += ["", "Bytes over time, of the device copy's rate, which caches and smaller formats exceed. " + "; ".join(page.shares) + "."]
    if page.below:
        said += ["", "A peer is faster in " + ". In ".join(page.below) + "."]
    if page.notes:
        said += ["", " ".join(page.notes)]
    if page.unsolved:
        said += ["", "Not solved, and in no ratio: " + "; ".join(page.unsolved) + "."]
        print(f"table.py: {said[-1]}", file=sys.stderr)
    wrap = lambda lines: [w for line in lines for w in (textwrap.wrap(line, 160, break_on_hyphens=False) if len(line) > 200 else [line])]
    return page.readme, wrap(intro) + PAGE + page.all + wrap(said), page.lines, page.gamg, page.says, ids


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
    rows, lines, parts, multigrid, says, ids = make(read(files))
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
    wrong += [f"docs/results/table.md, line {k}: has {len(line)} characters, of at most 200" for k, line in enumerate(have, 1) if len(line) > 200]
    wrong += [f"README.md says one commit, the record has {', '.join(ids)}"] * (len(ids) > 1)
    gamg = os.path.join(o.root, "docs/results/gamg.md")
    if os.path.exists(gamg):
        with open(gamg) as f:
            have = f.read().split("\n")
        text = " ".join(" ".join(have).split())
        wrong += [f"docs/results/gamg.md lacks: {r}" for r in multigrid if r not in have] + [f"docs/results/gamg.md should say: {s}" for s in says if s not in text]
    print("\n".join(wrong), end="\n" if wrong else "")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
