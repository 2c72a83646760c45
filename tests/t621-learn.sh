#!/bin/bash
# bmrm on the learning sets: several classes, labels of any numbers, matrix types and ranks that agree, models that are written and applied, rows to judge by from
# another file, and LIBLINEAR's optimum where LIBLINEAR is installed.

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
  for vectors in standard gpu; do
    learn 1 -f $data/heart_scale.petsc -loss $loss -lambda 1e-2 -epsilon 1e-5 -mat_type gpucsr -tao_type gpubmrm -vec_type $vectors
  done
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

if command -v liblinear-train >/dev/null; then
  unset PETSC_OPTIONS
  src/benchmarks/liblinear.py -build "$BUILD" -options "-mat_type gpucsr -mat_gpucsr_backend $BACKEND" "$data"/heart_scale.svm.gz "$data"/breast-cancer.svm.gz "$data"/dna_onehot.svm.xz:1e-2 >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
fi
