"""Linear models with scikit-learn's interface. PETSc computes the products, on a GPU if the options say so.

    import petsc4py, gpucsr
    petsc4py.init(gpucsr.options(mat_type=True).split())
    from gpucsr.learn import LogisticRegression
    model = LogisticRegression(C=1.0).fit(X, y)        # X: a SciPy CSR matrix, or any other input of scikit-learn

LinearSVC, LogisticRegression and Ridge minimise the objectives of scikit-learn, |w|^2/2 + C sum of losses (Ridge: |y - Xw|^2 + alpha |w|^2). With more than two classes each is learned
against all others. Smooth losses use a truncated Newton method. The hinge loss uses the bundle method gpubmrm; with many planes, or without the library, an interior point method.

fit() copies the matrix once, to a PETSc matrix of type -mat_type.
"""
import ctypes
import functools
import numbers
import warnings

import numpy as np
import scipy.sparse as sparse
from petsc4py import PETSc
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

__all__ = ["LinearSVC", "LogisticRegression", "Ridge"]


class _Rows:
    """X as a PETSc matrix; unless `bias` is None, with an additional implicit column of that value"""

    def __init__(self, X, bias):
        X = sparse.csr_matrix(X)
        self.bias = bias
        self.shape = (X.shape[0], X.shape[1] + (bias is not None))
        self.A = PETSc.Mat().create(PETSc.COMM_SELF)
        self.A.setSizes(X.shape)
        self.A.setFromOptions()
        self.A.setPreallocationCSR((X.indptr.astype(PETSc.IntType, copy=False), X.indices.astype(PETSc.IntType, copy=False), X.data.astype(PETSc.ScalarType, copy=False)))
        self.A.assemble()
        self.x, self.y = self.A.createVecs()
        self.X, self.entries, self.pairs = X, X.nnz, float(np.sum(np.diff(X.indptr).astype(float) ** 2))

    def scores(self, w):
        n = self.A.getSize()[1]
        self.x.setArray(w[:n])
        self.A.mult(self.x, self.y)
        return self.y.getArray(readonly=True).copy() if self.bias is None else self.y.getArray(readonly=True) + self.bias * w[n]

    def transposed(self, c):
        self.y.setArray(c)
        self.A.multTranspose(self.y, self.x)
        g = self.x.getArray(readonly=True)
        return g.copy() if self.bias is None else np.append(g, self.bias * c.sum())

    def solve(self, h, lam, g, residual):
        """Solves (lam + X' diag(h) X) p = g: directly with few columns, otherwise by conjugate gradients to the given residual"""
        if self.shape[1] <= FEW:
            H = (self.X.T @ sparse.diags(h) @ self.X).toarray()
            if self.bias is not None:
                side = self.bias * (self.X.T @ h)
                H = np.block([[H, side[:, None]], [side[None, :], self.bias**2 * h.sum()]])
            return np.linalg.solve(H + lam * np.eye(len(H)), g)
        p, r, q, rr = np.zeros_like(g), g.copy(), g.copy(), np.dot(g, g)
        residual = max(residual, 1e-10 * np.sqrt(rr))
        for _ in range(10000):
            if np.sqrt(rr) <= residual:
                break
            z = self.transposed(h * self.scores(q)) + lam * q
            k = rr / np.dot(q, z)
            p += k * q
            r -= k * z
            rr, old = np.dot(r, r), rr
            q = r + rr / old * q
        return p

    def destroy(self):
        self.X = None
        for o in (self.A, self.x, self.y):
            o.destroy()


# A loss: values, slopes and second derivatives by the scores, for labels y (of two classes -1 and 1)
def _hinge(s, y):
    m = np.maximum(1 - y * s, 0)
    return m, np.where(m > 0, -y, 0.0), None


def _squared_hinge(s, y):
    m = np.maximum(1 - y * s, 0)
    return m * m, -2 * y * m, 2.0 * (m > 0)


def _logistic(s, y):
    m = y * s
    p = np.exp(-np.maximum(m, 0)) / (1 + np.exp(-np.abs(m)))
    return np.logaddexp(0, -m), -y * p, p * (1 - p)


