#!/bin/bash
# A bias without regularisation: each loss has the same optimum with each method, on ranks and with vectors of both kinds; the limit of a regularised bias with a large column; LIBLINEAR's
# weights if LIBLINEAR is installed; several classes, weights of rows, a path of lambdas, models; unsupported cases.

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
# shellcheck source=tests/learn.sh
. "$(dirname "$0")/learn.sh"
gzip -dc $data/heart_scale.svm.gz >"$tmp/heart.svm"
xz -dc $data/dna_onehot.svm.xz | head -n 400 >"$tmp/dna.svm"
awk '{print NR % 5}' "$tmp/heart.svm" >"$tmp/weights"
free="-bias 1 -bias_regularised 0"

# risk LOSS: the risk that bmrm followed, shift by shift of its scores, belongs to its final weights and bias; rounding of an update at each of 1e4 iterations
risk() {
  python3 - "$tmp/json" "$tmp/scores" "$tmp/heart.svm" "$tmp/weights" "$1" <<'PYTHON' || fail "$1: the weights have another risk: $(tail -n 1 "$tmp/json")"
import json, math, sys
read = lambda name: [float(line.split()[0]) for line in open(name)]
scores, labels, weights = read(sys.argv[2]), read(sys.argv[3]), read(sys.argv[4])
loss = {"hinge": lambda s, y: max(0, 1 - y * s), "squared_hinge": lambda s, y: max(0, 1 - y * s) ** 2, "logistic": lambda s, y: math.log1p(math.exp(-y * s)), "least_squares": lambda s, y: 0.5 * (s - y) ** 2,
        "absolute": lambda s, y: abs(s - y), "insensitive": lambda s, y: max(0, abs(s - y) - 0.1), "quantile": lambda s, y: 0.5 * abs(s - y)}[sys.argv[5]]
risk = sum(u * loss(s, y) for s, y, u in zip(scores, labels, weights)) / len(scores)
sys.exit(not abs(risk - json.loads(list(open(sys.argv[1]))[-1])["risk"]) <= 1e4 * 2.3e-16 * (1 + max(map(abs, scores))) ** 2)
PYTHON
}

# the bias of a model: its last weight times the value of the column
bias_of() { awk '/^bias / {value = $2} /^bmrm/ {exit} {last = $1} END {printf "%.17g", value * last}' "$1"; }

# a column of the value B, regularised: the optimum lies above by lambda/2 (b/B)^2 at the most
for loss in hinge squared_hinge logistic f1 least_squares absolute insensitive quantile; do
  options=(-f "$tmp/heart.svm" -loss $loss -lambda 1e-2 -epsilon 1e-5 -mat_type gpucsr)
  if [ $loss = f1 ]; then options+=(-quiet); else options+=(-row_weights "$tmp/weights" -predictions "$tmp/scores" -predictions_kind value); fi
  found() { learn "$@" && if [ $loss != f1 ]; then risk $loss; fi; }
  learn 1 "${options[@]}" -bias 300
  # shellcheck disable=SC2086 # options are words
  {
    found 1 "${options[@]}" $free -model_out "$tmp/model"
    found 1 "${options[@]}" $free -vec_type gpu
    case $loss in # on ranks by turns: t621 has both with each loss
    hinge | logistic | f1 | insensitive) found 2 "${options[@]}" $free ;;
    *) found 2 "${options[@]}" -bias 3 -bias_regularised 0 -vector_losses ;;
    esac
    case $loss in
    hinge) for ranks in 1 2; do found $ranks "${options[@]}" $free -method interior; done ;;
    quantile | f1) found 1 "${options[@]}" $free -tao_type bmrm ;;
    *) found 1 "${options[@]}" $free -tao_type gpubmrm ;;
    esac
  }
  b=$(bias_of "$tmp/model")
  same "$loss" "$(awk -v b="$b" 'BEGIN {print 0.5e-2 * (b / 300) ^ 2}')"
done

# several classes, each with its own bias: by a path of lambdas, whose end is the optimum of its lambda
# shellcheck disable=SC2086
for loss in hinge squared_hinge; do
  learn 1 -f "$tmp/dna.svm" -loss $loss -lambdas 1e-1,1e-2 -epsilon 1e-5 $free -mat_type gpucsr -cv 2
  path=$(awk '$1 == 0.01 {print $3}' "$tmp/out") # in four digits
  learn 1 -f "$tmp/dna.svm" -loss $loss -lambda 1e-2 -epsilon 1e-5 $free -mat_type aij -model_out "$tmp/model" -predictions "$tmp/learned"
  python3 -c 'import json, sys; sys.exit(not abs(json.loads(list(open(sys.argv[1]))[-1])["objective"] / float(sys.argv[2]) - 1) <= 6e-4)' "$tmp/json" "$path" || fail "$loss, three classes, by a path $path: $(cat "$tmp/json")"
  learn 1 -f "$tmp/dna.svm" -model "$tmp/model" -predictions "$tmp/applied"
  cmp -s "$tmp/learned" "$tmp/applied" || fail "$loss: the model predicts otherwise than when it was learned"
done

# the weights that LIBLINEAR finds. lambda = 1/(C n), n = 270
if command -v liblinear-train >/dev/null && liblinear-train -q -s 0 -B 1 -R "$tmp/heart.svm" "$tmp/theirs" >/dev/null 2>&1; then
  for loss in logistic:0 squared_hinge:2; do
    # shellcheck disable=SC2086
    learn 1 -f "$tmp/heart.svm" -loss ${loss%:*} $free -lambda 0.0037037037037037038 -epsilon 1e-10 -model_out "$tmp/model"
    liblinear-train -q -s ${loss#*:} -B 1 -R -c 1 -e 1e-8 "$tmp/heart.svm" "$tmp/theirs"
    flip=$(awk '/^label/ {print $2 == 1 ? 1 : -1; exit}' "$tmp/theirs")
    paste -d' ' <(awk 'on {print $1} /^w/ {on = 1}' "$tmp/model" | head -n 14) <(awk 'on {print $1} /^w/ {on = 1}' "$tmp/theirs" | head -n 14) |
      awk -v f="$flip" '{d = $1 - f * $2; if (d * d > 1e-8) exit 1} END {exit NR != 14}' || fail "$loss: other weights than LIBLINEAR's"
  done
fi

# unsupported uses
refuse() {
  local text=$1
  shift
  if "$BUILD/examples/bmrm" "$@" >"$tmp/out" 2>&1 </dev/null; then fail "bmrm $* ended well: $(cat "$tmp/out")"; fi
  grep -qF -- "$text" "$tmp/out" || fail "bmrm $*: expected '$text': $(cat "$tmp/out")"
}
refuse '-bias_regularised 0 is about a bias: give -bias 1' -f "$tmp/heart.svm" -bias_regularised 0
# shellcheck disable=SC2086
{
  refuse '-loss roc depends on differences of scores' -f "$tmp/heart.svm" -loss roc $free
  refuse '-method dual is for a bias that is regularised' -f "$tmp/heart.svm" -method dual $free
}
