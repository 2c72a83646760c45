#!/usr/bin/env python3
"""
Runs examples/bmrm over data sets and matrix types, and writes the tables. See bmrm.sh for the options.

    bmrm.py -page FILE.jsonl ... [-out FOLDER] [-name NAME]     the page alone, from lines of earlier runs

Each line of bmrm.jsonl is what `bmrm -json` writes (its head comment), with the configuration, the wall time of the whole program, and of gpucsr the lines of
-mat_gpucsr_report.
"""
import argparse, datetime, glob, json, os, re, shutil, subprocess, sys, tempfile, time
from collections import defaultdict

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SHIPPED = os.path.join(ROOT, "share", "datasets", "learning", "*.svm.*z")
SMALLEST_FIRST = "shipped,adult9,web8,real-sim,aut-avn,astro-ph,covertype,news20,kdd99,reuters-c11,reuters-ccat"
LAMBDA, EPSILON = "1e-5", "1e-4"

OURS = "-tao_type gpubmrm"


class Configuration:
    """options of bmrm; parallel: by MPI on all cores; dense: all rows times columns are stored; text: read the set as text, learn nothing; a library is loaded where one is needed"""

    def __init__(self, options, parallel=False, dense=False, text=False):
        self.options, self.parallel, self.dense, self.text = options, parallel, dense, text
        self.gpucsr, self.library = "gpucsr" in options, "gpucsr" in options or OURS in options or text


CONFIGURATIONS = {
    "aij": Configuration("-mat_type aij -tao_type bmrm"),
    "aij ranks": Configuration("-mat_type aij -tao_type bmrm", parallel=True),
    "aij gpubmrm": Configuration(f"-mat_type aij {OURS} -tao_gpubmrm_backend host"),
    "aij gpubmrm ranks": Configuration(f"-mat_type aij {OURS} -tao_gpubmrm_backend host", parallel=True),
    "gpucsr bmrm": Configuration("-mat_type gpucsr -tao_type bmrm"),
    "gpucsr double": Configuration(f"-mat_type gpucsr {OURS}"),
    "gpucsr mixed": Configuration(f"-mat_type gpucsr -mat_gpucsr_precision mixed {OURS}"),
    "gpucsr single": Configuration(f"-mat_type gpucsr -mat_gpucsr_precision single {OURS}"),
    "gpucsr double copies": Configuration(f"-mat_type gpucsr -vec_type standard {OURS}"),
    "gpucsr mixed copies": Configuration(f"-mat_type gpucsr -mat_gpucsr_precision mixed -vec_type standard {OURS}"),
    "gpucsr single copies": Configuration(f"-mat_type gpucsr -mat_gpucsr_precision single -vec_type standard {OURS}"),
    "gpucsr bitdense": Configuration(f"-mat_type gpucsr -mat_gpucsr_format bitdense -mat_gpucsr_transpose_format bitdense {OURS}", dense=True),
    "dense": Configuration(f"-mat_type dense {OURS}", dense=True),
    "aij text": Configuration("-mat_type aij -tao_type bmrm", text=True),
    "gpucsr text": Configuration(f"-mat_type gpucsr {OURS}", text=True),
}


def arguments():
    p = argparse.ArgumentParser(prefix_chars="-")
    p.add_argument("-build", default="build")
    p.add_argument("-out", default=os.environ.get("OUT", "bmrm-results"))
    p.add_argument("-sets", default=SMALLEST_FIRST)
    p.add_argument("-configurations", default=",".join(CONFIGURATIONS))
    p.add_argument("-budget", type=float, default=3600)
    p.add_argument("-limit", type=float, default=120)
    p.add_argument("-ranks", type=int, default=os.cpu_count())
    p.add_argument("-dir")
    p.add_argument("-name", default="bmrm-" + datetime.date.today().isoformat())
    p.add_argument("-long", type=float, default=2e9, help="entries times iterations that a core is given; beyond, its run is cut and its time scaled")
    p.add_argument("-dense", type=float, default=6e9, help="bytes of a dense matrix; what takes more is not tried")
    p.add_argument("-iterations", type=int, default=2000, help="beyond, a run is cut")
    p.add_argument("-page", nargs="*")
    p.add_argument("-lines", action="store_true", help="no page: lines alone")
    p.add_argument("-epsilon", default=EPSILON)
    return p.parse_args()


def launch(ranks):
    words = os.environ.get("MPIEXEC", "mpiexec --oversubscribe" + (" --allow-run-as-root" if os.getuid() == 0 else "")).split()
    return words + ["-n", str(ranks)] if ranks > 1 else []