def _squares(s, y):
    return 0.5 * (s - y) ** 2, s - y, np.ones_like(s)


FLOOR = 1e-6  # # tolerances are relative to the objective, but at least to this share of the rows' weights: separable rows have an objective near 0


def _newton(rows, loss, y, u, lam, tol, max_iter):
    """Weights that minimise sum lam w^2/2 + sum u loss; lam has one number a weight, 0: not regularised. The line search needs no product"""
    w = np.zeros(rows.shape[1])
    s = np.zeros(rows.shape[0])
    value = 0.0
    for it in range(max_iter):
        f, c, h = loss(s, y)
        value = 0.5 * np.dot(lam * w, w) + np.dot(u, f)
        near = tol * max(value, FLOOR * u.sum())
        g = rows.transposed(u * c) + lam * w
        h = u * h
        # # conjugate gradients, while a step lowers the model by more than a quarter of the mean of the previous ones (Nash and Sofer, 1990), or of the remaining objective
        p, sp, r, total = np.zeros_like(w), np.zeros_like(s), -g, 0.0
        q, rr = r.copy(), np.dot(r, r)
        for k in range(1, 10001):
            if rr == 0:
                break
            sq = rows.scores(q)
            curve = np.dot(h * sq, sq) + np.dot(lam * q, q)
            if not curve > 0:
                break
            a = rr / curve
            p += a * q
            sp += a * sq
            gain = 0.5 * a * rr
            total += gain
            if (k > 1 and k * gain <= 0.25 * min(total, abs(value - total)) * (1 if total > near else 1e-3)) or gain <= 1e-3 * near:
                break
            r -= a * (rows.transposed(h * sq) + lam * q)
            rr, old = np.dot(r, r), rr
            q = r + rr / old * q
        step = _search(loss, y, u, s, sp, np.dot(lam * w, p), np.dot(lam * p, p))
        w += step * p
        s += step * sp
        if step == 0 or (total <= 0.25 * near and step > 0.5):
            return w, it + 1, True
    return w, max_iter, False


def _search(loss, y, u, s, d, linear, square, tol=0.1):
    """The step k along d that minimises linear k + square k^2/2 + sum u loss(s + k d): the root of its slope by false position (Illinois), until the slope is tol times the first one. At a kink the slope
    jumps; then the search ends with a small bracket, and the step is its lower end, up to which the function decreases"""

    def slope(k):
        return linear + k * square + np.dot(u * loss(s + k * d, y)[1], d)

    low, high, at_low, at_high, k, side = 0.0, None, slope(0.0), 0.0, 1.0, 0
    first = -at_low
    if first <= 0:
        return 0.0
    for _ in range(60):
        h = slope(k)
        if abs(h) <= tol * first:
            return k
        if h < 0:
            low, at_low = k, h
            at_high *= 0.5 if side < 0 else 1
            side = -1
        else:
            high, at_high = k, h
            at_low *= 0.5 if side > 0 else 1
            side = 1
        if high is None:
            k = 4 * k
        elif low > 0 and high - low <= 1e-3 * high:
            break
        else:
            k = min(max((low * at_high - high * at_low) / (at_high - at_low), low + 0.01 * (high - low)), high - 0.01 * (high - low))
    return low


def _hinge_search(y, u, s, d, linear, square):
    """The same for the hinge loss, exactly: the slope rises by u |y d| where a row's loss begins or ends"""
    m, b = 1 - y * s, y * d
    first = linear - np.dot(u * b, m > 0)
    if first >= 0:
        return 0.0
    turns = np.flatnonzero(np.where(m > 0, b > 0, b < 0))
    k = m[turns] / b[turns]
    turns, k = turns[k * square < -first], k[k * square < -first]
    order = np.argsort(k)
    k, slopes = k[order], first + np.append(0.0, np.cumsum((u[turns] * np.abs(b[turns]))[order]))  # before each turn, and at the end
    j = np.searchsorted(slopes[1:] + square * k, 0.0)
    return min(-slopes[j] / square, k[j] if j < len(k) else np.inf)


