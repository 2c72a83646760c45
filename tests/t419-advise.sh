#!/bin/bash
#
# -mat_gpucsr_advise: its output before the first product, once for all ranks of a host, and in the report; its output without a GPU, with a
# profile of another machine, and for a matrix without a model. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
case $BUILD in /*) examples=$BUILD/examples ;; *) examples=$PWD/$BUILD/examples ;; esac
failed=0

# says NAME TEXT COMMAND ...: the command says TEXT
says() {
  local name=$1 text=$2
  shift 2
  "$@" >"$tmp/$name" 2>&1
  if ! grep -qF -- "$text" "$tmp/$name"; then
    echo "$name: does not say: $text" && cat "$tmp/$name"
    failed=1
  fi
}
# count NAME N TEXT: N lines have it
count() {
  local n
  n=$(grep -cF -- "$3" "$tmp/$1")
  if ((n != $2)); then
    echo "$1: says $n times, should $2: $3" && cat "$tmp/$1"
    failed=1
  fi
}

read -ra launcher <<<"${MPIEXEC:-mpiexec}"
run=("$examples/poisson3d" -n 12 -dll_append "$LIB" -mat_gpucsr_backend "$BACKEND" -mat_type gpucsr)
says first "MATGPUCSR advice for 1728 x 1728" "${run[@]}" -mat_gpucsr_advise
count first 1 "    take: "
count first 1 "CPU, one core, MATSEQAIJ"
count first 1 "GPU, gpucg from b to x"
count first 3 " GPUs, each"
count first 1 "products were predicted to take"
if [ "$BACKEND" = host ] && ! [ -e /dev/nvidia0 ]; then count first 1 "there is no GPU here"; fi
says none "outcome" "${run[@]}"
count none 0 "advice"
# the diagonal block of one of two ranks speaks
says ranks "MATGPUCSR advice for" "${launcher[@]}" -n 2 "${run[@]}" -mat_gpucsr_advise
count ranks 1 "MATGPUCSR advice for"
sed 's/^machine.*/machine Nobody 3000/' <<'END' >"$tmp/profile"
gpucsr-profile 6
machine
cost csr csr_vector8 8 8 inf 1  3 0.1 0.2 0 0.1 0 0 0 0 0 0 0 0 0 0 0 0 0  20 0
END
says other "Nobody 3000" "${run[@]}" -mat_gpucsr_advise -mat_gpucsr_profile "$tmp/profile"
sed -i 's/ 6$/ 5/' "$tmp/profile"
says version 'its first line is not "gpucsr-profile 6"; `make tune` writes a new one' "${run[@]}" -mat_gpucsr_advise -mat_gpucsr_profile "$tmp/profile"
says unknown "none for 1728 x 1728: The profile has no line for format jad" "${run[@]}" -mat_gpucsr_advise -mat_gpucsr_format jad -mat_gpucsr_profile <(printf 'gpucsr-profile 6\nmachine A\ncost csr csr_vector8 8 8 inf 1  3 0.1 0.2 0 0.1 0 0 0 0 0 0 0 0 0 0 0 0 0  20 0\n')
count unknown 1 "outcome"
exit $failed
