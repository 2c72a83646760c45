#!/bin/sh
# Run all benchmarks from what `make benches` built, on a machine with a GPU; nothing is compiled here.
#
#   run.sh [-build build] [-cuda-build FOLDER] [-out FOLDER] [-dir FOLDER,...] [-budget SECONDS] [-id TEXT] [-parts spmv,hostvec,ksp,ranks] [-ranks 1,2] [-cases NAME,...] [-file NAME,...]
#
#   -build       products built for a stock PETSc: bench/{spmv,hostvec,ksp}, lib/libpetscgpucsr.so
#   -cuda-build  the same built for a PETSc with CUDA, if there is one: KSP with aijcusparse and with device vectors
#   -out         gets bench.jsonl (begun anew) and one .log a program; default bench-results, or $OUT
#   -dir         folders of real matrices in PETSc binary, beside share/datasets; an archive .tar.xz is unpacked first
#   -ranks       numbers of ranks, a GPU each, of the part ranks (1,2), which is measured where it is asked for; MPIEXEC names the launcher and its options
#   -cases       of the part ranks, as bench/ranks has them, instead of all; convection7_N is for BiCGStab, the others for CG
#   -file        matrices in PETSc binary for the part ranks: products. "real", which is the default without -cases: kddcup99_10pct of share/datasets/learning, the co-occurrences of the words of
#                farm_ads there (85 million entries), and, where `make examples` was run, reuters-ccat and kdd99 of learnset (61 million each)
#   -budget      seconds for everything (480): 5/8 for spmv, 1/8 for hostvec, the rest for ksp; a program that runs out says so
#
# Then, where there is Python: src/benchmarks/tables/summary.py OUT/bench.jsonl
set -u
build=build cudabuild= out=${OUT:-bench-results} dirs= budget=480 id= parts=spmv,hostvec,ksp ranks=1,2 files= cases=
here=$(dirname "$0")
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "run.sh: $1 needs a value" >&2; exit 2; }
  case $1 in
    -build) build=$2 ;;
    -cuda-build) cudabuild=$2 ;;
    -out) out=$2 ;;
    -dir) dirs=$2 ;;
    -budget) budget=$2 ;;
    -id) id=$2 ;;
    -parts) parts=$2 ;;
    -ranks) ranks=$2 ;;
    -file) files=$2 ;;
    -cases) cases=$2 ;;
    *) echo "run.sh: unknown option $1 (see its head)" >&2; exit 2 ;;
  esac
  shift 2
done
[ -n "$id" ] || id=$(git -C "$here" describe --always --dirty 2>/dev/null) || id=unknown
mkdir -p "$out" || exit 2
: > "$out/bench.jsonl"
status=0

