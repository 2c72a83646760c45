#!/usr/bin/env python3
"""
bmrm beside LIBLINEAR: the same loss and lambda on the same file must come to the same objective and accuracy.

    liblinear.py [-build build] [-out FOLDER] [-name NAME] [-losses hinge,squared_hinge,logistic] [-gap SHARE] [-factors 1e-6,1e-4,1,1e2] [-limit SECONDS] FILE[:LAMBDA] ...

LIBLINEAR (Debian: liblinear-tools) minimises |w|^2/2 + C sum of losses, which is ours times 1/lambda where C = 1/(lambda n); without -B it has no bias, as bmrm. Of
several classes both learn each against all others. Each model is read and judged here, by the same lines, on the data as parsed here: no program's own word
counts. Fails where the objectives differ by more than 1e-3 of LIBLINEAR's, or the accuracies by more than 0.5 points, whichever is the better: where LIBLINEAR's
objective is above bmrm's, it had not converged: solver 3 stops after 1000 passes, whatever -e says.

Files are LIBSVM text, compressed or not. LAMBDA is 1e-4 of the mean square of a row where none is given, or each of -factors times that mean.

LIBLINEAR runs twice: with its usual tolerance, for its time, and with a tight one, for the objective to compare with. Seconds are those of the processor (set OMP_NUM_THREADS=1 for bmrm), so
that other programs count less. LIBLINEAR's are less those of reading, found by a run that stops at once; bmrm's are those of learning alone. A run longer than -limit is ended, and has no number.
"""
import argparse, bz2, gzip, json, lzma, math, os, resource, subprocess, sys, tempfile

try:
    import numpy, scipy.sparse
except ImportError:
    numpy = None

SOLVER = {"hinge": 3, "squared_hinge": 1, "logistic": 0}

def loss_rows(loss, scores, labels):
    if numpy:
        m = scores * numpy.array(labels)
        return float(numpy.mean(numpy.logaddexp(0, -m) if loss == "logistic" else numpy.maximum(1 - m, 0) ** (2 if loss == "squared_hinge" else 1)))
    if loss == "logistic":
        return sum(math.log1p(math.exp(-abs(y * s))) + max(-y * s, 0) for s, y in zip(scores, labels)) / len(labels)
    power = 2 if loss == "squared_hinge" else 1
    return sum(max(0.0, 1 - y * s) ** power for s, y in zip(scores, labels)) / len(labels)


class Data:
    def __init__(self, name, text_file):
        opener = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(os.path.splitext(name)[1], open)
        self.rows, self.labels, self.columns = [], [], 0
        with opener(name, "rt") as f, open(text_file, "w") as out:
            for line in f:
                out.write(line)
                words = line.split("#")[0].split()
                if not words:
                    continue
                pairs = [w.split(":") for w in words[1:]]
                row = [(int(i) - 1, float(v)) for i, v in pairs]
                self.labels.append(float(words[0]))
                self.rows.append(row)
                self.columns = max([self.columns] + [i + 1 for i, _ in row])
        self.classes = sorted(set(self.labels))
        self.entries = sum(map(len, self.rows))
        self.square = sum(v * v for row in self.rows for _, v in row) / len(self.rows)
        if numpy:
            ends = numpy.cumsum([0] + [len(r) for r in self.rows])
            self.X = scipy.sparse.csr_matrix((numpy.array([v for r in self.rows for _, v in r]), numpy.array([i for r in self.rows for i, _ in r]), ends), shape=(len(self.rows), self.columns))
            self.rows = range(len(self.rows))

    def judge(self, loss, lam, weights):
        """weights: a class' label -> its vector; of two classes that of the greater alone. Objective and accuracy"""
        objective, scores = 0.0, {}
        for label, w in weights.items():
            s = self.X @ numpy.array(w) if numpy else [sum(w[i] * v for i, v in row) for row in self.rows]
            scores[label] = s
            objective += lam / 2 * sum(x * x for x in w) + loss_rows(loss, s, [1 if y == label else -1 for y in self.labels])
        if len(weights) == 1:
            (label, s), = scores.items()
            other = self.classes[0]
            right = sum((label if x > 0 else other) == y for x, y in zip(s, self.labels))
        else:
            order = list(scores)
            right = sum(max(order, key=lambda c: scores[c][i]) == y for i, y in enumerate(self.labels))
        return objective, 100 * right / len(self.labels)


def read_model(data, model):
    """of LIBLINEAR or of bmrm, which are alike: a class' label -> its weights; of two classes that of the greater alone"""
    head, rows = {}, []
    with open(model) as f:
        for line in f:
            words = line.split()
            if words[:1] == ["bmrm"]:
                break
            if "w" in head:
                rows.append([float(x) for x in words])
            elif words:
                head[words[0]] = words[1:]
    labels = [float(x) for x in head["label"]]
    columns = [[r[k] for r in rows] + [0.0] * (data.columns - len(rows)) for k in range(len(rows[0]))]
    if len(labels) == 2:  # positive scores mean its first label
        w = columns[0] if labels[0] == data.classes[1] else [-x for x in columns[0]]
        return {data.classes[1]: w}
    return dict(zip(labels, columns))


