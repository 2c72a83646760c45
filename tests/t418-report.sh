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
  # advice depends on times
  if (($(grep -cv '^  try: ' "$tmp/short") > 13 || $(wc -L <"$tmp/short") > 240)); then
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
  # a reason once, whatever the number of matrices and ranks; counts of all ranks; no block without entries; no kind of product without a count
  reason="or not wanted, when this library was built" kind="-mat_gpucsr_backend auto -mat_type gpucsr"
  if $program -n 6 -dll_append "$LIB" -mat_gpucsr_backend cuda 2>&1 | grep -q "$reason"; then
    says2 reason "on the host: 4 matrices, because" $kind -ksp_type gpucg -mat_gpucsr_report
    if [ "$(grep -v "solves instead" "$tmp/reason" | grep -c "$reason")" != 1 ]; then
      echo "reason: is not said once" && cat "$tmp/reason"
      failed=1
    fi
    not reason "products 0 in"
    says instead "in place of gpucg, because the operator is on no device" $kind -ksp_type gpucg -mat_gpucsr_report
    if grep "^  solver" "$tmp/instead" | grep -q "$reason"; then
      echo "instead: says the reason again" && cat "$tmp/instead"
      failed=1
    fi
  fi
  says2 sums "report of 2 ranks" $ours -ksp_type cg -mat_gpucsr_report
  if [ "$(grep -c "MATGPUCSR report" "$tmp/sums")" != 1 ] || ! grep -q "2 times diagonal block of 216 x 216, 1224 nonzeros in all: csr" "$tmp/sums"; then
    echo "sums: are none over the ranks" && cat "$tmp/sums"
    failed=1
  fi
  # a line for each solver: type, preconditioner, solves, iterations, time, path and why
  says solver "solver cg, pc jacobi: 1 solve, 10 iterations" $ours -ksp_type cg -mat_gpucsr_report
  standin="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_type gpucsr -mat_gpucsr_report"
  if [ "$BACKEND" = host ] && $program -n 6 -dll_append "$LIB" $standin >"$tmp/standin" 2>&1; then
    for type in cg bcgs gmres fgmres; do says "$type" "path graph, because" $standin -ksp_type gpu$type -ksp_rtol 1e-3 -log_view; done
    for type in cg bcgs gmres fgmres; do grep -q "^KSPGPUGraph  *1 " "$tmp/$type" || { echo "$type: has no event KSPGPUGraph" && failed=1; }; done
    says loop "path host_loop, because asked for" $standin -ksp_type gpucg -ksp_gpucg_path host_loop -log_view
    for event in KSPGPUHostLoop MatGPUBuild MatGPUMult; do grep -q "^$event " "$tmp/loop" || { echo "loop: has no event $event" && failed=1; }; done
    says twin "try: -ksp_type gpucg, which iterates on the device" $standin -ksp_type cg
    says2 empty "without entries" $standin -ksp_type cg -n 8 -pc_type gamg
    not empty " 0 nonzeros"
    says number "try: -mat_gpucsr_expected_mults 2, the number" $standin -n 40 -ksp_type cg -ksp_max_it 1
    not number "expected_mults N"
    if (($(wc -l <"$tmp/empty") > 40)); then
      echo "empty: is more than a screen" && cat "$tmp/empty"
      failed=1
    fi
  fi
  says off "outcome" $ours -mat_gpucsr_report no
  not off "MATGPUCSR report"
  says none "no matrix of type gpucsr; -mat_type gpucsr" -mat_type aij -mat_gpucsr_report
  says2 ranks "the largest share is 1.00 of the mean" $ours -mat_gpucsr_report full
  says bad "must be empty, full, :file or full:file" $ours -mat_gpucsr_report everything
}
exit $failed