folders=$here/../../share/datasets
for d in $(echo "$dirs" | tr , ' '); do
  case $d in
    *.tar.xz)
      mkdir -p "$out/unpacked" && tar xJf "$d" -C "$out/unpacked" || exit 2
      for f in "$out"/unpacked "$out"/unpacked/*/; do folders=$folders,${f%/}; done ;;
    *) folders=$folders,$d ;;
  esac
done

# has PART; go LOG PROGRAM OPTION ...: both outputs into the log, which the end shows
has() { case ,$parts, in *,$1,*) ;; *) return 1 ;; esac; }
go() {
  log=$out/$1.log
  shift
  if ! command -v "$1" > /dev/null; then
    echo "run.sh: $1 is not there: make benches" >&2
    status=1
    return
  fi
  "$@" -o "$out/bench.jsonl" -id "$id" >> "$log" 2>&1 || { echo "run.sh: $1 failed, see $log" >&2; status=1; }
}
# peer NAME PROGRAM OPTION ...: the same with what the products of the CUDA PETSc need
peer() {
  log=$1
  shift
  go "$log" env LD_LIBRARY_PATH="$cudabuild/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
}

# real: real matrices as $files
real() {
  for set in kddcup99_10pct farm_ads; do
    xz -dc "$here/../../share/datasets/learning/$set.svm.xz" > "$out/$set.svm" && "$build/bin/gpucsr-convert" "$out/$set.svm" "$out/$set.petsc" >> "$out/ranks.log" 2>&1 || { echo "run.sh: $set could not be converted: make convert" >&2; status=1; }
    rm -f "$out/$set.svm"
  done
  files=$out/kddcup99_10pct.petsc,gram:$out/farm_ads.petsc
  [ -x "$build/examples/learnset" ] || return
  for set in reuters-ccat kdd99; do
    ${MPIEXEC:-mpiexec} -n 4 "$build/examples/learnset" -set $set -o "$out/$set.petsc" >> "$out/ranks.log" 2>&1 && files=$files,$out/$set.petsc
  done
}
rm -f "$out"/spmv.log "$out"/hostvec.log "$out"/ksp.log "$out"/ranks.log

how=go
[ -z "$cudabuild" ] || how=peer
has spmv && $how spmv "${cudabuild:-$build}/bench/spmv" ${cudabuild:+-use_gpu_aware_mpi 0} -dir "$folders" -budget $((budget * 5 / 8))
has hostvec && go hostvec "$build/bench/hostvec" -budget $((budget / 8))
if has ksp; then
  runs=1
  [ -z "$cudabuild" ] || runs=3
  each=$((budget / 4 / runs))
  go ksp "$build/bench/ksp" -mat_type gpucsr -dll_append "$build/lib/libpetscgpucsr.so" -budget $each
  if [ -n "$cudabuild" ]; then
    peer ksp "$cudabuild/bench/ksp" -mat_type aijcusparse -use_gpu_aware_mpi 0 -budget $each
    peer ksp "$cudabuild/bench/ksp" -mat_type gpucsr -dll_append "$cudabuild/lib/libpetscgpucsr.so" -budget $each
  fi
fi
if has ranks; then
  [ -n "$files$cases" ] || files=real
  [ "$files" != real ] || real
  for n in $(echo "$ranks" | tr , ' '); do
    for ksp in cg bcgs; do
      these=
      [ $ksp = cg ] || these=convection7_64,convection7_128,convection7_200
      if [ -n "$cases" ]; then # of those asked for the ones that are for this solver
        flow=$(echo "$cases" | tr , '\n' | grep '^convection' | paste -sd, -) rest=$(echo "$cases" | tr , '\n' | grep -v '^convection' | paste -sd, -)
        if [ $ksp = cg ]; then these=$rest; else these=$flow; fi
        [ -n "$these" ] || continue
      fi
      [ -z "$these" ] || these="-cases $these"
      # shellcheck disable=SC2086 # words
      go ranks ${MPIEXEC:-mpiexec} -n "$n" "$build/bench/ranks" -mat_type gpucsr -vec_type gpu -ksp gpu$ksp,$ksp $these -dll_append "$build/lib/libpetscgpucsr.so"
      # shellcheck disable=SC2086
      [ -z "$cudabuild" ] || peer ranks ${MPIEXEC:-mpiexec} -n "$n" "$cudabuild/bench/ranks" -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0 -ksp $ksp $these
    done
    [ -z "$files" ] || go ranks ${MPIEXEC:-mpiexec} -n "$n" "$build/bench/ranks" -mat_type gpucsr -vec_type gpu -file "$files" -dll_append "$build/lib/libpetscgpucsr.so"
    [ -z "$files" ] || [ -z "$cudabuild" ] || peer ranks ${MPIEXEC:-mpiexec} -n "$n" "$cudabuild/bench/ranks" -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0 -file "$files"
  done
  command -v python3 >/dev/null && python3 "$here/ranks.py" -o "$out" "$out/bench.jsonl" | tee "$out/ranks.md"
fi
rm -rf "$out/unpacked"
rm -f "$out"/kddcup99_10pct.petsc* "$out"/farm_ads.petsc* "$out"/reuters-ccat.petsc* "$out"/kdd99.petsc*

for part in ranks ksp hostvec spmv; do
  if [ -f "$out/$part.log" ]; then
    echo "== $part"
    tail -n 80 "$out/$part.log"
  fi
done
if python3 -c 'import json' 2>/dev/null; then
  echo "== targets"
  python3 "$here/tables/summary.py" -o "$out" -name summary "$out/bench.jsonl"
fi
exit $status
