#!/bin/bash
#
# The record of direct solvers on one GPU. Its parts are the tests of solver type cudss, direct.c, shift/shift.c, and the size from which cuDSS pays. The peers are MUMPS and SuperLU_DIST on RANKS
# processes and PETSc's LU on one core. After a failure or a timeout of one part or run the next one follows.
#
#   BUILD=build OUT=folder RANKS=16 LIMIT=560 src/benchmarks/direct/run.sh [tests|bench|stokes|elastic|crossover|shift|large|files ...]
#
# Without words all parts, in this order; LIMIT is in seconds, for all, MUMPS for a run of it with much to do. BUILD has what make lib tests benches makes, make cudss' library, and bench/shift (shift/shift.c, which needs SLEPc). $OUT/rows.txt gets
# the rows of the programs, $OUT/log.txt all output, $OUT/random.txt what t634-cudss-random says. SMALL=1 takes small sizes, STANDIN='...' adds options: a check of this script without a GPU.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd) && cd "$root" || exit 2
BUILD=${BUILD:-build} OUT=${OUT:-$BUILD/direct} RANKS=${RANKS:-16} LIMIT=${LIMIT:-560} SMALL=${SMALL:-} STANDIN=${STANDIN:-}
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac
LIB=$BUILD/lib/libpetscgpucsr.so
mkdir -p "$OUT" && : >"$OUT/rows.txt" && : >"$OUT/log.txt" || exit 2
begin=$SECONDS
export OMPI_MCA_ess_singleton_isolated=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
gpu="-dll_append $LIB -mat_type gpucsr -mat_gpucsr_backend cuda $STANDIN"
mpi="mpiexec --oversubscribe --bind-to none --mca mpi_yield_when_idle 0 -n $RANKS"

# step SECONDS COMMAND ...: at most so long, and no longer than is left of LIMIT
step() {
  local most=$1 left=$((LIMIT - SECONDS + begin)) from=$SECONDS status
  shift
  if ((left < 5)); then echo "left out, no time: $*" | tee -a "$OUT/log.txt" && return 1; fi
  if ((most > left)); then most=$left; fi
  echo "+ $*" >>"$OUT/log.txt"
  timeout -k 5 "$most" "$@" </dev/null >"$OUT/last.txt" 2>&1
  status=$?
  grep -vE 'PETSC ERROR: (Configure options|-)' "$OUT/last.txt" | tail -c 20000 >>"$OUT/log.txt"
  grep -E '^(shift|[A-Za-z0-9_./-]+ +[0-9]+ +[0-9]+ [a-z_]+ +[0-9]+:)' "$OUT/last.txt" | sed "s|$root/||; s|\$|${label:+  # $label}|" | tee -a "$OUT/rows.txt"
  echo "= status $status after $((SECONDS - from)) s" >>"$OUT/log.txt"
  if ((status)); then
    echo "FAILED, status $status after $((SECONDS - from)) of $most s: $*" | tee -a "$OUT/rows.txt"
    grep -E 'PETSC ERROR|rror' "$OUT/last.txt" | grep -vE 'Configure options|PETSC ERROR: -' | head -n 4
  fi
  return $status
}
alone() { step "$1" env OMP_NUM_THREADS="$RANKS" "${@:2}"; }
# cuDSS SECONDS CASE OPTIONS ... and a peer on all cores: SOLVER SECONDS CASE OPTIONS ...
# shellcheck disable=SC2086 # options are words
{
  cudss() { label=${*:3} alone "$1" "$BUILD/bench/direct" $gpu -solver cudss -cases "$2" "${@:3}"; }
  peer() { label=${*:4} step "$2" env OMP_NUM_THREADS=1 $mpi "$BUILD/bench/direct" -solver "$1" -mat_mumps_icntl_14 80 -cases "$3" "${@:4}"; }
}

# chunk FIRST OPTIONS ...: random programs, their failures in one file
chunk() {
  local log
  log=$(mktemp)
  # shellcheck disable=SC2086
  OMP_NUM_THREADS=2 timeout -k 2 "$((seconds - 8))" "$BUILD/tests/t634-cudss-random" -dll_append "$LIB" -mat_gpucsr_backend cuda $STANDIN -first "$1" -programs "$programs" "${@:2}" >"$log" 2>&1 </dev/null
  echo "random programs from $1: status $?, $(grep -c '^random program' "$log") failures" >"$log.head"
  { cat "$log.head" && grep -vE 'PETSC ERROR: (Configure options|-|See|Petsc Release)|MATGPUCSR warning' "$log" | head -c 40000; } >>"$OUT/random.txt"
  rm -f "$log" "$log.head"
}
export -f chunk
export BUILD LIB OUT STANDIN

# what_ksp WORDS ...: t633-cudss' system with an option of the solver
what_ksp() {
  # shellcheck disable=SC2086
  step 30 "$BUILD/tests/t633-cudss" $gpu -what ksp -pc_factor_mat_solver_type cudss "$@" >/dev/null && echo "t633 $*: passes" | tee -a "$OUT/rows.txt"
}

