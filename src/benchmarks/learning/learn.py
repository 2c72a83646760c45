#!/usr/bin/env python3
"""
Learning time by set, loss and lambda: on a GPU, on one core, on all cores by MPI, and of LIBLINEAR where it is installed.

    learn.py [-build build] [-out FOLDER] [-who gpu,core,ranks,liblinear] [-sets NAME,...] [-losses hinge,squared_hinge,logistic] [-lambdas 1e-5,...] [-budget SECONDS] [-ranks N] [-rounds 1] [-id TEXT] [-page FILE.jsonl]

Sets are names that learnset knows, or files that gpucsr-convert reads. -lambdas may name a set: covertype:1e-7 is for that set alone. Each run is a line of learn.jsonl in -out; the table comes last, to
learn.md too. -page makes the table of earlier runs alone. -rounds: processes of each, in turn; the table has their medians.

gpu is type gpucsr (with -backend host the host's, then `threads` of it), core is type aij on one core, ranks is aij on all. Runs of core and liblinear go on cores of their own, several at once,
beside those of gpu; those of ranks follow, alone. Seconds are the wall clock's of learning, without start, loading and set-up; those of core and LIBLINEAR are the processor's, LIBLINEAR's less those of reading, which a run that stops at once
takes. `dual` is the value that LIBLINEAR's dual solvers end with: no objective lies below it.
"""
import argparse, collections, concurrent.futures, json, os, re, shutil, subprocess, sys, tempfile, time

THESIS = "adult9,web8,real-sim,aut-avn,astro-ph,covertype,news20,reuters-c11,reuters-ccat,kdd99"
SOLVER = {"hinge": "3", "squared_hinge": "1", "logistic": "0"}
LARGE = 2e7  # entries: LIBLINEAR reads for half a minute