LONG = 1000  # # estimated products of an interior point method that solves its equations by conjugate gradients
FEW = 500  # # most columns for solving them directly, and estimated iterations with DIRECT
DIRECT = 60
SHORT = 60  # # minimum number of iterations of the bundle method


def _hinge_weights(rows, loss, y, u, lam, tol, max_iter, solver="auto"):
    """Weights that minimise sum lam w^2/2 + sum u hinge, lam the same for all: by the bundle method, and with many planes by an interior point method"""
    found = (None, 0, False)
    if solver != "interior":
        found = _bundle(rows, loss, y, u, lam[0], tol, max_iter, solver == "bundle")
    return found if found[0] is not None else _interior(rows, y, u, lam[0], tol, max_iter)


def _bundle(rows, loss, y, u, lam, tol, max_iter, alone):
    """gpubmrm with a line search (Franc and Sonnenburg, 2009). The weights are None if gpubmrm is not registered, or if there are too many planes and another method may follow"""
    petsc, pointer, real = ctypes.CDLL(PETSc.__file__), ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)
    (m, n), errors, scores = rows.shape, [], [np.zeros(rows.shape[0])]
    tao = PETSc.TAO().create(PETSc.COMM_SELF)
    try:
        tao.setType("gpubmrm")
    except PETSc.Error:
        if alone:
            raise ValueError("solver='bundle' needs the library: petsc4py.init(gpucsr.options(mat_type=True).split())") from None
        return None, 0, False

    def step(point, w, g):
        s = near = scores[0]
        if point is not w:
            p, d = point - w, rows.scores(point) - s
            k = _hinge_search(y, u, s, d, lam * np.dot(w, p), lam * np.dot(p, p))
            w += k * p
            scores[0] = s + k * d
            near = s + (k + 0.1 * (1 - k)) * d  # # the next plane is a part of the way on
        f, c, _ = loss(near, y)
        g[:] = rows.transposed(u * c)
        return 0.5 * lam * np.dot(w, w) + np.dot(u, loss(scores[0], y)[0]), np.dot(u, f) - np.dot(u * c, near)

    def search(_, point, w, G, value, offset):
        arrays = {v: real() for v in (point, w, G)}
        for v, a in arrays.items():
            petsc.VecGetArray(pointer(v), ctypes.byref(a))
        of = {v: np.ctypeslib.as_array(a, (n,)) for v, a in arrays.items()}
        try:
            value[0], offset[0] = step(of[point], of[w], of[G])
        except Exception as e:  # which cannot pass through PETSc
            errors.append(e)
        for v, a in arrays.items():
            petsc.VecRestoreArray(pointer(v), ctypes.byref(a))
        return 77 if errors else 0

    # # Iterations with the cost of the interior point method. In entries read: forming X' diag(h) X costs 4 for each pair of entries in a row, vectors of rows 30 and 60, Python's calls the rest
    turn = max(SHORT, DIRECT * (4 * rows.pairs + 60 * m + 1e6) / (2 * rows.entries + 30 * m + 2e5)) if n <= FEW else np.inf

    def monitor(tao):
        it = tao.getIterationNumber()
        if it > turn or it * it * n > LONG * rows.entries:
            tao.setConvergedReason(PETSc.TAO.Reason.DIVERGED_USER)

    function = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, pointer, pointer, real, real)(search)
    petsc.PetscObjectComposeFunction_Private(pointer(tao.handle), b"TaoGPUBMRMSearch_C", function)
    PETSc.Options()["tao_bmrm_lambda"] = float(lam)
    W = PETSc.Vec().createSeq(n)
    G = W.duplicate()
    tao.setObjectiveGradient(lambda *_: 0.0, G)  # # not called, because the search replaces it
    tao.setTolerances(gatol=tol * FLOOR * u.sum(), grtol=tol, gttol=0.0)
    tao.setMaximumIterations(max_iter)
    if not alone:
        tao.setMonitor(monitor)
    tao.setFromOptions()
    try:
        tao.setSolution(W)
    except AttributeError:  # before 3.17
        tao.setInitial(W)
    try:
        tao.solve()
    except PETSc.Error:
        if errors:
            raise errors[0] from None
        raise
    reason = tao.getConvergedReason()
    its = tao.getIterationNumber()
    w = None if reason == PETSc.TAO.Reason.DIVERGED_USER else W.getArray().copy()
    for o in (tao, W, G):
        o.destroy()
    return w, its, reason > 0


