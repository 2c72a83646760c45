#!/usr/bin/env python3
"""
Linear models by gpucsr.learn, which has scikit-learn's interface, beside scikit-learn's own: a table, and a drawing of it.

    PYTHONPATH=python figures.py [-types aij,gpucsr] [-losses hinge,squared_hinge,logistic] [-C 1] [-path SET] [-o figures.png] [-petsc "OPTIONS"] FILE.svm[.gz|.xz] ...

Left, for each file: seconds to learn, for scikit-learn and for each type of matrix. Right: accuracy on the fifth of the rows that was kept back, by C, of the file that -path names (default: the first).
Both minimise |w|^2/2 + C sum of losses, so the objectives in the table are comparable; scikit-learn's has a * where it stopped at its limit of iterations.

-petsc "-dll_append build/lib/libpetscgpucsr.so" loads the library where the module gpucsr is not installed. Needs petsc4py, scikit-learn and matplotlib. Without files: the sets of share/datasets/learning.
"""
import argparse, glob, gzip, lzma, os, sys, time, warnings


def arguments():
    p = argparse.ArgumentParser(description=__doc__, prefix_chars="-", formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-types", default="aij,gpucsr")
    p.add_argument("-losses", default="hinge,squared_hinge,logistic")
    p.add_argument("-C", type=float, default=1.0)
    p.add_argument("-path")
    p.add_argument("-o", default="figures.png")
    p.add_argument("-petsc", default="")
    p.add_argument("files", nargs="*")
    a = p.parse_args()
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/datasets/learning")
    a.files = a.files or [f"{folder}/{f}" for f in ("breast-cancer.svm.gz", "a9a.svm.gz", "dna_onehot.svm.xz", "kddcup99_10pct.svm.xz")]
    return a


a = arguments()
import petsc4py

petsc4py.init(a.petsc.split() or None)
try:
    from gpucsr import learn
except ImportError:  # a checkout, where nothing was installed
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/gpucsr"))
    import learn
import numpy as np
from petsc4py import PETSc
from sklearn import linear_model, svm
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split

warnings.simplefilter("ignore")


def load(name):
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(name)[1], open)
    with opener(name, "rb") as f:
        X, y = load_svmlight_file(f)
    return os.path.basename(name).split(".svm")[0], train_test_split(X, y, test_size=0.2, random_state=0)


def ours(loss, C):
    return learn.LogisticRegression(C=C, tol=1e-6) if loss == "logistic" else learn.LinearSVC(C=C, loss=loss, tol=1e-4)


def theirs(loss, C):
    return linear_model.LogisticRegression(C=C) if loss == "logistic" else svm.LinearSVC(C=C, loss=loss, dual=loss == "hinge")


def objective(model, loss, C, X, y):
    """of the first of the problems that the model solved: its positive class against the others"""
    penalty = loss != "logistic"  # the intercept of logistic regression is not regularised
    m = np.where(y == model.classes_[1 if len(model.classes_) == 2 else 0], 1, -1) * (X @ model.coef_[0] + model.intercept_[0])
    loss = np.logaddexp(0, -m) if loss == "logistic" else np.maximum(1 - m, 0) ** (2 if loss == "squared_hinge" else 1)
    return 0.5 * ((model.coef_[0] ** 2).sum() + penalty * model.intercept_[0] ** 2) + C * loss.sum()


def learn_one(who, loss, C, X, y):
    if who != "scikit-learn":
        PETSc.Options()["mat_type"] = who
    start = time.perf_counter()
    if who == "scikit-learn" and loss == "logistic" and len(np.unique(y)) > 2:
        return None, None  # it is multinomial there
    model = (theirs if who == "scikit-learn" else ours)(loss, C).fit(X, y)
    return model, time.perf_counter() - start


def main():
    who = ["scikit-learn"] + a.types.split(",")
    losses = a.losses.split(",")
    seconds, sets = {}, dict(map(load, a.files))
    print(f"{'set':16} {'loss':14} {'by':13} {'seconds':>9} {'objective':>12} {'accuracy':>9}")
    for name, (X, Xt, y, yt) in sets.items():
        for loss in losses:
            for w in who:
                model, seconds[name, loss, w] = learn_one(w, loss, a.C, X, y)
                if model is None:
                    continue
                stopped = "*" if w == "scikit-learn" and np.max(model.n_iter_) >= model.max_iter else " "
                print(f"{name:16} {loss:14} {w:13} {seconds[name, loss, w]:9.4f} {objective(model, loss, a.C, X, y):12.6g}{stopped} {100 * model.score(Xt, yt):7.2f} %", flush=True)
    X, Xt, y, yt = sets[a.path or next(iter(sets))]
    Cs = np.logspace(-5, 2, 8)
    accuracy = {loss: [learn_one(who[-1], loss, C, X, y)[0].score(Xt, yt) for C in Cs] for loss in losses}
    draw(who, losses, list(sets), seconds, Cs, accuracy)


def draw(who, losses, names, seconds, Cs, accuracy):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    labels = [f"{n}\n{loss}" for n in names for loss in losses]
    for k, w in enumerate(who):
        height = [seconds[n, loss, w] or 0 for n in names for loss in losses]
        left.bar(np.arange(len(labels)) + 0.8 * k / len(who), height, 0.8 / len(who), label=w)
    left.set_xticks(np.arange(len(labels)) + 0.4 * (len(who) - 1) / len(who), labels, rotation=90, fontsize=6)
    left.set_yscale("log")
    left.set_ylabel("seconds to learn")
    left.legend(fontsize=8)
    for loss in losses:
        right.semilogx(Cs, 100 * np.array(accuracy[loss]), "o-", label=loss)
    right.set_xlabel(f"C ({a.path or names[0]})")
    right.set_ylabel("accuracy on rows kept back, %")
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(a.o, dpi=130)
    print(a.o)


main()
