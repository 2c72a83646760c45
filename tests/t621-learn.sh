#!/bin/bash
# bmrm on the learning sets: several classes, labels of any numbers, agreement of matrix types and ranks, models written and applied, validation rows from
# another file, and LIBLINEAR's optimum if LIBLINEAR is installed.

data=share/datasets/learning
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export PETSC_OPTIONS="${PETSC_OPTIONS:-} -dll_append $LIB -mat_gpucsr_backend $BACKEND"
fail() { echo "$*" >&2 && exit 1; }

set_of() {
  case $1 in
  *.gz) gzip -dc "$data/$1" ;;
  *) xz -dc "$data/$1" ;;
  esac >"$tmp/$(basename "${1%.svm.*}").svm"
}
for name in dna_onehot.svm.xz breast-cancer.svm.gz a9a.svm.gz a9a.t.svm.gz agaricus.train.svm.gz; do set_of $name; done

# learn RANKS OPTIONS ...: leaves stdout in out and its record in the last line of json
learn() {
  local ranks=$1
  shift
  local launch=()
  if [ "$ranks" -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  "${launch[@]}" "$BUILD/examples/bmrm" -json "$tmp/json" "$@" >"$tmp/out" 2>&1 && return
  if grep -q "needs a PETSc of real numbers" "$tmp/out"; then exit 77; fi
  fail "bmrm $*: $(cat "$tmp/out")"
}

# near FIELD TOLERANCE: that field of all lines of json is the same
near() {
  python3 - "$tmp/json" "$1" "$2" <<'PYTHON' || fail "$1 differs by more than $2 among: $(cat "$tmp/json")"
import json, sys
values = [json.loads(line)[sys.argv[2]] for line in open(sys.argv[1])]
sys.exit(not (len(values) > 1 and max(values) - min(values) <= float(sys.argv[3])))
PYTHON
}

# three classes: every type, one rank and two, both bundle methods
for type in aij gpucsr dense; do
  for ranks in 1 2; do
    learn $ranks -f "$tmp/dna_onehot.svm" -lambda 1e-2 -epsilon 1e-4 -mat_type $type -tao_type gpubmrm
  done
done
learn 1 -f "$tmp/dna_onehot.svm" -lambda 1e-2 -epsilon 1e-4 -mat_type gpucsr -tao_type bmrm
near objective 2e-4
near accuracy 0.002
rm "$tmp/json"

# models of two classes, named 2 and 4, and of three
for name in breast-cancer dna_onehot; do
  learn 2 -f "$tmp/$name.svm" -lambda 1e-2 -epsilon 1e-3 -mat_type gpucsr -tao_type gpubmrm -model_out "$tmp/model" -predictions "$tmp/predictions"
  accuracy=$(sed -n 's/^training *\(accuracy.*\)/\1/p' "$tmp/out")
  learn 1 -f "$tmp/$name.svm" -mat_type gpucsr -model "$tmp/model" -predictions "$tmp/again"
  grep -qF "$accuracy" "$tmp/out" || fail "$name: the model reached '$accuracy' when it was learned; applied, $(cat "$tmp/out")"
  cmp -s "$tmp/predictions" "$tmp/again" || fail "$name: predictions of the same model differ"
  [ "$(wc -l <"$tmp/again")" = "$(wc -l <"$tmp/$name.svm")" ] || fail "$name: not a prediction a row"
  [ -z "$(sort -u "$tmp/again" | comm -23 - <(cut -d' ' -f1 "$tmp/$name.svm" | sed 's/^+//' | sort -u))" ] || fail "$name: predictions that are no labels"
done

rm "$tmp/json"

# losses by vectors of another kind than the host's: the same subgradient, the same optimum
for loss in hinge squared_hinge logistic least_squares absolute insensitive quantile; do
  learn 2 -f $data/heart_scale.petsc -check -loss $loss -mat_type gpucsr -vec_type gpu
  learn 1 -f $data/heart_scale.petsc -check -loss $loss -mat_type aij -vector_losses
  for vectors in standard gpu; do
    learn 1 -f $data/heart_scale.petsc -loss $loss -lambda 1e-2 -epsilon 1e-5 -mat_type gpucsr -tao_type gpubmrm -vec_type $vectors
  done
  learn 1 -f $data/heart_scale.petsc -loss $loss -lambda 1e-2 -epsilon 1e-5 -mat_type aij -vector_losses
  near objective 2e-5
  rm "$tmp/json"
done

# labels 0 and 1, and a file of fewer columns to judge by
learn 1 -f "$tmp/agaricus.train.svm" -lambda 1e-3 -epsilon 1e-3 -mat_type gpucsr
grep -q '^training *accuracy \(100.00\|99...\) %' "$tmp/out" || fail "agaricus.train: $(cat "$tmp/out")"
for ranks in 1 2; do
  learn $ranks -f "$tmp/a9a.svm" -validation_file "$tmp/a9a.t.svm" -lambda 1e-3 -epsilon 1e-3 -mat_type gpucsr -tao_type gpubmrm
  grep -q '^validation *accuracy 8[45]\.' "$tmp/out" || fail "a9a: $(cat "$tmp/out")"
done

rm "$tmp/json"

if [ "$BACKEND" = cuda ]; then exit 0; fi # what follows asks nothing of a device: files, options and models

# what cannot be learned from, or be meant: an error that says so, and nothing learned
# refuse TEXT OPTIONS ...
refuse() {
  local text=$1
  shift
  if timeout 60 "$BUILD/examples/bmrm" "$@" >"$tmp/out" 2>&1 </dev/null; then fail "bmrm $* ended well: $(cat "$tmp/out")"; fi
  grep -qF -- "$text" "$tmp/out" || fail "bmrm $*: expected '$text': $(cat "$tmp/out")"
  ! grep -q '^outcome\|Caught signal' "$tmp/out" || fail "bmrm $*: crashed, or learned: $(cat "$tmp/out")"
}
refuse '-quantile lies between 0 and 1, not at 1.5' -f $data/heart_scale.petsc -loss quantile -quantile 1.5
for word in inf nan; do refuse $word -f $data/heart_scale.petsc -lambda $word; done # by the program, or by PETSc 3.24
refuse '-lambda has to be positive and finite, not 0' -f $data/heart_scale.petsc -lambda 0
for word in '' "$(seq -s, 201)"; do refuse '-lambdas takes 1 to 200 numbers' -f $data/heart_scale.petsc -lambdas "$word"; done
refuse 'no row has the label 7' -f $data/heart_scale.petsc -class_weights -1:2,7:3
refuse '-class_weights is for losses of classes' -f $data/heart_scale.petsc -loss absolute -class_weights 1:3
refuse '-lamda is no option of this program' -f $data/heart_scale.petsc -lamda 1
[ "$(wc -l <"$tmp/out")" -le 2 ] || fail "an error of several lines: $(cat "$tmp/out")"
refuse '-insensitive is a distance, 0 or more, not -3' -f $data/heart_scale.petsc -loss insensitive -insensitive -3
for option in model_out predictions json; do refuse '/nowhere/file: cannot be written' -f $data/heart_scale.petsc -$option /nowhere/file; done
refuse '/nowhere/file: cannot be read' -f $data/heart_scale.petsc -validation_file /nowhere/file
{ yes -- '-1 1:1 2:2' | head -n 6; echo '1 1:1'; yes -- '-1 2:1' | head -n 40; } >"$tmp/one.svm"
for loss in roc f1; do refuse "-loss $loss compares two classes" -f "$tmp/one.svm" -loss $loss -validation 0.6 -seed 5; done
printf '1 1:1\n-1 1:2\n' >"$tmp/two.svm"
refuse 'there is no row to learn from' -f "$tmp/two.svm" -validation 0.9999999
python3 - "$tmp" <<'PYTHON'
import struct, sys
nan, folder = float("nan"), sys.argv[1]
def vec(v): return struct.pack(f">ii{len(v)}d", 1211214, len(v), *v)
def data(name, values, labels):
    open(f"{folder}/{name}", "wb").write(struct.pack(">8i", 1211216, 2, 2, 2, 1, 1, 0, 1) + struct.pack(">2d", *values) + vec(labels))
def model(name, loss, labels, *rows, more="", columns=2, bias=-1):
    head = f"solver_type L2R_LR\nnr_class {max(len(labels), 2)}\n" + ("label " + " ".join(map(str, labels)) + "\n" if labels else "") + f"nr_feature {columns}\nbias {bias}\nw\n"
    open(f"{folder}/{name}", "w").write(head + "".join(" ".join(map(str, r)) + "\n" for r in rows) + f"bmrm 1\nloss {loss}\n{more}")
data("label.petsc", [1, 1], [1, nan])
data("value.petsc", [1, nan], [1, -1])
data("infinite.petsc", [float("inf"), 1], [1, -1])
model("roc3.model", "roc", [1, 2, 3], [1, 2, 3], [1, 2, 3])
model("f13.model", "f1", [1, 2, 3], [1, 2, 3], [1, 2, 3])
model("targets.model", "least_squares", [2, 1], [1], [2])
model("classes.model", "hinge", [], [1], [2])
model("order.model", "hinge", [3, 2, 3], [1, 2, 3], [1, 2, 3])
model("nan.model", "hinge", [1, -1], ["nan"], [1])
model("short.model", "hinge", [1, -1], [1])
model("long.model", "hinge", [1, -1], [1], [2], [3])
model("loss.model", "plinge", [1, -1], [1], [2])
model("line.model", "hinge", [1, -1], [1], [2], more="lamda 3\n")
open(f"{folder}/empty.model", "w").close()
open(f"{folder}/old.model", "wb").write(vec([0, 0, 1, -1, 1]) + vec([0.5, 1]))
PYTHON
refuse 'label.petsc: the label of row 1 is not a finite number' -f "$tmp/label.petsc"
refuse 'value.petsc: the risk or its subgradient at zero is not finite' -f "$tmp/value.petsc"
refuse 'infinite.petsc: the risk or its subgradient at zero is not finite' -f "$tmp/infinite.petsc" -mat_type gpucsr
for name in roc3 f13 targets classes order nan short long loss line empty old; do refuse "$name.model: is no model of this program" -f "$tmp/two.svm" -model "$tmp/$name.model"; done

# messages: iterations that ran out, labels and columns unknown to the model
learn 1 -f $data/heart_scale.petsc -tao_max_it 3 -model_out "$tmp/early.model" && grep -q '^warning *not converged: after 3 iterations the gap is' "$tmp/out" || fail "no warning of an early end: $(cat "$tmp/out")"
[ -s "$tmp/early.model" ] && [ ! -e "$tmp/early.model.info" ] || fail "written: $(ls "$tmp"/early*)"
printf '1 1:1\n3 20:2\n' >"$tmp/other.svm"
learn 2 -f "$tmp/other.svm" -model "$tmp/early.model"
grep -q '^labels *1 rows of .*other.svm have labels that the model does not know' "$tmp/out" && grep -q '^columns .*has 20, the model 13: those beyond are left out' "$tmp/out" || fail "labels and columns of another file: $(cat "$tmp/out")"
learn 1 -f $data/heart_scale.petsc -validation_file "$tmp/two.svm"
grep -q '^columns .*two.svm has 1, the model 13: those missing count as zero' "$tmp/out" || fail "a file to judge by of one column: $(cat "$tmp/out")"

# the first row is drawn like the other rows, and so not always among the rows to judge by
printf '0.5 1:1\n' >"$tmp/first.svm" && yes '2 2:1' | head -n 9 >>"$tmp/first.svm"
learn 1 -f "$tmp/first.svm" -loss least_squares -validation 0.05 -predictions "$tmp/chosen"
[[ $(head -n 1 "$tmp/chosen") = 0.* ]] || fail "the first row was not learned from: $(cat "$tmp/out" "$tmp/chosen")"

# sets of few rows are exact, too; sizes beyond the integers are errors
"$BUILD/examples/learnset" -set news20 -scale 0.01 >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
if "$BUILD/examples/learnset" -set news20 -scale 1e7 >"$tmp/out" 2>&1; then fail "learnset -scale 1e7: $(cat "$tmp/out")"; fi
grep -q 'more rows or columns than the integers' "$tmp/out" || fail "$(cat "$tmp/out")"

if command -v liblinear-train >/dev/null; then
  unset PETSC_OPTIONS
  src/benchmarks/learning/liblinear.py -build "$BUILD" -options "-mat_type gpucsr -mat_gpucsr_backend $BACKEND" "$data"/heart_scale.svm.gz "$data"/breast-cancer.svm.gz "$data"/dna_onehot.svm.xz:1e-2 >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
fi