# One solve, with all that the library says of itself
probe() {
  # shellcheck disable=SC2086
  step 60 env CUDSS_LOG_LEVEL=4 "$@" "$BUILD/examples/solve" $gpu -f share/datasets/gr_30_30.mtx -ksp_type preonly -pc_type lu -pc_factor_mat_solver_type cudss -mat_gpucsr_small_on_host 0 -ksp_view -info
  grep -iE 'cudss|factors:|set-up|solves:|residual' "$OUT/last.txt" | cut -c1-240 | tail -n 40
  grep -q 'solves: 1, ' "$OUT/last.txt"
}
# Leaves out parts of a library that do not work
probes() {
  local layer=$BUILD/cudss/nvidia/cu13/lib/libcudss_mtlayer_gomp.so.1
  probe && return
  if probe CUDSS_JIT_DISABLE=1; then export CUDSS_JIT_DISABLE=1 && return; fi
  if [ -e "$layer" ] && mv "$layer" "$layer.aside"; then probe || mv "$layer.aside" "$layer"; fi
}

tests() {
  local left each=10
  step 150 env BACKEND=cuda tests/run.sh search=t633 BUILD="$BUILD" JOBS=4 LIMIT=140
  tail -n 40 "$OUT/last.txt"
  for word in nested_dissection amd colamd btf_colamd natural; do what_ksp -mat_gpucsr_cudss_reordering $word; done
  for word in none count smallest smallest_alternative sum product; do what_ksp -mat_gpucsr_cudss_matching $word; done
  for word in none diagonal block; do what_ksp -mat_gpucsr_cudss_pivoting $word; done
  what_ksp -mat_gpucsr_cudss_hybrid always
  what_ksp -mat_gpucsr_cudss_deterministic 1
  left=$((LIMIT - SECONDS + begin))
  : >"$OUT/random.txt"
  if [ "$SMALL" ]; then each=2; fi
  export seconds=$((left < 100 ? left : 100)) programs=$each
  if ((left > 10)); then
    {
      for ((k = 0; k < 20; k++)); do echo $((k * each)); done
      for ((k = 20; k < 24; k++)); do echo $((k * each)) -mat_gpucsr_master device; done
      for ((k = 24; k < 26; k++)); do echo $((k * each)) -mat_gpucsr_precision single; done
      for ((k = 26; k < 28; k++)); do echo $((k * each)) -mat_gpucsr_cudss_deterministic 1; done
    } | timeout -k 5 "$seconds" xargs -P "$(($(nproc) < 7 ? $(nproc) : 7))" -L 1 bash -c 'chunk "$@"' chunk
  fi
  awk '/^random programs from/ { chunks++; failed += $7; if ($6 != "0,") bad = bad " " $4 $6 } END { print "t634: " chunks " chunks, failures " failed + 0 ", first and status of those that did not end well:" bad }' "$OUT/random.txt" | tee -a "$OUT/rows.txt"
  step 60 env BACKEND=cuda tests/run.sh search='t630 t631' BUILD="$BUILD" JOBS=4 LIMIT=50
  tail -n 15 "$OUT/last.txt"
}

bench() {
  local spd=(lap7_46 st27_46 elastic_32 elastic_46 st27_67) lu=(conv2_316 conv2_1000 elastic_32)
  if [ "$SMALL" ]; then spd=(lap7_5 elastic_4) lu=(conv2_12); fi
  ( # the library compiles kernels when they are first needed: never, for each process, and once for all
    unset CUDSS_JIT_CACHE_DIR
    CUDSS_JIT_DISABLE=1 cudss 60 "${spd[0]}" -cholesky -spd
    cudss 60 "${spd[0]}" -cholesky -spd
  )
  for k in "${spd[0]}" "${spd[@]}"; do
    cudss 60 "$k" -cholesky -spd
  done
  for k in "${spd[@]}"; do
    peer mumps 90 "$k" -cholesky -spd -repeats 1
  done
  for k in "${lu[@]}"; do
    cudss 60 "$k"
    peer mumps 60 "$k" -repeats 1
  done
  cudss 40 "${spd[0]}" -cholesky -spd -mat_gpucsr_cudss_hybrid always
  cudss 40 "${spd[0]}" -cholesky -spd -mat_gpucsr_cudss_deterministic 1
  peer superlu_dist 60 "${lu[0]}" -repeats 1
  peer superlu_dist 60 "${spd[0]}" -repeats 1
}

# Saddle points: Stokes' equations
stokes() {
  local saddle=(stokes_182 stokes_577)
  if [ "$SMALL" ]; then saddle=(stokes_8); fi
  for k in "${saddle[@]}"; do
    cudss 40 "$k" -cholesky
    cudss 40 "$k"
    peer mumps 60 "$k" -cholesky -repeats 1
  done
  cudss 40 "${saddle[0]}" -cholesky -mat_gpucsr_cudss_pivoting bunch_kaufman
  cudss 40 "${saddle[0]}" -cholesky -mat_gpucsr_cudss_matching product
}