def device():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, timeout=20).stdout.split("\n")[0] or "no GPU"
    except (OSError, subprocess.TimeoutExpired):
        return "no GPU"


def report(text):
    """Of -mat_gpucsr_report full: formats, kernels, and milliseconds by part, of the matrix learned from"""
    out, text = {}, text[text.find("MATGPUCSR report"):]
    text = text[max(text.rfind("\nMatrix "), 0):]  # the last: the first is the one entry that starts the device
    for side, key in (("A", "forward"), ("A transposed", "transpose")):
        m = re.search(rf"^  {side}: format (\S+), kernel (\S+?)[ ,]", text, re.M)
        if m:
            out[key] = {"format": m.group(1), "kernel": m.group(2)}
            m = re.compile(r"bytes (\d+).*?padding ([-\d.]+)%, products (\d+)(?:, ([\d.]+) us each, ([\d.]+) GB/s)?").search(text, m.end())
            out[key].update(bytes=float(m.group(1)), padding=float(m.group(2)), products=int(m.group(3)), microseconds=float(m.group(4) or 0), rate=float(m.group(5) or 0))
    m = re.search(r"milliseconds: (inspect .*)", text)
    if m:
        out["seconds"] = {k.strip(): float(v) / 1e3 for k, v in re.findall(r"([a-z ]+) ([\d.]+)", m.group(1))}
    m = re.search(r"sent ([\d.e+-]+) MB, brought back ([\d.e+-]+) MB", text)
    if m:
        out["sent"], out["back"] = 1e6 * float(m.group(1)), 1e6 * float(m.group(2))
    return out


