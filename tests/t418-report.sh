#!/bin/bash
#
# -mat_gpucsr_report: totals and one line a matrix, or everything; to the terminal or a file; and the reason if there is nothing to report. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
program=$BUILD/examples/poisson3d
case $BUILD in /*) ;; *) program=$PWD/$program ;; esac
failed=0

# says NAME TEXT ARGS ...: the program, with ARGS, says TEXT
says() {
  local name=$1 text=$2
  shift 2
  # shellcheck disable=SC2086 # a launcher is words
  $program -n 6 -dll_append "$LIB" -mat_gpucsr_backend "$BACKEND" "$@" >"$tmp/$name" 2>&1
  if ! grep -qF -- "$text" "$tmp/$name"; then
    echo "$name: does not say: $text" && cat "$tmp/$name"
    failed=1
  fi
}
# the same of two ranks
says2() {
  local alone=$program
  program="$MPIEXEC -n 2 $alone"
  says "$@"
  program=$alone
}
not() {
  if grep -qF -- "$2" "$tmp/$1"; then
    echo "$1: says: $2" && cat "$tmp/$1"
    failed=1
  fi
}

ours="-mat_type gpucsr -mat_gpucsr_format csr"
# shellcheck disable=SC2086 # words
{
  says short "matrices 1 of 1: products 11 in" $ours -mat_gpucsr_report
  not short "candidates for A"
  if (($(wc -l <"$tmp/short") > 14 || $(wc -L <"$tmp/short") > 240)); then
    echo "short: is not" && cat "$tmp/short"
    failed=1
  fi
  says full "candidates for A" $ours -mat_gpucsr_report full
  says file "outcome" $ours -mat_gpucsr_report ":$tmp/told"
  not file "MATGPUCSR report"
  grep -qF "products 11" "$tmp/told" || { echo "file: is not written" && failed=1; }
  says filevec "outcome" $ours -mat_gpucsr_report ":$tmp/told" -vec_type gpu
  not filevec "VECGPU"
  grep -qF "VECGPU: " "$tmp/told" || { echo "filevec: vectors are not in the file" && failed=1; }
  says fullfile "outcome" $ours -mat_gpucsr_report "full:$tmp/told"
  grep -qF "candidates for A" "$tmp/told" || { echo "fullfile: is not written" && failed=1; }
  says off "outcome" $ours -mat_gpucsr_report no
  not off "MATGPUCSR report"
  says none "no matrix of type gpucsr; -mat_type gpucsr" -mat_type aij -mat_gpucsr_report
  says2 ranks "the most that one has is 1.00 of it" $ours -mat_gpucsr_report full
  says bad "must be nothing, full, :file or full:file" $ours -mat_gpucsr_report everything
}
exit $failed
