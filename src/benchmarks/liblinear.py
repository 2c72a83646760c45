#!/usr/bin/env python3
"""
bmrm beside LIBLINEAR: the same loss and lambda on the same file must come to the same objective and accuracy.

    liblinear.py [-build build] [-out FOLDER] [-name NAME] [-losses hinge,squared_hinge,logistic] [-gap SHARE] FILE[:LAMBDA] ...

LIBLINEAR (Debian: liblinear-tools) minimises |w|^2/2 + C sum of losses, which is ours times 1/lambda where C = 1/(lambda n); without -B it has no bias, as bmrm. Of
several classes both learn each against all others. Each model is read and judged here, by the same lines, on the data as parsed here: no program's own word
counts. Fails where the objectives differ by more than 1e-3 of LIBLINEAR's, or the accuracies by more than 0.5 points, whichever is the better: where LIBLINEAR's
objective is above bmrm's, it had not converged: solver 3 stops after 1000 passes, whatever -e says.

Files are LIBSVM text, compressed or not. LAMBDA is 1e-4 of the mean square of a row where none is given.
"""
import argparse, bz2, gzip, json, lzma, math, os, struct, subprocess, sys, tempfile, time

SOLVER = {"hinge": 3, "squared_hinge": 1, "logistic": 0}
PETSC_VEC = 1211214


def loss_rows(loss, scores, labels):
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

    def judge(self, loss, lam, weights):
        """weights: a class' label -> its vector; of two classes that of the greater alone. Objective and accuracy"""
        objective, scores = 0.0, {}
        for label, w in weights.items():
            s = [sum(w[i] * v for i, v in row) for row in self.rows]
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


def run_liblinear(data, text, loss, lam, model):
    c = 1 / (lam * len(data.labels))
    begin = time.time()
    p = subprocess.run(["liblinear-train", "-q", "-s", str(SOLVER[loss]), "-c", repr(c), "-e", "1e-6" if loss == "logistic" else "1e-4", text, model], capture_output=True, text=True)
    seconds = time.time() - begin
    if p.returncode:
        sys.exit(f"liblinear.py: liblinear-train failed on {text}: {p.stdout}{p.stderr}")
    head, rows = {}, []
    with open(model) as f:
        for line in f:
            words = line.split()
            if "w" in head:
                rows.append([float(x) for x in words])
            elif words:
                head[words[0]] = words[1:]
    labels = [float(x) for x in head["label"]]
    columns = [[r[k] for r in rows] + [0.0] * (data.columns - len(rows)) for k in range(len(rows[0]))]
    if len(labels) == 2:  # positive scores mean its first label
        w = columns[0] if labels[0] == data.classes[1] else [-x for x in columns[0]]
        return {data.classes[1]: w}, seconds
    return dict(zip(labels, columns)), seconds


def read_vectors(name):
    out = []
    with open(name, "rb") as f:
        while head := f.read(8):
            kind, n = struct.unpack(">ii", head)
            if (kind, n) == (0, PETSC_VEC):  # with 64-bit indices
                kind = n
                (n,) = struct.unpack(">q", f.read(8))
            if kind != PETSC_VEC:
                sys.exit(f"liblinear.py: {name}: no vector of PETSc")
            out.append(struct.unpack(f">{n}d", f.read(8 * n)))
    return out


def run_bmrm(build, data, text, loss, lam, epsilon, folder, extra):
    model, record = f"{folder}/bmrm.model", f"{folder}/bmrm.json"
    for f in (model, record):
        if os.path.exists(f):
            os.remove(f)
    p = subprocess.run([f"{build}/examples/bmrm", "-f", text, "-dll_append", os.path.abspath(f"{build}/lib/libpetscgpucsr.so"), "-loss", loss, "-lambda", repr(lam), "-epsilon", repr(epsilon), "-model_out", model, "-json", record, "-tao_type", "gpubmrm", "-tao_max_it", "20000"] + extra, capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"liblinear.py: bmrm failed on {text}: {p.stdout}{p.stderr}")
    with open(record) as f:
        r = json.loads(f.read())
    head, *vectors = read_vectors(model)
    labels = head[3:]
    if len(labels) == 2:
        return {labels[1]: vectors[0]}, r
    return dict(zip(labels, vectors)), r


def main():
    p = argparse.ArgumentParser(prefix_chars="-")
    p.add_argument("-build", default="build")
    p.add_argument("-out")
    p.add_argument("-name", default="liblinear")
    p.add_argument("-losses", default="hinge,squared_hinge,logistic")
    p.add_argument("-options", default="-mat_type gpucsr", help="for bmrm")
    p.add_argument("-gap", type=float, default=1e-4, help="at which bmrm stops, as a share of the objective")
    p.add_argument("files", nargs="+")
    a = p.parse_args()
    lines, failures = [], 0
    head = ["set", "rows", "columns", "entries", "classes", "loss", "lambda", "J LIBLINEAR", "J bmrm", "relative", "accuracy LIBLINEAR", "bmrm", "s LIBLINEAR", "iterations", "s bmrm"]
    lines += ["| " + " | ".join(head) + " |", "| :-- |" + " --: |" * (len(head) - 1)]
    with tempfile.TemporaryDirectory() as folder:
        for word in a.files:
            name, _, lam = word.partition(":")
            text = f"{folder}/data.svm"
            data = Data(name, text)
            lam = float(lam or f"{1e-4 * sum(v * v for row in data.rows for _, v in row) / len(data.rows):.2g}")
            short = os.path.basename(name).split(".svm")[0]
            for loss in a.losses.split(","):
                theirs, their_seconds = run_liblinear(data, text, loss, lam, f"{folder}/liblinear.model")
                theirs_j, theirs_accuracy = data.judge(loss, lam, theirs)
                ours, r = run_bmrm(a.build, data, text, loss, lam, a.gap * theirs_j, folder, a.options.split())
                j, accuracy = data.judge(loss, lam, ours)
                relative = (j - theirs_j) / theirs_j
                bad = abs(relative) > 1e-3 or abs(accuracy - theirs_accuracy) > 0.5
                failures += bad
                cells = [short, len(data.labels), data.columns, data.entries, len(data.classes), loss, f"{lam:g}", f"{theirs_j:.6g}", f"{j:.6g}", f"{relative:+.1e}", f"{theirs_accuracy:.2f}", f"{accuracy:.2f}", f"{their_seconds:.2f}", r["iterations"], f"{r['learn']:.2f}"]
                lines.append("| " + " | ".join(map(str, cells)) + " |")
                print(("FAILED " if bad else "") + " ".join(map(str, cells)), flush=True)
    if a.out:
        with open(f"{a.out}/{a.name}.md", "w") as f:
            f.write("\n".join(lines) + "\n")
    print(f"liblinear.py: {failures} of {len(lines) - 2} differ")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
