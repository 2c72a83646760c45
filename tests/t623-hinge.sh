#!/bin/bash
# The hinge loss with each method: the same optimum, within the reported gap, with weights of rows and classes, with a bias, on ranks, and with vectors of both kinds; the
# automatic choice; rows without entries or weight; unsupported cases.

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
# shellcheck source=tests/learn.sh
. "$(dirname "$0")/learn.sh"
xz -dc $data/farm_ads.svm.xz | head -n 200 >"$tmp/wide.svm"
gzip -dc $data/heart_scale.svm.gz >"$tmp/heart.svm"
awk '{print NR % 5}' "$tmp/heart.svm" >"$tmp/weights"

for options in "wide.svm -lambda 1e-1" "wide.svm -lambda 1 -bias 1" "heart.svm -lambda 0.3 -row_weights $tmp/weights -class_weights 1:3" "heart.svm -lambda 10"; do
  read -ra words <<<"$options"
  words[0]=$tmp/${words[0]}
  learn 1 -f "${words[@]}" -mat_type aij -epsilon 1e-5
  learn 1 -f "${words[@]}" -mat_type aij -epsilon 1e-5 -method dual
  learn 1 -f "${words[@]}" -mat_type gpucsr -vec_type standard -epsilon 1e-5 -method dual
  for vectors in standard gpu; do
    learn 1 -f "${words[@]}" -mat_type gpucsr -vec_type $vectors -epsilon 1e-5 -method interior
  done
  learn 1 -f "${words[@]}" -mat_type gpucsr -epsilon 1e-5 -method bundle -vector_losses
  learn 2 -f "${words[@]}" -mat_type gpucsr -epsilon 1e-5 -method interior
  learn 2 -f "${words[@]}" -mat_type aij -epsilon 1e-5
  same "$options"
done

# the chosen method: on one process the dual's coordinates, followed by the bundle method if columns are few and lambda is small; on several processes, or by vectors elsewhere, the bundle method, followed by
# the interior point method if lambda is small
chosen() { grep -q "\"tao_type\": \"$1\"" "$tmp/json" || fail "$2: $(cat "$tmp/json")"; rm "$tmp/json"; }
learn 1 -f "$tmp/wide.svm" -mat_type aij -lambda 1e-4 && chosen dual "one process"
learn 2 -f "$tmp/wide.svm" -mat_type aij -lambda 1e-4 && chosen interior "two processes"
learn 1 -f "$tmp/wide.svm" -mat_type gpucsr -vector_losses -lambda 1e-4 && chosen gpubmrm "vectors elsewhere, where so few entries are no reason"
learn 2 -f "$tmp/wide.svm" -mat_type aij -lambda 1e3 && chosen gpubmrm "a large lambda"
learn 1 -f "$tmp/heart.svm" -mat_type aij -lambda 1e-5 && chosen gpubmrm "few columns and a small lambda"
learn 1 -f "$tmp/heart.svm" -mat_type aij -lambda 1e-1 && chosen dual "few columns and a large lambda"
learn 1 -f "$tmp/wide.svm" -mat_type aij -lambda 1e-4 -method bundle && chosen gpubmrm "the bundle method asked for"

# rows without entries, without weight, and twice with both labels; nothing but rows without weight
{ cat "$tmp/heart.svm"; printf '1\n-1\n1 1:2 3:-1\n-1 1:2 3:-1\n'; } >"$tmp/odd.svm"
for method in bundle dual interior; do learn 1 -f "$tmp/odd.svm" -mat_type aij -lambda 1e-2 -epsilon 1e-5 -method $method; done
same "rows without entries"
awk '{print 0}' "$tmp/heart.svm" >"$tmp/none"
for method in dual interior; do learn 1 -f "$tmp/heart.svm" -row_weights "$tmp/none" -mat_type aij -method $method; done
same "rows without weight"

# unsupported uses
refuse() {
  local text=$1
  shift
  if "$BUILD/examples/bmrm" "$@" >"$tmp/out" 2>&1 </dev/null; then fail "bmrm $* ended well: $(cat "$tmp/out")"; fi
  grep -qF -- "$text" "$tmp/out" || fail "bmrm $*: expected '$text': $(cat "$tmp/out")"
}
for method in dual interior; do refuse "-method $method is for the hinge loss, not for -loss roc" -f "$tmp/heart.svm" -loss roc -method $method; done
refuse '-method dual is for one process' -f "$tmp/heart.svm" -vector_losses -method dual

# passes that run out
learn 1 -f "$tmp/wide.svm" -mat_type aij -lambda 1e-4 -method dual -tao_max_it 3
grep -q '^warning *not converged: after 3 iterations' "$tmp/out" || fail "an early end: $(cat "$tmp/out")"
