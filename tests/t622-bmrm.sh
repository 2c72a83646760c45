#!/bin/bash
# bmrm as a program: models that LIBLINEAR reads, the index of the first column, weights of rows and of classes, bias, probabilities, paths and cross-validation, labels in a
# file, ranking, few planes; and if LIBLINEAR is installed, the same objective with weights and a bias.

data=share/datasets/learning
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export PETSC_OPTIONS="${PETSC_OPTIONS:-} -dll_append $LIB -mat_gpucsr_backend $BACKEND"
fail() { echo "$*" >&2 && exit 1; }
for name in a9a.svm.gz breast-cancer.svm.gz; do gzip -dc "$data/$name" >"$tmp/${name%.gz}"; done
xz -dc $data/dna_onehot.svm.xz >"$tmp/dna.svm"
gzip -dc $data/heart_scale.svm.gz >"$tmp/heart.svm"

# learn OPTIONS ...: leaves stdout in out and its record, one line, in json
learn() {
  rm -f "$tmp/json"
  "$BUILD/examples/bmrm" -json "$tmp/json" "$@" >"$tmp/out" 2>&1 && return
  if grep -q "needs a PETSc of real numbers" "$tmp/out"; then exit 77; fi
  fail "bmrm $*: $(cat "$tmp/out")"
}
field() { sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" "$tmp/json"; }

# close A B SHARE: two numbers
close() { awk -v a="$1" -v b="$2" -v s="$3" 'BEGIN {d = a - b; if (d < 0) d = -d; m = a < 0 ? -a : a; exit !(a != "" && b != "" && d <= s * m)}' || fail "$4: $1 and $2"; }

# a model of columns from 0 is not one for columns from 1: rows with a stated base give an error, other rows are read with the model's
awk '{for (i = 2; i <= NF; i++) {split($i, p, ":"); $i = (p[1] - 1) ":" p[2]} print}' "$tmp/heart.svm" >"$tmp/zero.svm"
learn -f "$tmp/zero.svm" -lambda 1e-2 -model_out "$tmp/zero.model"
reached=$(sed -n 's/^training *//p' "$tmp/out")
grep -q '^base 0' "$tmp/zero.model" || fail "no base in $(tail -n 5 "$tmp/zero.model")"
grep -v '0:' "$tmp/zero.svm" | head -n 20 >"$tmp/without.svm" # nothing in it says where columns begin
learn -f "$tmp/zero.svm" -model "$tmp/zero.model" && grep -qF "$reached" "$tmp/out" || fail "applied to its own rows: $(cat "$tmp/out")"
learn -f "$tmp/heart.svm" -lambda 1e-2 -model_out "$tmp/one.model"
if "$BUILD/examples/bmrm" -f "$tmp/zero.svm" -model "$tmp/one.model" >"$tmp/out" 2>&1; then fail "columns from 0 with a model of columns from 1: $(cat "$tmp/out")"; fi
grep -q 'index 0, where the first index is 1' "$tmp/out" || fail "$(cat "$tmp/out")"
learn -f "$tmp/heart.svm" -model "$tmp/one.model" -predictions "$tmp/one.predictions" && grep -qF "$reached" "$tmp/out" || fail "columns from 1: $(cat "$tmp/out"), from 0 $reached"

# the view counts the multipliers
learn -f "$tmp/heart.svm" -lambda 1e-2 -method bundle -tao_type gpubmrm -tao_view
count=$(sed -n 's/.*rank 0: \([0-9]*\) multipliers are not zero.*/\1/p' "$tmp/out" | tail -n 1)
[ "${count:-0}" -ge 5 ] || fail "the view says that $count multipliers are not zero"

# a row of weight 3 counts as three rows, and a class of weight 3 likewise; the objective divides by rows, not by weights
awk '{print NR % 3 ? 1 : 3}' "$tmp/heart.svm" >"$tmp/weights"
awk 'NR % 3 {print; next} {print; print; print}' "$tmp/heart.svm" >"$tmp/thrice.svm"
for loss in hinge logistic; do
  for vectors in standard gpu; do
    learn -f "$tmp/thrice.svm" -loss $loss -lambda 1e-2 -epsilon 1e-7 -mat_type gpucsr -vec_type $vectors
    want=$(field objective)
    learn -f "$tmp/heart.svm" -row_weights "$tmp/weights" -loss $loss -lambda 0.0166666666666666667 -epsilon 1e-7 -mat_type gpucsr -vec_type $vectors
    close "$want" "$(awk -v a="$(field objective)" 'BEGIN {print a * 0.6}')" 1e-6 "$loss, weights of rows"
  done
done

# labels of their own, Matrix Market without, and rows without labels to predict
learn -f $data/heart_scale.petsc -lambda 1e-2 -loss logistic -model_out "$tmp/model" -predictions "$tmp/p1"
"$BUILD/bin/gpucsr-convert" "$tmp/heart.svm" "$tmp/heart.mtx" >/dev/null 2>&1 || fail "gpucsr-convert"
cut -d' ' -f1 "$tmp/heart.svm" >"$tmp/heart.labels"
learn -f "$tmp/heart.mtx" -labels "$tmp/heart.labels" -lambda 1e-2 -loss logistic -predictions "$tmp/p2"
cmp -s "$tmp/p1" "$tmp/p2" || fail "labels of their own: other predictions"
learn -f "$tmp/heart.mtx" -model "$tmp/model" -predictions "$tmp/p3" && grep -q '^data *270 rows without labels' "$tmp/out" || fail "$(cat "$tmp/out")"
cmp -s "$tmp/p1" "$tmp/p3" || fail "rows without labels: other predictions"
cut -d' ' -f2- "$tmp/heart.svm" >"$tmp/bare.svm"
learn -f "$tmp/bare.svm" -model "$tmp/model" -predictions "$tmp/p3" && grep -q '^data *270 rows without labels' "$tmp/out" || fail "$(cat "$tmp/out")"
cmp -s "$tmp/p1" "$tmp/p3" || fail "LIBSVM rows without labels: other predictions"
for first in bare heart; do
  other=$([ $first = bare ] && echo heart || echo bare)
  { head -n 200 "$tmp/$first.svm" && tail -n 70 "$tmp/$other.svm"; } >"$tmp/some.svm"
  if "$BUILD/examples/bmrm" -f "$tmp/some.svm" -model "$tmp/model" >"$tmp/out" 2>&1; then fail "labels of some rows: $(cat "$tmp/out")"; fi
  grep -q 'some.svm, line 201, column 1: expected .*label' "$tmp/out" || fail "labels of some rows: $(cat "$tmp/out")"
done
if "$BUILD/examples/bmrm" -f "$tmp/bare.svm" >"$tmp/out" 2>&1; then fail "learned without labels: $(cat "$tmp/out")"; fi
grep -q 'bare.svm: has no labels; -labels FILE gives them' "$tmp/out" || fail "$(cat "$tmp/out")"
learn -f "$tmp/heart.mtx" -model "$tmp/model" -predictions "$tmp/probabilities" -predictions_kind probability
awk 'NR == 1 {if ($0 != "labels 1 -1") exit 1; next} {s = $2 + $3; if (s < 0.999999 || s > 1.000001 || ($2 > 0.5) != ($1 > 0)) exit 1}' "$tmp/probabilities" || fail "probabilities: $(head -n 3 "$tmp/probabilities")"
learn -f "$tmp/heart.mtx" -model "$tmp/model" -predictions "$tmp/values" -predictions_kind value
paste -d' ' "$tmp/values" "$tmp/p1" | awk '($1 > 0) != ($2 > 0) {exit 1}' || fail "decision values"

# a path: each lambda as if alone, and the best by cross-validation, which is the same for every number of ranks
learn -f "$tmp/heart.svm" -lambdas 1e-4:1:5 -loss hinge -epsilon 1e-6 -cv 5
grep -q '^best *lambda' "$tmp/out" && grep -q '^cross *accuracy 0.8' "$tmp/out" || fail "$(cat "$tmp/out")"
path=$(awk '/^path/ {on = 1; next} on && /^ / {print $1, $3}' "$tmp/out")
[ "$(wc -l <<<"$path")" = 5 ] || fail "a path of $(cat "$tmp/out")"
while read -r lambda objective; do
  learn -f "$tmp/heart.svm" -lambda "$lambda" -epsilon 1e-6
  close "$objective" "$(field objective)" 2e-4 "lambda $lambda in a path"
done <<<"$path"

# few planes: mean of those left out, the same optimum
learn -f "$tmp/heart.svm" -lambda 1e-4 -epsilon 1e-5 && want=$(field objective)
learn -f "$tmp/heart.svm" -lambda 1e-4 -epsilon 1e-5 -tao_gpubmrm_planes 30
[ "$(field reason)" = CONVERGED ] || fail "30 planes: $(cat "$tmp/out")"
close "$want" "$(field objective)" 2e-5 "30 planes"

# ranking within queries: a line orders the labels perfectly, at another place in each query; and labels without queries
awk 'BEGIN {srand(3); for (q = 1; q <= 20; q++) for (i = 0; i < 6; i++) {a = rand(); b = rand(); print (a > 0.5) + (a > 0.8), "qid:" q, "1:" a, "2:" b, "3:" q}}' >"$tmp/rank.svm"
learn -f "$tmp/rank.svm" -loss rank -lambda 1e-4
grep -q '^training *pairs in order \(100\|9[89].*\)' "$tmp/out" || fail "ranking: $(cat "$tmp/out")"
if "$BUILD/examples/bmrm" -f "$tmp/heart.svm" -loss rank >"$tmp/out" 2>&1; then fail "ranking without queries"; fi
grep -q 'has no queries' "$tmp/out" || fail "$(cat "$tmp/out")"

# progress lines, and none without the option
learn -f "$tmp/heart.svm" -progress && grep -q '^iteration .* objective .* gap' "$tmp/out" || fail "no progress: $(cat "$tmp/out")"
learn -f "$tmp/heart.svm" && ! grep -q '^iteration' "$tmp/out" || fail "progress in a file: $(cat "$tmp/out")"

command -v liblinear-train >/dev/null && command -v liblinear-predict >/dev/null || exit 0

# LIBLINEAR applies our models, and we its
for name in breast-cancer dna; do
  for loss in hinge squared_hinge logistic; do
    learn -f "$tmp/$name.svm" -loss $loss -lambda 1e-2 -model_out "$tmp/model" -predictions "$tmp/ours"
    liblinear-predict "$tmp/$name.svm" "$tmp/model" "$tmp/theirs" >/dev/null || fail "liblinear-predict does not read $(head -n 6 "$tmp/model")"
    cmp -s "$tmp/ours" "$tmp/theirs" || fail "$name, $loss: LIBLINEAR predicts otherwise by our model"
  done
  liblinear-train -q -B 1 "$tmp/$name.svm" "$tmp/model" && liblinear-predict "$tmp/$name.svm" "$tmp/model" "$tmp/theirs" >/dev/null
  learn -f "$tmp/$name.svm" -model "$tmp/model" -predictions "$tmp/ours"
  cmp -s "$tmp/ours" "$tmp/theirs" || fail "$name: we predict otherwise by LIBLINEAR's model"
done

# weights of classes and a bias: the weights that LIBLINEAR finds. lambda = 1/(C n), n = 683
lambda=$(awk 'BEGIN {printf "%.17g", 1 / 683}')
learn -f "$tmp/breast-cancer.svm" -loss logistic -bias 1 -class_weights -1:1,1:5 -lambda "$lambda" -epsilon 1e-9 -model_out "$tmp/model"
liblinear-train -q -s 0 -B 1 -c 1 -w-1 1 -w1 5 -e 1e-8 "$tmp/breast-cancer.svm" "$tmp/theirs.model"
flip=$(awk '/^label/ {print $2 == 1 ? 1 : -1; exit}' "$tmp/theirs.model")
paste -d' ' <(awk 'on {print $1} /^w/ {on = 1}' "$tmp/model" | head -n 11) <(awk 'on {print $1} /^w/ {on = 1}' "$tmp/theirs.model" | head -n 11) |
  awk -v f="$flip" '{d = $1 - f * $2; if (d * d > 1e-6) exit 1} END {exit NR != 11}' || fail "weights of classes and a bias: other weights than LIBLINEAR's"