def arguments():
    p = argparse.ArgumentParser(prefix_chars="-")
    p.add_argument("-build", default="build")
    p.add_argument("-out", default=os.environ.get("OUT", "learn-results"))
    p.add_argument("-who", default="gpu,core,ranks,liblinear")
    p.add_argument("-sets", default=THESIS)
    p.add_argument("-losses", default="hinge,squared_hinge,logistic")
    p.add_argument("-lambdas", default="1e-5")
    p.add_argument("-epsilon", default="1e-4")
    p.add_argument("-backend", default="auto")
    p.add_argument("-budget", type=float, default=3600)
    p.add_argument("-limit", type=float, default=60, help="seconds of one run on the host")
    p.add_argument("-ranks", type=int, default=os.cpu_count())
    p.add_argument("-rounds", type=int, default=1)
    p.add_argument("-workers", type=int, default=max(1, os.cpu_count() // 2), help="runs of one core at once")
    p.add_argument("-dir", help="where sets are made, and left")
    p.add_argument("-id", default="unknown")
    p.add_argument("-page")
    return p.parse_args()


def version():
    """of LIBLINEAR, which does not say its own: the package's, or else the library's that the program is linked with"""
    program = shutil.which("liblinear-train")
    ask = lambda words: subprocess.run(words, capture_output=True, text=True).stdout.strip() if program and shutil.which(words[0]) else ""
    return ask(["dpkg-query", "-W", "-f", "${Version}", "liblinear-tools"]) or ", ".join(re.findall(r"liblinear\.so\.[.0-9]+", ask(["ldd", program or ""]))[:1]) or "unknown"


class Runner:
    def __init__(self, a, folder):
        self.a, self.folder, self.end = a, folder, time.time() + a.budget
        self.program = lambda name: os.path.abspath(f"{a.build}/{name}")
        self.launch = os.environ.get("MPIEXEC", "mpiexec --oversubscribe" + (" --allow-run-as-root" if os.getuid() == 0 else "")).split() + ["-n", str(a.ranks)]
        self.library = ["-dll_append", self.program("lib/libpetscgpucsr.so")]
        self.file, self.text, self.entries, self.version = {}, {}, {}, version()

    def run(self, words, threads=1, limit=None, aside=False):
        """what it printed, seconds of the processor, or why not. aside: beside others, which leaves a third of a round's time to those that run alone"""
        left = self.end - (self.a.budget / 3 / self.a.rounds if aside and "ranks" in self.a.who else 0) - time.time()
        if left < 2:
            return None, "no time left"
        p = subprocess.Popen(["timeout", f"{min(left, limit or self.a.limit):.0f}"] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
        text = p.stdout.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode == 0:
            return text, usage.ru_utime + usage.ru_stime
        return None, f"> {min(left, limit or self.a.limit):.0f} s" if p.returncode == 124 else "failed: " + " ".join(text.split())[:300]

    def make(self, name):
        """the set as PETSc binary, and as text for LIBLINEAR; its short name"""
        short = re.sub(r"\.(svm|petsc)\b.*", "", os.path.basename(name))
        file, text = f"{self.folder}/{short}.petsc", f"{self.folder}/{short}.svm"
        wanted = "liblinear" in self.a.who
        if os.path.exists(name):
            if not os.path.exists(text):
                with open(text, "wb") as f:
                    subprocess.run({"gz": ["gzip", "-dc"], "xz": ["xz", "-dc"]}.get(name.rsplit(".", 1)[1], ["cat"]) + [name], stdout=f, check=False)
            if not os.path.exists(file):
                _, why = self.run([self.program("bin/gpucsr-convert"), text, file], 4)
        else:
            if not os.path.exists(file):
                _, why = self.run(self.launch + [self.program("examples/learnset"), "-set", name, "-o", file], limit=600)
            if os.path.exists(file) and wanted and not os.path.exists(text):
                self.run([self.program("bin/gpucsr-convert"), file, text], 4)
        if not os.path.exists(file):
            print(f"learn.py: {name}: left out, not made: {why}", flush=True)
            return None
        self.file[short], self.text[short] = file, text
        with open(file, "rb") as f:
            self.entries[short] = int.from_bytes(f.read(16)[12:], "big")
        return short

    def bmrm(self, who, name, loss, lam):
        with tempfile.NamedTemporaryFile("r", suffix=".json") as f:
            words = [self.program("examples/bmrm"), "-f", self.file[name], "-loss", loss, "-lambda", lam, "-epsilon", self.a.epsilon, "-json", f.name, "-quiet"] + self.library
            words += ["-mat_type", "gpucsr", "-mat_gpucsr_backend", self.a.backend] if who == "gpu" else ["-mat_type", "aij", "-tao_gpubmrm_backend", "host"]
            text, why = self.run((self.launch if who == "ranks" else []) + words, min(8, os.cpu_count()) if who == "gpu" else 1, aside=who == "core")
            if text is None:
                return {"why": why}
            r = json.loads(f.read())
        return {"seconds": r["cpu" if who == "core" else "learn"], "objective": r["objective"], "gap": r["gap"], "iterations": r["iterations"], "products": 2 * r["evaluations"], "rows": r["rows"], "columns": r["columns"], "losses": r["losses"], "converged": r["reason"] == "CONVERGED"}

    def liblinear(self, name, loss, lam):
        """lambda: C = 1/(lambda rows); with None it stops at once"""
        with open(self.file[name], "rb") as f:
            rows = int.from_bytes(f.read(8)[4:], "big")
        c = repr(1 / (float(lam) * rows)) if lam else "1e-12"
        text, seconds = self.run(["liblinear-train", "-s", SOLVER[loss], "-c", c] + ([] if lam else ["-e", "1e30"]) + [self.text[name], "/dev/null"], aside=True)
        if text is None:
            return {"why": seconds}
        dual = re.findall(r"Objective value = (\S+)", text)
        return {"seconds": seconds, "version": self.version, "dual": -float(lam) * float(dual[0]) if dual and len(dual) == 1 and lam else None}

    def job(self, who, name, loss, lam):
        if who == "liblinear":
            r = self.liblinear(name, loss, lam)
        else:
            r = self.bmrm(who, name, loss, lam)
        r.update(record="learn", id=self.a.id, set=name, who=who, loss=loss, lam=lam, entries=self.entries[name])
        said = r.get("why") or f"{r['seconds']:9.4f} s" + (f"  J {r['objective']:.6g} gap {r['gap']:.1e} {r['iterations']} iterations {r['products']} products, losses {r['losses']:.4f} s" if "objective" in r else "")
        print(f"{name:14} {loss or 'reading':14} {lam or '':6} {who:9} {said}", flush=True)
        with open(f"{self.a.out}/learn.jsonl", "a") as f:
            f.write(json.dumps(r) + "\n")

    def all(self):
        who, losses = self.a.who.split(","), self.a.losses.split(",")
        names = [n for n in map(self.make, self.a.sets.split(",")) if n]
        print(f"sets after {self.a.budget - (self.end - time.time()):.1f} s", flush=True)
        chosen = lambda name: [l.split(":")[-1] for l in self.a.lambdas.split(",") if ":" not in l or l.split(":")[0] == name]
        jobs = [(name, loss, lam) for name in names for lam in chosen(name) for loss in losses]
        for _ in range(self.a.rounds):
            with concurrent.futures.ThreadPoolExecutor(self.a.workers) as pool:
                if "core" in who:
                    for j in jobs[::-1]:  # the longest first
                        pool.submit(self.job, "core", *j)
                if "liblinear" in who and shutil.which("liblinear-train"):
                    for name in names:
                        pool.submit(self.job, "liblinear", name, "logistic", None)
                    for name, loss, lam in jobs:
                        if loss in SOLVER and (self.entries[name] < LARGE or lam == chosen(name)[0]):
                            pool.submit(self.job, "liblinear", name, loss, lam)
                if "gpu" in who:
                    for j in jobs:
                        self.job("gpu", *j)
            if "ranks" in who:
                for j in jobs:
                    self.job("ranks", *j)


def medians(records):
    """(set, loss, lambda): {who: the run of the median time, with the least and the most time and the count of its rounds}"""
    found = collections.defaultdict(dict)
    for r in records:
        found[r["set"], r["loss"], r["lam"]].setdefault(r["who"], []).append(r)
    for runs in found.values():
        for who, rs in runs.items():
            rs = sorted((r for r in rs if "why" not in r), key=lambda r: r["seconds"]) or rs[-1:]
            runs[who] = dict(rs[(len(rs) - 1) // 2], least=rs[0].get("seconds"), most=rs[-1].get("seconds"), rounds=len(rs))
    return found


def times(found, key):
    """{who: seconds}, LIBLINEAR's without reading; and the least that tells its time from that of reading: how far readings are from their median, a fifth of it where they are few"""
    reading = found.get((key[0], "logistic", None), {}).get("liblinear", {})
    time_of = {w: r.get("seconds") for w, r in found[key].items()}
    noise = 0.5 * (reading["most"] - reading["least"]) if reading.get("rounds", 0) > 2 else 0.2 * reading.get("seconds", 0)
    if time_of.get("liblinear") is not None:
        time_of["liblinear"] = time_of["liblinear"] - reading["seconds"] if "seconds" in reading else None
    return time_of, noise


def page(file, out):
    with open(file) as f:
        records = [json.loads(line) for line in f]
    found, entries = medians(records), {r["set"]: r["entries"] for r in records}
    sets = [k for k in found if k[2]]
    order = list(SOLVER)
    sets.sort(key=lambda k: (entries[k[0]], k[0], order.index(k[1]) if k[1] in order else 9, -float(k[2])))
    lines = ["| set | entries | loss | lambda | J | gap / J | iterations | products | gpu s | of which losses | one core | ranks | LIBLINEAR | J less its dual value | core / gpu | ranks / gpu | LIBLINEAR / gpu |", "| :-- | --: | :-- |" + " --: |" * 14]
    number = lambda v: "" if v is None else f"{v:.3g}"
    for key in sets:
        c = found[key]
        first = next((c[w] for w in ("gpu", "core", "ranks") if w in c and "why" not in c[w]), {})
        time_of, noise = times(found, key)
        hidden = time_of.get("liblinear") is not None and time_of["liblinear"] < noise
        if hidden:
            time_of["liblinear"] = None
        cell = lambda w: c[w]["why"][:20] if "why" in c.get(w, {}) else f"< {number(noise)}" if hidden and w == "liblinear" else number(time_of.get(w))
        ratio = lambda w: f"{time_of[w] / time_of['gpu']:.1f}" if time_of.get(w) and time_of.get("gpu") else ""
        dual = c.get("liblinear", {}).get("dual")
        lines.append("| " + " | ".join([key[0], f"{entries[key[0]]:.2g}", key[1], key[2], f"{first['objective']:.6g}" if first else "", number(first["gap"] / first["objective"]) if first else "", str(first.get("iterations", "")), str(first.get("products", "")),
                     cell("gpu"), number(c.get("gpu", {}).get("losses")), cell("core"), cell("ranks"), cell("liblinear"), f"{first['objective'] - dual:+.1e}" if dual is not None and first else "", ratio("core"), ratio("ranks"), ratio("liblinear")]) + " |")
    with open(f"{out}/learn.md", "w") as f:
        f.write("\n".join(lines) + "\n")
    print("\n".join(lines))


def main():
    a = arguments()
    os.makedirs(a.out, exist_ok=True)
    if not a.page:
        folder = a.dir or tempfile.mkdtemp(prefix="learn-")
        os.makedirs(folder, exist_ok=True)
        try:
            Runner(a, folder).all()
        finally:
            if not a.dir:
                shutil.rmtree(folder, ignore_errors=True)
    page(a.page or f"{a.out}/learn.jsonl", a.out)


if __name__ == "__main__":
    main()
