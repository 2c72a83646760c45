#!/bin/sh
# The record of assembly on the device, with the programs of `make benches` or `make carry`: lines of JSON in OUT/coo.jsonl, reports and logs in OUT, and a table at the end.
#
#   run.sh [-build build] [-cuda-build FOLDER] [-out FOLDER] [-points 100] [-grid 128] [-variable yes] [-masters "host device"] [-cells 62] [-boxes 34] [-ranks 16] [-options "..."]
#
#   -build       products built for a stock PETSc: bench/coo, lib/libpetscgpucsr.so; the libraries of `make carry` are found beside it
#   -cuda-build  bench/coo built for a PETSc with CUDA, for aijcusparse; optional
#   -out         default bench-results, or $OUT
#   -points, -grid           points a side of the P1 mesh and of the 27-point grid; 0: without
#   -variable    each element of a Newton step has its own coefficient (yes), or all have the same (no)
#   -masters     copies of the values that are the master in turn
#   -cells, -boxes           cells a side of Stokes' equations, on the staggered grid and with Taylor-Hood elements; 0: without
#   -ranks       of MATAIJ on the host; MPIEXEC names the launcher and its options
#   -options     for the runs with gpucsr: the stand-in for a GPU, say
set -u
build=build cudabuild= out=${OUT:-bench-results} points=100 grid=128 variable=yes masters="host device" cells=62 boxes=34 ranks=16 options=
here=$(dirname "$0")
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "run.sh: $1 needs a value" >&2; exit 2; }
  case $1 in
    -build) build=$2 ;;
    -cuda-build) cudabuild=$2 ;;
    -out) out=$2 ;;
    -points) points=$2 ;;
    -grid) grid=$2 ;;
    -variable) variable=$2 ;;
    -masters) masters=$2 ;;
    -cells) cells=$2 ;;
    -boxes) boxes=$2 ;;
    -ranks) ranks=$2 ;;
    -options) options=$2 ;;
    *) echo "run.sh: unknown option $1 (see its head)" >&2; exit 2 ;;
  esac
  shift 2
done
mkdir -p "$out" || exit 2
: > "$out/coo.jsonl"
status=0
elements="-points $points -grid $grid -variable $variable"
stokes="-points 0 -grid 0 -parts stokes -rounds 2 -stokes_ksp_rtol 1e-8 -stokes_pc_fieldsplit_schur_fact_type lower
  -stokes_fieldsplit_u_ksp_type preonly -stokes_fieldsplit_u_pc_type gamg -stokes_fieldsplit_p_ksp_type preonly -stokes_fieldsplit_p_pc_type jacobi"
taylorhood="-element taylorhood -stokes_fieldsplit_u_pc_gamg_aggressive_coarsening 0"

# go LOG FOLDER [LAUNCHER ...] - OPTION ...: bench/coo of a folder
go() {
  log=$1 folder=$2 launcher=
  shift 2
  while [ "$1" != - ]; do launcher="$launcher $1"; shift; done
  shift
  begin=$(date +%s)
  env LD_LIBRARY_PATH="$folder/lib:$(dirname "$folder")/lib-$(basename "$folder")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" $launcher "$folder/bench/coo" "$@" -o "$out/coo.jsonl" >> "$out/$log.log" 2>&1 || { echo "run.sh: $log failed, see $out/$log.log" >&2; status=1; }
  echo "$log: $(($(date +%s) - begin)) s"
}
gpu() {
  log=$1
  shift
  go "$log" "$build" - -dll_append "$build/lib/libpetscgpucsr.so" -mat_type gpucsr -vec_type gpu $options "$@"
}

for master in $masters; do
  gpu newton-$master $elements -parts newton -patterns 1 -mat_gpucsr_master $master -newton_ksp_type gpucg -mat_gpucsr_report ":$out/newton-$master.report"
  sed -n "s/.*values of matrices \([^ ]*\) MB and \([^ ]*\) MB.*/{\"record\": \"bytes\", \"type\": \"gpucsr\", \"master\": \"$master\", \"sent_mb\": \1, \"back_mb\": \2}/p" "$out/newton-$master.report" >> "$out/coo.jsonl"
  gpu elements-$master $elements -mat_gpucsr_master $master -rounds 5
done
[ -z "$cudabuild" ] || go aijcusparse "$cudabuild" - -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0 $elements -parts assembly,newton -patterns 1 -rounds 3
for element in staggered taylorhood; do
  case $element in staggered) its="-cells $cells" n=$cells ;; *) its="$taylorhood -cells $boxes" n=$boxes ;; esac
  [ "$n" -gt 0 ] || continue
  for layout in "" -interlaced -nest; do
    for method in gmres gpugmres; do gpu $element-$method$layout $stokes $its $layout -stokes_ksp_type $method -mat_gpucsr_report ":$out/$element-$method$layout.report"; done
  done
  go $element-aij "$build" ${MPIEXEC:-mpiexec} -n "$ranks" - -mat_type aij $stokes $its -stokes_ksp_type gmres
done
command -v python3 > /dev/null && python3 "$here/table.py" "$out/coo.jsonl"
exit $status