def _interior(rows, y, u, lam, tol, max_iter):
    """An interior point method (Ferris and Munson, 2002). Each row has a margin t = 1 - y s, a slack x > max(0, t), the distance r = x - t, and a multiplier a, with a r = mu and (1 - a) x = mu"""
    w, s, total, lower, room = np.zeros(rows.shape[1]), np.zeros(rows.shape[0]), u.sum(), -np.inf, 1.0
    if total == 0:
        return w, 0, True
    x = np.full(len(s), (3 + np.sqrt(5)) / 2)  # the point of the central path for mu = 1 and no weights
    r = x - 1
    a = 1 / r
    b = 1 - a  # # stored separately, as 1 - a has few digits if a is near 1
    for it in range(max_iter):
        value = np.dot(u, np.maximum(1 - y * s, 0)) + 0.5 * lam * np.dot(w, w)
        g = rows.transposed(u * y * a)
        lower = max(lower, np.dot(u, a) - np.dot(g, g) / (2 * lam))
        near = tol * max(value, FLOOR * total)
        if value - lower <= near:
            return w, it, True
        mu = max(np.dot(u, a * r + b * x) / (2 * total) * (0.1 if room > 0.9 else 0.25 if room > 0.5 else 0.5), 0.4 * near / total)
        den = a * x + b * r
        theta = a * b / den
        da = mu * (b - a) / den + theta * (x - r)
        p = rows.solve(u * theta, lam, rows.transposed(u * y * (a + da)) - lam * w, np.sqrt(0.2 * lam * mu * total))
        sp = rows.scores(p)
        da -= theta * y * sp
        dx = (mu + x * da) / b - x
        dr = dx + y * sp
        least = min(np.min(d / v) for d, v in ((dx, x), (dr, r), (da, a), (-da, b)))
        room = 0.98 * min(1 / 0.98, -1 / least if least < 0 else np.inf)
        w += room * p
        s += room * sp
        x += room * dx
        r += room * dr
        a += room * da
        b -= room * da
    return w, max_iter, False


class _Linear(BaseEstimator):
    def _learn(self, X, y, sample_weight, loss, C, bias, penalty, method=_newton):
        """One weight vector, and the intercept: |w|^2/2 + C sum of losses. penalty: of the intercept's weight"""
        u = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        lam = np.ones(self._rows.shape[1])
        if bias is not None:
            lam[-1] = penalty
        w, its, converged = method(self._rows, loss, y, C * u, lam, self.tol, self.max_iter)
        if not converged:
            warnings.warn(f"{type(self).__name__} did not converge in {its} iterations: a larger max_iter or tol, or rows of a common scale, may help", ConvergenceWarning)
        self.n_iter_ = max(getattr(self, "n_iter_", 0), its)
        return (w, 0.0) if bias is None else (w[:-1], bias * w[-1])

    def _fit_rows(self, X, bias):
        self._rows = _Rows(X, bias)
        self.n_iter_ = 0

    def _forget(self):
        self._rows.destroy()
        del self._rows

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _LinearClassifier(ClassifierMixin, _Linear):
    def _fit(self, X, y, sample_weight, loss, bias, penalty, method=_newton):
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, where = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"This solver needs samples of at least 2 classes in the data, but the data contains only one class: {self.classes_[0]!r}")
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64).copy()
        if self.class_weight is not None:
            from sklearn.utils.class_weight import compute_class_weight

            weight *= compute_class_weight(self.class_weight, classes=self.classes_, y=y, **({"sample_weight": sample_weight} if self.class_weight == "balanced" and sample_weight is not None else {}))[where]
        if not (isinstance(self.C, numbers.Real) and self.C > 0):
            raise ValueError(f"C has to be positive, not {self.C!r}")
        self._fit_rows(X, bias)
        found = [self._learn(X, np.where(where == k, 1.0, -1.0), weight, loss, self.C, bias, penalty, method) for k in ([1] if len(self.classes_) == 2 else range(len(self.classes_)))]
        self._forget()
        self.coef_ = np.array([w for w, _ in found])
        self.intercept_ = np.array([b for _, b in found])
        return self

    def decision_function(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=np.float64)
        s = X @ self.coef_.T + self.intercept_
        return s.ravel() if s.ndim > 1 and s.shape[1] == 1 else s

    def predict(self, X):
        s = self.decision_function(X)
        return self.classes_[(s > 0).astype(int) if s.ndim == 1 else s.argmax(axis=1)]