def run_liblinear(data, text, loss, lam, model, tolerance, limit):
    """seconds, or None where it ran too long"""
    c = 1 / (lam * len(data.labels))
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        p = subprocess.run(["liblinear-train", "-q", "-s", str(SOLVER[loss]), "-c", repr(c)] + (["-e", tolerance] if tolerance else []) + [text, model], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if p.returncode:
        sys.exit(f"liblinear.py: liblinear-train failed on {text}: {p.stdout}{p.stderr}")
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def run_bmrm(build, data, text, loss, lam, epsilon, folder, limit, extra):
    model, record = f"{folder}/bmrm.model", f"{folder}/bmrm.json"
    for f in (model, record):
        if os.path.exists(f):
            os.remove(f)
    try:
        p = subprocess.run([f"{build}/examples/bmrm", "-f", text, "-dll_append", os.path.abspath(f"{build}/lib/libpetscgpucsr.so"), "-loss", loss, "-lambda", repr(lam), "-epsilon", repr(epsilon), "-model_out", model, "-json", record] + extra, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, None
    if p.returncode:
        sys.exit(f"liblinear.py: bmrm failed on {text}: {p.stdout}{p.stderr}")
    with open(record) as f:
        return read_model(data, model), json.loads(f.read())


def compare(a, data, text, short, loss, lam, folder, reading):
    """a line of the table, and whether the two differ"""
    model = f"{folder}/liblinear.model"
    seconds = run_liblinear(data, text, loss, lam, model, None, a.limit)
    j_usual = data.judge(loss, lam, read_model(data, model))[0] if seconds is not None else math.inf
    tight = run_liblinear(data, text, loss, lam, model, "1e-6" if loss == "logistic" else "1e-4", a.limit)
    theirs_j, theirs_accuracy = data.judge(loss, lam, read_model(data, model)) if tight is not None else (j_usual, math.nan)
    ours, r = run_bmrm(a.build, data, text, loss, lam, a.gap, folder, a.limit, a.options.split())
    j, accuracy = data.judge(loss, lam, ours) if ours else (math.inf, math.nan)
    relative = (j - theirs_j) / theirs_j
    bad = not relative <= 1e-3 or (not a.factors and (abs(relative) > 1e-3 or abs(accuracy - theirs_accuracy) > 0.5))
    return [short, len(data.labels), data.columns, data.entries, len(data.classes), loss, f"{lam:.3g}", f"{theirs_j:.6g}", f"{j:.6g}", f"{(j_usual - theirs_j) / theirs_j:+.1e}", f"{relative:+.1e}", f"{theirs_accuracy:.2f}", f"{accuracy:.2f}",
            f"{max(seconds - reading, 0):.4f}" if seconds is not None else "-", r["iterations"] if r else "-", r["evaluations"] if r else "-", f"{r['cpu']:.4f}" if r else "-"], bad


def main():
    p = argparse.ArgumentParser(prefix_chars="-")
    p.add_argument("-build", default="build")
    p.add_argument("-out")
    p.add_argument("-name", default="liblinear")
    p.add_argument("-losses", default="hinge,squared_hinge,logistic")
    p.add_argument("-options", default="-mat_type gpucsr", help="for bmrm")
    p.add_argument("-gap", type=float, default=1e-4, help="at which bmrm stops, as a share of the objective")
    p.add_argument("-factors", default="", help="lambdas, as multiples of the mean square of a row")
    p.add_argument("-limit", type=float, default=600, help="seconds that a run may take")
    p.add_argument("files", nargs="+")
    a = p.parse_args()
    lines, failures, ratios = [], 0, []
    head = ["set", "rows", "columns", "entries", "classes", "loss", "lambda", "J LIBLINEAR", "J bmrm", "LIBLINEAR's usual", "bmrm's", "accuracy LIBLINEAR", "bmrm", "s LIBLINEAR", "iterations", "evaluations", "s bmrm"]
    lines += ["| " + " | ".join(head) + " |", "| :-- |" + " --: |" * (len(head) - 1)]
    with tempfile.TemporaryDirectory() as folder:
        for word in a.files:
            name, _, lam = word.partition(":")
            text = f"{folder}/data.svm"
            data = Data(name, text)
            lambdas = [float(f) * data.square for f in a.factors.split(",")] if a.factors else [float(lam or f"{1e-4 * data.square:.2g}")]
            short = os.path.basename(name).split(".svm")[0]
            reading = run_liblinear(data, text, "logistic", 1e6 * data.square, f"{folder}/liblinear.model", "1e30", a.limit) or 0
            for loss in a.losses.split(","):
                for lam in lambdas:
                    cells, bad = compare(a, data, text, short, loss, lam, folder, reading)
                    failures += bad
                    if "-" not in (cells[-4], cells[-1]):
                        ratios.append(max(float(cells[-1]), 1e-3) / max(float(cells[-4]), 1e-3))
                    lines.append("| " + " | ".join(map(str, cells)) + " |")
                    print(("FAILED " if bad else "") + " ".join(map(str, cells)), flush=True)
    if ratios:
        print(f"liblinear.py: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} times LIBLINEAR's seconds in the geometric mean of {len(ratios)} runs (those below a millisecond count as one)")
    if a.out:
        with open(f"{a.out}/{a.name}.md", "w") as f:
            f.write("\n".join(lines) + "\n")
    print(f"liblinear.py: {failures} of {len(lines) - 2} differ")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