# Elasticity: a million rows, and quadratic elements
elastic() {
  local spd=(quadratic_16 elastic_70 quadratic_34)
  if [ "$SMALL" ]; then spd=(elastic_4 quadratic_2); fi
  for k in "${spd[@]}"; do
    cudss 90 "$k" -cholesky -spd -repeats 2
    peer mumps "${MUMPS:-120}" "$k" -cholesky -spd -repeats 0
  done
}

# Real matrices, all as unsymmetric
files() {
  local all=(share/datasets/{Trefethen_2000,add32,bcsstk16,bcsstk27,bfw782a,cavity14,Chem97Zt,circuit204,epb0,nos3,sherman3,de2010,wiki-Vote}.petsc)
  if [ "$SMALL" ]; then all=(share/datasets/circuit204.petsc); fi
  for k in "${all[@]}"; do
    cudss 20 "$k"
    step 20 env OMP_NUM_THREADS=1 "$BUILD/bench/direct" -solver mumps,petsc -cases "$k" -mat_mumps_icntl_14 80
  done
}

crossover() {
  local sizes=(conv2_{32,45,64,100,141,200,316} lap7_{10,14,18,22})
  if [ "$SMALL" ]; then sizes=(conv2_12 lap7_4); fi
  for k in "${sizes[@]}"; do
    # shellcheck disable=SC2086
    alone 30 "$BUILD/bench/direct" $gpu -solver cudss,gpucsr -cases "$k"
  done
  if [ ! "$SMALL" ]; then
    # shellcheck disable=SC2086
    alone 40 "$BUILD/bench/direct" $gpu -solver cudss,gpucsr -cases lap7_28 -repeats 1
  fi
}

# eigen DIMENSIONS POINTS lu|cholesky: SLEPc's shift-and-invert
eigen() {
  # shellcheck disable=SC2086
  {
    label=$3 alone 60 "$BUILD/bench/shift" $gpu -dim "$1" -m "$2" -eps_target 1.3 -st_pc_type "$3" -st_pc_factor_mat_solver_type cudss
    label=$3 step 90 env OMP_NUM_THREADS=1 $mpi "$BUILD/bench/shift" -dim "$1" -m "$2" -eps_target 1.3 -st_pc_type "$3" -st_pc_factor_mat_solver_type mumps -st_mat_mumps_icntl_14 80
  }
}
shift_invert() {
  if [ "$SMALL" ]; then
    eigen 3 6 lu
    eigen 2 12 cholesky
  else
    eigen 3 46 lu
    eigen 3 46 cholesky
    eigen 2 316 lu
    eigen 2 1000 lu
    eigen 3 80 lu
  fi
}

large() {
  local spd=(lap7_100 st27_100) lu=(conv2_2000 lap7_100)
  if [ "$SMALL" ]; then spd=(lap7_6) lu=(conv2_14); fi
  for k in "${spd[@]}"; do cudss 90 "$k" -cholesky -spd; done
  for k in "${lu[@]}"; do cudss 90 "$k"; done
  peer mumps 120 "${lu[0]}" -repeats 0
  for k in "${spd[@]}"; do peer mumps 200 "$k" -cholesky -spd -repeats 0; done
}

{
  date -u
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  grep -m 1 'model name' /proc/cpuinfo
  echo "$(nproc) processors, $RANKS ranks"
  ldd "$LIB" "$BUILD/bench/direct" "$BUILD/bench/shift" | grep -oE "(lib[a-z_]*(blas|mumps|mpi|petsc)[^ ]* => [^ ]*|.*not found)" | sort -u
} 2>&1 | tee -a "$OUT/log.txt"
parts=("$@")
if ((!$#)); then parts=(tests bench stokes elastic crossover shift large files); fi
echo "== probe" | tee -a "$OUT/rows.txt" "$OUT/log.txt"
probes
CUDSS_JIT_CACHE_DIR=$(mktemp -d) && export CUDSS_JIT_CACHE_DIR
for part in "${parts[@]}"; do
  from=$SECONDS
  echo "== $part" | tee -a "$OUT/rows.txt" "$OUT/log.txt"
  case $part in
  tests | bench | stokes | elastic | files | crossover | large) $part ;;
  shift) shift_invert ;;
  *) echo "no part: $part" >&2 ;;
  esac
  echo "== $part: $((SECONDS - from)) s" | tee -a "$OUT/log.txt"
done
echo "kernels compiled at run time: $(find "$CUDSS_JIT_CACHE_DIR" -type f | wc -l) files" | tee -a "$OUT/rows.txt"
rm -rf "$OUT/last.txt" "$CUDSS_JIT_CACHE_DIR"
echo "== all rows"
cat "$OUT/rows.txt"