class LinearSVC(_LinearClassifier):
    """A linear support vector machine; the intercept is regularised, as scikit-learn's is. loss: squared_hinge or hinge; tol: distance to the optimum, as a share of the optimum (or of a
    millionth of the rows' weights if that is larger); solver, for the hinge loss: auto, bundle or interior"""

    def __init__(self, C=1.0, *, loss="squared_hinge", solver="auto", tol=1e-4, fit_intercept=True, intercept_scaling=1.0, class_weight=None, max_iter=10000):
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.max_iter = max_iter

    def fit(self, X, y, sample_weight=None):
        if self.loss not in ("squared_hinge", "hinge"):
            raise ValueError(f"loss is squared_hinge or hinge, not {self.loss!r}")
        if self.solver not in ("auto", "bundle", "interior") or (self.solver != "auto" and self.loss != "hinge"):
            raise ValueError(f"solver is auto or, for loss='hinge', bundle or interior, not {self.solver!r}")
        bias = self.intercept_scaling if self.fit_intercept else None
        if self.loss == "hinge":
            return self._fit(X, y, sample_weight, _hinge, bias, 1.0, functools.partial(_hinge_weights, solver=self.solver))
        return self._fit(X, y, sample_weight, _squared_hinge, bias, 1.0)


class LogisticRegression(_LinearClassifier):
    """Logistic regression; the intercept is not regularised. With more than two classes each is learned against the rest; scikit-learn's is multinomial"""

    def __init__(self, C=1.0, *, tol=1e-4, fit_intercept=True, class_weight=None, max_iter=1000):
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter

    def fit(self, X, y, sample_weight=None):
        return self._fit(X, y, sample_weight, _logistic, 1.0 if self.fit_intercept else None, 0.0)

    def predict_proba(self, X):
        s = self.decision_function(X)
        p = np.exp(-np.logaddexp(0, -s))
        if s.ndim == 1:
            return np.column_stack([np.exp(-np.logaddexp(0, s)), p])
        return p / p.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))


class Ridge(RegressorMixin, _Linear):
    """Least squares with |w|^2; the intercept is not regularised"""

    def __init__(self, alpha=1.0, *, tol=1e-12, fit_intercept=True, max_iter=1000):
        self.alpha = alpha
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, multi_output=True)
        if not (isinstance(self.alpha, numbers.Real) and self.alpha > 0):
            raise ValueError(f"alpha has to be positive, not {self.alpha!r}")
        bias = 1.0 if self.fit_intercept else None
        self._fit_rows(X, bias)
        columns = y.astype(np.float64).reshape(len(y), -1)
        u = _check_sample_weight(sample_weight, X, dtype=np.float64)
        mean = np.average(columns, axis=0, weights=u) if self.fit_intercept and u.sum() > 0 else np.zeros(columns.shape[1])
        found = [self._learn(X, columns[:, k] - mean[k], sample_weight, _squares, 1 / self.alpha, bias, 0.0) for k in range(columns.shape[1])]
        self._forget()
        self.coef_ = np.array([w for w, _ in found])
        self.intercept_ = np.array([b for _, b in found]) + mean
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=np.float64)
        return X @ self.coef_.T + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