class Runner:
    def __init__(self, a):
        self.a, self.end, self.lib = a, time.time() + a.budget, os.path.abspath(f"{a.build}/lib/libpetscgpucsr.so")
        self.env = dict(os.environ, OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", str(min(8, os.cpu_count()))))
        self.device = device()
        self.known = {}  # of earlier runs into the same folder: shape and iterations
        if os.path.exists(f"{a.out}/bmrm.jsonl"):
            with open(f"{a.out}/bmrm.jsonl") as f:
                for r in map(json.loads, f):
                    if r["configuration"] == "gpucsr double" and "why" not in r:
                        self.known[r["set"]] = (r["rows"], r["columns"], r["nonzeros"]), r["iterations"]

    def program(self, name, options, ranks=1, threads=True):
        command = launch(ranks) + [os.path.abspath(f"{self.a.build}/{name}")] + options
        left = self.end - time.time()
        if left < 3:
            return None, "no time left"
        env = self.env if threads else dict(self.env, OMP_NUM_THREADS="1")
        try:
            p = subprocess.run(command, capture_output=True, text=True, timeout=min(left, self.a.limit), env=env, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, f"stopped after {min(left, self.a.limit):.0f} s"
        return (p.stdout, None) if p.returncode == 0 else (None, "failed: " + " ".join((p.stdout + p.stderr).split())[:600])

    def learn(self, name, file, key, iterations=None):
        c = CONFIGURATIONS[key]
        with tempfile.NamedTemporaryFile("r", suffix=".json") as f:
            words = ["-f", file, "-lambda", LAMBDA, "-epsilon", self.a.epsilon, "-json", f.name, "-tao_view"] + c.options.split()
            if c.library:
                words += ["-dll_append", self.lib]
            if c.gpucsr:
                words += ["-mat_gpucsr_report", "full"]
            words += ["-tao_max_it", str(iterations or self.a.iterations)]
            begin = time.time()
            text, why = self.program("examples/bmrm", words, self.a.ranks if c.parallel else 1, threads=c.gpucsr)
            if text is None:
                return {"set": name, "configuration": key, "why": why}
            record = json.loads(f.read())
        record.update(set=name, configuration=key, device=self.device, total=time.time() - begin, report=report(text))
        m = re.search(r"milliseconds: planes and their dot products ([\d.]+), dual problem ([\d.]+), weights ([\d.]+)", text)
        if m:
            record["optimiser"] = dict(zip(("planes", "dual", "weights"), (float(v) / 1e3 for v in m.groups())))
        return record

    def one_set(self, name, folder):
        begin, text = time.time(), None
        if os.path.exists(name):
            file, name = name, re.sub(r"\.(svm|petsc)\b.*", "", os.path.basename(name))
            if not file.endswith(".petsc"):
                text, file = file, f"{folder}/{name}.petsc"
                said, why = self.program("bin/gpucsr-convert", [text, file])
                if said is None:
                    print(f"{name}: not converted, {why}", flush=True)
                    return
        else:
            file, text = f"{folder}/{name}.petsc", f"{folder}/{name}.svm"
            if not os.path.exists(file):
                wanted = ["-set", name.split(":")[0], "-o", file] + (["-classes", name.split(":")[1]] if ":" in name else [])
                said, why = self.program("examples/learnset", wanted, self.a.ranks, threads=False)
                if said is not None and any(CONFIGURATIONS[k].text for k in self.a.configurations.split(",")):
                    said, why = self.program("bin/gpucsr-convert", [file, text])
                if said is None:
                    print(f"{name}: not made, {why}", flush=True)
                    return
                print(f"{name}: made in {time.time() - begin:.1f} s", flush=True)
        shape, iterations = self.known.get(name, (None, 0))
        # gpucsr first: the number of its iterations predicts the time of one core
        wanted = sorted(self.a.configurations.split(","), key=lambda k: (k != "gpucsr double", list(CONFIGURATIONS).index(k)))
        for key in wanted:
            c, cut = CONFIGURATIONS[key], None
            if c.text and not (text and os.path.exists(text)):
                continue
            if shape:
                rows, columns, entries = shape
                if c.dense and 8 * rows * columns > self.a.dense:
                    continue  # the page says how large it would be
                work = 0 if c.gpucsr else (rows * columns / 4 if c.dense else entries) / (self.a.ranks if c.parallel else 1)
                if work * iterations > self.a.long:
                    cut = max(12, int(self.a.long / work))
            r = self.learn(name, text if c.text else file, key, 1 if c.text else cut)
            if "why" not in r:
                if not c.text:
                    shape, iterations = (r["rows"], r["columns"], r["nonzeros"]), max(iterations, r["iterations"])
                print(f"{name:13} {key:18} {r['iterations']:5} iterations{' (cut)' if cut else ''} {r['learn']:9.4f} s: scores {r['scores']:.4f} losses {r['losses']:.4f} subgradients {r['subgradients']:.4f}; set-up {r['setup']:.4f} load {r['load']:.3f}; J {r['objective']:.6g}", flush=True)
            else:
                print(f"{name:13} {key:18} {r['why']}", flush=True)
            with open(f"{self.a.out}/bmrm.jsonl", "a") as f:
                f.write(json.dumps(r) + "\n")

    def run(self):
        os.makedirs(self.a.out, exist_ok=True)
        folder = self.a.dir or tempfile.mkdtemp(prefix="bmrm-")
        os.makedirs(folder, exist_ok=True)
        try:
            for name in [n for word in self.a.sets.split(",") for n in (sorted(glob.glob(SHIPPED)) if word == "shipped" else [word])]:
                if time.time() > self.end - 5:
                    print(f"{name}: no time left", flush=True)
                else:
                    self.one_set(name, folder)
                    for ending in ("petsc", "petsc.info", "svm"):
                        if not self.a.dir and os.path.exists(f"{folder}/{name}.{ending}"):
                            os.remove(f"{folder}/{name}.{ending}")
        finally:
            if not self.a.dir:
                shutil.rmtree(folder, ignore_errors=True)


# ---- the page ----


def table(head, rows):
    line = lambda cells: "| " + " | ".join(str(c) or "–" for c in cells) + " |"
    return [line(head), line([":--"] + ["--:"] * (len(head) - 1))] + [line(r) for r in rows] + [""]


def seconds(v):
    return "" if v is None else f"{v:.3g}" if v < 100 else f"{v:.0f}"


def scaled(r, full):
    """Learning time; of a run that was cut, as if it had gone on for the iterations of `full`. And whether it is scaled"""
    if r is None or "why" in r:
        return None, False
    if "CONVERGED" in r["reason"] or not full or r["iterations"] >= full["iterations"]:
        return r["learn"], False
    return r["learn"] * full["iterations"] / r["iterations"], True


def microseconds(v):
    return "" if v is None else f"{1e6 * v:.3g}" if v < 1e-3 else f"{1e6 * v:.0f}"


def mark(v, cut):
    return seconds(v) + (" *" if cut else "")


PARTS = ("products", "losses", "optimiser")


def parts(r):
    """Seconds of the learning phase by part; load is apart. What is given to a device is waited for later: its products are those of the report, the wait is not losses'"""
    evaluation, products = r["scores"] + r["losses"] + r["subgradients"], r["scores"] + r["subgradients"]
    if r["report"].get("seconds", {}).get("products"):
        products = min(sum(r["report"]["seconds"].get(k, 0) for k in ("products", "vectors up", "converted", "down")), evaluation)
    return {"products": products, "losses": evaluation - products, "optimiser": r["learn"] - evaluation}


def vectors(r):
    """Seconds of one product by part; on the host the whole of it, by the clock"""
    f, b, t = r["report"].get("forward", {}), r["report"].get("transpose", {}), r["report"].get("seconds", {})
    if not f.get("microseconds"):
        return {"convert": None, "copy in": None, "kernel": r["scores"] / r["evaluations"], "transpose": r["subgradients"] / r["evaluations"], "copy out": None}
    n = f["products"] + b.get("products", 0)
    return {"convert": t.get("converted", 0) / n, "copy in": t["vectors up"] / n, "kernel": 1e-6 * f["microseconds"], "transpose": 1e-6 * b.get("microseconds", 0), "copy out": t["down"] / n}


def dense(c, key, any_r, why):
    """A cell of the dense types: time, or why there is none"""
    size = 8 * any_r["rows"] * any_r["columns"]
    if key in c:
        return mark(*scaled(c[key], c.get("gpucsr double")))
    return "refused" if "No support" in why else f"({seconds(size / 1e9)} GB)"


def page(files, out, name):
    records = defaultdict(dict)
    for file in files:
        with open(file) as f:
            for line in f:
                r = json.loads(line)
                if "why" not in r or r["configuration"] not in records[r["set"]]:
                    records[r["set"]][r["configuration"]] = r
    good = {s: {k: r for k, r in c.items() if "why" not in r} for s, c in records.items()}
    good = {s: c for s, c in good.items() if c}
    any_ = next(iter(next(iter(good.values())).values()))
    ranks = max(r["ranks"] for c in good.values() for r in c.values())
    order = sorted(good, key=lambda s: next(iter(good[s].values()))["nonzeros"])
    lines = [f"# Learning by the bundle method, {any_['device']}", "",
             f"`src/benchmarks/learning/bmrm.sh`: hinge loss, lambda = {any_['lambda']:g}, epsilon = {any_['epsilon']:g}, {{}} sets. `learnset` generates sets with the shape of those they are named after; the others are files of share/datasets.",
             f"PETSc is without CUDA. gpucsr uses VECGPU vectors on a device. *aij* runs on one core with one thread, *ranks* is aij on {ranks} cores with MPI. `bmrm` is TAO's, `gpubmrm` this library's, which `gpucsr` columns use too. Times are seconds, from one run, one after the other.",
             "A time with * comes from a run that was stopped after a few iterations, scaled to the iterations of gpucsr in double. This favours aij with TAO's bmrm, because its later iterations take longer.", ""]
    lines[2] = lines[2].format(len(order))
    lines += ["## Learning phase", "", "The time of `TaoSolve()`. Loading and set-up have tables below. The dense types are gpucsr's format and PETSc's MATDENSE on one core; brackets show the size of a matrix that was not tried. *refused*: the format does not take a matrix with so few entries.", ""]
    rows = []
    for s in order:
        c = good[s]
        full = c.get("gpucsr double")
        any_r = full or next(iter(c.values()))
        mine = full["learn"] if full else None
        base, cut = scaled(c.get("aij"), full)
        baser, cutr = scaled(c.get("aij ranks"), full)
        basem, cutm = scaled(c.get("aij gpubmrm"), full)
        basemr, cutmr = scaled(c.get("aij gpubmrm ranks"), full)
        ratio = lambda v: f"{v / mine:.1f}" if v and mine else ""
        rows.append([s, f"{any_r['nonzeros']:.3g}", mark(base, cut), mark(baser, cutr), mark(basem, cutm), mark(basemr, cutmr)] + [mark(*scaled(c[k], full)) if k in c else "" for k in ("gpucsr bmrm", "gpucsr double", "gpucsr mixed", "gpucsr single")] + [dense(c, k, any_r, records[s].get(k, {}).get("why", "")) for k in ("gpucsr bitdense", "dense")] + [ratio(base), ratio(baser), ratio(basem), ratio(basemr)])
    lines += table(["set", "nonzeros", "aij bmrm", "ranks bmrm", "aij gpubmrm", "ranks gpubmrm", "gpucsr bmrm", "gpucsr double", "mixed", "single", "gpucsr bitdense", "MATDENSE", "aij bmrm / double", "ranks bmrm / double", "aij gpubmrm / double", "ranks gpubmrm / double"], rows)

    lines += ["## Iterations and objective", "", "Iterations to the gap. J is the best objective, of runs that went as far as gpucsr in double.", ""]
    keys = ("aij", "aij ranks", "aij gpubmrm ranks", "gpucsr bmrm", "gpucsr double", "gpucsr mixed", "gpucsr single", "gpucsr bitdense")
    rows = []
    for s in order:
        c = good[s]
        done = lambda r: "CONVERGED" in r["reason"]
        whole = lambda r: r and (done(r) or r["iterations"] >= c.get("gpucsr double", r)["iterations"])
        rows.append([s] + [str(c[k]["iterations"]) + ("" if done(c[k]) else " cut") if k in c else "" for k in keys] + [f"{c[k]['objective']:.6g}" if whole(c.get(k)) else "" for k in ("aij", "gpucsr double", "gpucsr single")] + [f"{100 * c['gpucsr double']['accuracy']:.2f}" if "gpucsr double" in c else ""])
    lines += table(["set"] + list(keys) + ["J aij bmrm", "J double", "J single", "accuracy %"], rows)

    lines += ["## Parts", "", "*Start*: of the device, once a process. *Load*: from PETSc binary, by PETSc for aij and dense, otherwise by this library. *Set-up*: the first product with the matrix and with its transpose, with everything that is done once a matrix; *inspect* to *upload* are parts of it (milliseconds). Then microseconds of a product, as timed on the device: conversion of its vectors to single and back, copies in, products with X and its transpose, copies out. Vectors are on the device, so nothing is copied, except in *copies*, which has them on the host (`-vec_type standard`); there the conversion is part of the copies. On the host products are timed by the clock, with their launch. *Losses* and *optimiser*: the rest of learning (milliseconds).", ""]
    rows = []
    for s in order:
        for k in ("aij", "dense", "gpucsr double", "gpucsr mixed", "gpucsr single", "gpucsr bitdense", "gpucsr double copies", "gpucsr mixed copies", "gpucsr single copies"):
            r = good[s].get(k)
            if not r:
                continue
            p, t, v = parts(r), r["report"].get("seconds", {}), vectors(r)
            learn, cut = scaled(r, good[s].get("gpucsr double"))
            once = [f"{1e3 * t.get(name, 0):.3g}" if t else "" for name in ("inspect", "convert", "pad", "transpose", "upload")]
            product = [microseconds(v[name]) for name in ("convert", "copy in", "kernel", "transpose", "copy out")]
            rows.append([s, k, r["iterations"], mark(r["start"] + r["load"] + r["setup"] + learn, cut), seconds(r["start"]), seconds(r["load"]), f"{1e3 * r['setup']:.3g}"] + once + product + [f"{1e3 * p[name]:.3g}" for name in ("losses", "optimiser")])
    lines += table(["set", "type", "iterations", "total s", "start s", "load s", "set-up", "inspect", "convert", "pad", "transpose", "upload", "product: convert", "copy in", "X", "X transposed", "copy out", "losses", "optimiser"], rows)

    lines += ["### Of gpucsr in double", "", "Kernels, padding of their formats, and the parts of the optimiser (milliseconds).", ""]
    rows = []
    for s in order:
        r = good[s].get("gpucsr double")
        if not r:
            continue
        f, b, o = r["report"].get("forward", {}), r["report"].get("transpose", {}), r.get("optimiser", {})
        rows.append([s, f.get("format", ""), f.get("kernel", ""), f"{f.get('padding', 0):.1f}", b.get("format", ""), b.get("kernel", ""), f"{b.get('padding', 0):.1f}"] + [f"{1e3 * o.get(k, 0):.3g}" for k in ("planes", "dual", "weights")])
    lines += table(["set", "format", "kernel", "padding %", "of the transpose", "kernel", "padding %", "planes", "dual problem", "weights"], rows)

    lines += ["## Total", "", "Start, load, set-up and learning. aij loads PETSc binary with PETSc, gpucsr with this library. This library reads text, for aij with one thread. Ratios are relative to gpucsr, from PETSc binary and from text.", ""]
    rows = []
    for s in order:
        c = good[s]
        full = c.get("gpucsr double")

        def total(key, load=None):
            r = c.get(key)
            l = c.get(load or key)
            v, cut = scaled(r, full)
            return (v + r["start"] + l["load"] + r["setup"], cut) if v is not None and l else (None, False)

        aij = "aij" if "aij" in c else "aij gpubmrm"
        times = [total(aij), total(aij, "aij text"), total("aij ranks"), total("gpucsr double"), total("gpucsr double", "gpucsr text")]
        ratio = lambda v, w: f"{v / w:.1f}" if v and w else ""
        rows.append([s] + [mark(*t) for t in times] + [seconds(c[k]["load"]) if k in c else "" for k in (aij, "gpucsr double", "aij text", "gpucsr text")] + [ratio(times[1][0], times[3][0]), ratio(times[1][0], times[4][0])])
    lines += table(["set", "aij", "aij, text", "ranks", "gpucsr double", "gpucsr double, text", "load: aij", "gpucsr", "aij, text", "gpucsr, text", "aij, text / gpucsr", "/ gpucsr, text"], rows)
    missing = [(s, k, r["why"]) for s, c in records.items() for k, r in c.items() if "why" in r]
    if missing:
        lines += ["## Not measured", ""] + [f"- {s}, {k}: {why}" for s, k, why in missing] + [""]
    plots = plot(good, order, out, name)
    lines += [f"![{title}]({file})" for title, file in plots]
    with open(f"{out}/{name}.md", "w") as f:
        f.write("\n".join(lines).rstrip() + "\n")
    with open(f"{out}/{name}.json", "w") as f:
        json.dump({s: good[s] for s in order}, f, indent=1)
        f.write("\n")
    print("\n".join(lines))


def bars(plt, good, order, file, groups, values):
    """Stacked bars, a panel a set and a bar a configuration (label, key); values(record, all of its set) are seconds by part"""
    order = [s for s in order if any(k in good[s] for _, k in groups)]
    if not order:
        return
    across, shown = min(6, len(order)), {}
    down = (len(order) + across - 1) // across
    figure, axes = plt.subplots(down, across, figsize=(3 * across, 2.7 * down + 0.6), squeeze=False)
    for ax in axes.flat[len(order):]:
        ax.axis("off")
    for ax, s in zip(axes.flat, order):
        labels = []
        for label, k in groups:
            if k not in good[s]:
                continue
            bottom = 0
            for colour, (part, t) in enumerate(values(good[s][k], good[s]).items()):
                shown[part] = ax.bar(len(labels), t, bottom=bottom, color=f"C{colour}")
                bottom += t
            labels.append(label)
        ax.set_xticks(range(len(labels)), labels, fontsize=8)
        ax.set_title(s, fontsize=10)
        ax.set_ylabel("seconds", fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.4 / (2.7 * down + 0.6)))
    figure.legend(list(shown.values()), list(shown), loc="upper center", ncol=len(shown), fontsize=9)
    figure.savefig(file, dpi=80)


def plot(good, order, out, name):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("bmrm.py: no Matplotlib, no plots", file=sys.stderr)
        return []

    def whole(r, c):
        v, _ = scaled(r, c.get("gpucsr double"))
        return {"start": r["start"], "load": r["load"], "set-up": r["setup"], **{p: t * v / r["learn"] for p, t in parts(r).items()}}

    def ours(r, c):
        t, p, v = r["report"].get("seconds", {}), parts(r), vectors(r)
        copies = (r["report"]["forward"]["products"] + r["report"]["transpose"]["products"]) * ((v["copy in"] or 0) + (v["copy out"] or 0)) if v["copy in"] is not None else 0
        return {"load": r["load"], "upload": t.get("upload", 0), "convert and pad": t.get("inspect", 0) + t.get("convert", 0) + t.get("pad", 0), "transpose": t.get("transpose", 0), "kernels": max(p["products"] - copies, 0), "copies": copies, "losses": p["losses"], "optimiser": p["optimiser"]}

    bars(plt, good, order, f"{out}/{name}-total.png", [("aij", "aij"), ("ranks", "aij ranks"), ("gpucsr", "gpucsr double")], whole)
    bars(plt, good, order, f"{out}/{name}-parts.png", [("double", "gpucsr double"), ("mixed", "gpucsr mixed"), ("single", "gpucsr single"), ("copies", "gpucsr double copies")], ours)
    return [("Load and learn by part: aij on one core, aij on all, gpucsr in double", f"{name}-total.png"), ("gpucsr by part: double, mixed, single, double with vectors on the host", f"{name}-parts.png")]


def main():
    a = arguments()
    if a.page is None:
        Runner(a).run()
        a.page = [f"{a.out}/bmrm.jsonl"]
    if not a.lines:
        page(a.page, a.out, a.name)


main()
