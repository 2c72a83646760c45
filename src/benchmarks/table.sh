#!/bin/sh
# Measures what README's table and docs/results/table.md say, on a machine with a GPU: pairs of the library and a peer in turn, from one build, for the PETSc of peers/petsc.sh. Nothing is compiled here.
#
#   table.sh [-build build] [-peers FOLDER] [-out FOLDER] [-part products,small,ksp,sweep,amg,large,program,learning] [-rounds 5] [-id TEXT] [-dir FOLDER,...] [-ranks 1,2] [-cases NAME,...] [-small yes] [-with "OPTION ..."]
#
#   -build    folder of `make lib examples benches convert` for a PETSc with CUDA; a PETSc without CUDA leaves out aijcusparse
#   -peers    folder of the programs amgx, hypre, amgcl and ginkgo (peers/), as many as there are; NAME.tag there is the version, else NAME.sh says it; optional
#   -out      bench-results, or $OUT. table.jsonl there is added to, and each part may be a call of its own; a .log a part
#   -part     products  A x and transposes, matrices of 10^6 entries and more, generated and of share/datasets/learning    small  matrices of -dir (share/datasets)
#             ksp       Jacobi CG, ILU GMRES                 sweep   all settings of these programs once    amg    multigrid, and of these programs what was best in the sweep before
#             large     set-up of gpuamg for 5 and 8 million unknowns
#             program   wall clock of a whole program        learning   bmrm, also on 16 cores, and LIBLINEAR where it is installed
#             hostvec, ranks, vectors: only where asked for; vectors is a call for each PETSc, as one with CUDA makes VECCUDA of -vec_type gpu
#   -rounds   processes of each, in turn
#   -ranks    of the part ranks, a GPU each (1,2); -cases: its cases, as bench/ranks has them. MPIEXEC names the launcher and its options
#   -small    small systems, to try the script
#   -with     options of the library's runs
#
# Each call begins and ends with the reference row, an iteration of gpucg; if that is off by 3 %, the call runs once more. Then: tables/table.py OUT/table.jsonl
set -u
build=build peers='' out=${OUT:-bench-results} parts=products,small,ksp,sweep,amg,large,program,learning rounds=5 id='' ranks=1,2 cases='' small='' with=''
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
dirs=$root/share/datasets
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "table.sh: $1 needs a value" >&2; exit 2; }
  case $1 in
    -build) build=$2 ;;
    -peers) peers=$2 ;;
    -out) out=$2 ;;
    -part) parts=$2 ;;
    -rounds) rounds=$2 ;;
    -id) id=$2 ;;
    -dir) dirs=$2 ;;
    -ranks) ranks=$2 ;;
    -cases) cases=$2 ;;
    -small) small=$2 ;;
    -with) with=$2 ;;
    *) echo "table.sh: unknown option $1 (see its head)" >&2; exit 2 ;;
  esac
  shift 2
done
[ -n "$id" ] || id=$(git -C "$here" describe --always --dirty 2>/dev/null) || id=unknown
mkdir -p "$out" || exit 2
to=$out/table.jsonl status=0 call=$(date -u +%Y%m%dT%H%M%S)
export LD_LIBRARY_PATH="$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
: "${MPIEXEC:=mpiexec --oversubscribe$([ "$(id -u)" != 0 ] || echo ' --allow-run-as-root')}"
cuda=yes
LC_ALL=C grep -q VecCreateSeqCUDA "$(ldd "$build/bench/ksp" | sed -n 's/.*libpetsc[^ ]* => \(\/[^ ]*\).*/\1/p' | head -n 1)" 2>/dev/null || { cuda='' && echo "table.sh: aijcusparse is left out: the PETSc of $build/bench/ksp has no CUDA" >&2; }

# The programs of -peers
names=
for name in ${peers:+amgx hypre amgcl ginkgo}; do
  if [ -x "$peers/$name" ]; then names="$names $name"; else echo "table.sh: $name is left out: $peers/$name is not there" >&2; fi
done

# run COMMAND ...: both outputs into the part's log
run() {
  if ! command -v "$1" > /dev/null; then
    echo "table.sh: $1 is not there: make benches" >&2
    status=1
    return 1
  fi
  "$@" >> "$out/$part.log" 2>&1 || { echo "table.sh: failed, see $part.log: $*" >&2; status=1; return 1; }
}
# gpucsr PROGRAM OPTION ..., aijcusparse PROGRAM OPTION ...: records of a program of bench/ with that type, and with the options of -with
gpucsr() {
  bench=$1
  shift
  # shellcheck disable=SC2086 # words
  run "$build/bench/$bench" -mat_type gpucsr -dll_append "$build/lib/libpetscgpucsr.so" $with -o "$to" -id "$id" "$@"
}
aijcusparse() {
  [ -n "$cuda" ] || return 0
  bench=$1
  shift
  run "$build/bench/$bench" -mat_type aijcusparse -use_gpu_aware_mpi 0 -o "$to" -id "$id" "$@"
}
# peer SECONDS NAME ARGUMENT ...: rows of a peer's table as records; those that are there after so many seconds
peer() {
  limit=$1 name=$2
  shift 2
  timeout "$limit" "$peers/$name" "$@" > "$out/peer.md" 2>> "$out/$part.log" || { echo "table.sh: failed, see $part.log: $name $*" >&2; status=1; }
  cat "$out/peer.md" >> "$out/$part.log"
}
json() {
  awk -F' *[|] *' -v who="$1" -v sweep="$2" -v id="$id" '
    $2 == "case" || $2 ~ /^:?-/ || $2 ~ /^[*]/ || NF < 10 {next}
    {solved = $10 !~ /not solved/; split($10, r, " ")
     printf "{\"record\": \"amg\", \"matrix\": \"%s\", \"mat_type\": \"%s\", \"setting\": \"%s\", \"sweep\": %d, \"id\": \"%s\", \"setup_ms\": %s, \"again_ms\": %s, \"first_ms\": %s, \"solve_ms\": %s, \"iterations\": %s, \"residual\": %s, \"solved\": %s}\n", $2, who, $3, sweep, id, $4, $5, $6, $7, $9, r[1], solved ? "true" : "false"}' "$out/peer.md" >> "$to"
}
# sizes LARGE SMALL
sizes() { if [ -n "$small" ]; then echo "$2"; else echo "$1"; fi; }
seconds() { date +%s.%N; }

reference() {
  gpucsr ksp -cases "$(sizes lap7_129 lap7_12)" -ksp_type gpucg -repeats 9 -o "$out/reference.jsonl"
  [ -f "$out/reference.jsonl" ] && sed "s/\"record\": \"ksp\"/\"record\": \"reference\", \"call\": \"$call\"/" "$out/reference.jsonl" >> "$to" && rm -f "$out/reference.jsonl"
}
header() {
  gpu=$(nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv,noheader,nounits -i 0 2>/dev/null) || gpu=none
  versions=$(for name in $names; do
    echo "$(echo "$name" | sed 's/amgx/AmgX/; s/amgcl/AMGCL/; s/ginkgo/Ginkgo/') $(cat "$peers/$name.tag" 2>/dev/null || sed -n 's/^tag=\([^ ]*\).*/\1/p' "$here/peers/$name.sh" 2>/dev/null)"
  done | paste -sd, - | sed 's/,/, /g')
  printf '{"record": "call", "call": "%s", "id": "%s", "parts": "%s", "rounds": %d, "gpu": "%s", "cpu": "%s", "cores": %d, "peers": "%s"}\n' "$call" "$id" "$parts" "$rounds" "$gpu" \
    "$(lscpu | sed -n 's/^Model name: *//p')" "$(nproc)" "$versions" >> "$to"
}

products() {
  files=
  for set in kddcup99_10pct farm_ads fars_onehot; do
    [ -z "$small" ] && xz -dc "$root/share/datasets/learning/$set.svm.xz" > "$out/$set.svm" && run "$build/bin/gpucsr-convert" "$out/$set.svm" "$out/$set.petsc" && files=$files,$out/$set.petsc
    rm -f "$out/$set.svm"
  done
  large=powerlaw3,uniform40,text_like,tall_thin,graph8,graph20,fem3,fem4,fem6,fem8,lp_long,lp_tall,text_short,st27_50_b3,square5_800_b4,lap7_80_b8,st27_30_b4,st27_75_b3,uniform50,graph5_large,w14_
  large=$large,mesh2_1500k_rcm,mesh2_1500k_random,mesh3_1500k_rcm,mesh3_500k_hilbert,mesh3_500k_random,mesh3_150k_u3_rcm,mesh3_5000k_rcm,mesh2q_1500k_rcm,mesh2q_1500k_random,mesh3q_150k_rcm,mesh3q_150k_random
  large=$large,mac2_1000,mac3_32,mac3_144,darcy2_700,darcy3_90,q2q1_2_300,q2q1_3_20,rmat_16,rmat_22
  # shellcheck disable=SC2086
  run "$build/bench/spmv" -collection -meshes -match "$(sizes $large,kddcup99,farm_ads,fars_onehot powerlaw3,w14_protein,mesh2q_150k_rcm)" $(sizes '' '-shrink 40 -backend host') ${files:+-f "${files#,}"} -pairs none -precisions double -setup no \
    -rounds "$rounds" -budget 300 -use_gpu_aware_mpi 0 -progress $with -o "$to" -id "$id"
  for set in kddcup99_10pct farm_ads fars_onehot; do rm -f "$out/$set".petsc*; done
}
small() {
  # shellcheck disable=SC2086
  run "$build/bench/spmv" -dir "$dirs" -synthetic no $(sizes '' '-match nos3,add32 -backend host') -pairs none -precisions double -setup no -rounds "$rounds" -budget 60 -use_gpu_aware_mpi 0 -progress $with -o "$to" -id "$id"
}
# turns FUNCTION: so many times
turns() { for k in $(seq "$rounds"); do "$@"; done; }
jacobi() {
  which=$(sizes lognormal7_128,lognormal27_96,elastic_56,graph_122,lap7_20,lap7_129,lap7_200,st27_128 lognormal7_8,lap7_8)
  gpucsr ksp -cases "$which" -ksp_type gpucg -repeats 3
  aijcusparse ksp -cases "$which" -repeats 3
}
ilu() {
  which=$(sizes lognormal7_96,lognormal27_64,elastic_40,conv_96 lognormal7_8,conv_8)
  gpucsr ksp -cases "$which" -ksp_type gpugmres -pc_type ilu -repeats 3
  aijcusparse ksp -cases "$which" -ksp_type gmres -pc_type ilu -repeats 3
}
ksp() {
  turns jacobi
  turns ilu
}

# Norms as the peers' drivers have them
systems=$(sizes lognormal7_64,lognormal7_128,lognormal27_96,elastic_56 lognormal7_8,elastic_4)
multigrid() {
  norm="-ksp_norm_type unpreconditioned -ksp_rtol 1e-8 -uploaded 1 -cases $systems"
  # shellcheck disable=SC2086
  {
    gpucsr gamg $norm -ksp_type gpucg -pc_type gpuamg -repeats 3
    gpucsr gamg $norm -ksp_type gpucg -pc_type gpuamg -pc_gpuamg_precision single -repeats 3 -id "$id single"
    gpucsr gamg $norm -ksp_type gpucg -pc_type gamg -repeats 3
    gpucsr gamg $norm -ksp_type gpucg -pc_type jacobi -kept 0 -repeats 3
    aijcusparse gamg $norm -repeats 3 -kept 0
  }
  for name in $names; do
    [ -s "$out/$name.best" ] || continue
    set --
    while IFS='|' read -r setting system; do set -- "$@" -only "$setting" "$system"; done < "$out/$name.best"
    peer 150 "$name" "$@" && json "$name" 0
  done
}
# All settings of a peer once; the two best of each system, with and without set-up, then take turns
sweep() {
  for name in $names; do
    # shellcheck disable=SC2046
    peer 300 "$name" $(echo "$systems" | tr , ' ') && json "$name" 1
    for column in 7 8; do
      awk -F' *[|] *' -v k=$column 'NF >= 10 && $2 ~ /_/ && $2 !~ /best/ && $10 !~ /not/ {print $k "|" $3 "|" $2}' "$out/peer.md" | sort -n | awk -F'|' '++seen[$3] <= 2 {print $2 "|" $3}'
    done | sort -u > "$out/$name.best"
  done
}
amg() { turns multigrid; }
largest() { gpucsr gamg -cases "$(sizes lognormal7_200,mesh_5000 lognormal7_10,mesh_1)" -ksp_norm_type unpreconditioned -ksp_type gpucg -pc_type gpuamg -uploaded 1 -kept 0 -repeats 2 -id "$id large"; }
large() { turns largest; }

# wall WHO COMMAND ...: seconds of a whole process
wall() {
  who=$1
  shift
  begin=$(seconds)
  run "$@" && printf '{"record": "program", "program": "%s", "who": "%s", "id": "%s", "seconds": %s}\n' "$what" "$who" "$id" "$(echo "$(seconds) $begin" | awk '{printf "%.4f", $1 - $2}')" >> "$to"
}
whole() {
  what="poisson3d -n $(sizes 128 8)"
  # shellcheck disable=SC2086
  {
    wall gpucsr "$build/examples/"$what -dm_mat_type gpucsr -ksp_type gpucg -dll_append "$build/lib/libpetscgpucsr.so" $with
    wall "aij, $(sizes 16 2) ranks" $MPIEXEC -n "$(sizes 16 2)" "$build/examples/"$what
  }
}
program() { turns whole; }

learning() {
  run python3 "$here/learning/learn.py" -build "$build" -out "$out" -id "$id" -rounds "$rounds" -who gpu,ranks,liblinear -sets "$(sizes "real-sim,covertype,$root/share/datasets/learning/kddcup99_10pct.svm.xz,news20" adult9)" \
    -lambdas "$(sizes 1e-5,real-sim:1e-7 1e-5)" -limit 30 -ranks "$(sizes 16 2)" -workers 2 -budget 480 && cat "$out/learn.jsonl" >> "$to"
  rm -f "$out/learn.jsonl"
}

operations() {
  # shellcheck disable=SC2086
  if [ -z "$cuda" ]; then run "$build/bench/vec" -vec_type gpu -dll_append "$build/lib/libpetscgpucsr.so" $with -n "$(sizes 1000,8000000 100)" -o "$to" -id "$id"
  else run "$build/bench/vec" -vec_type cuda -use_gpu_aware_mpi 0 -n "$(sizes 1000,8000000 100)" -o "$to" -id "$id"
  fi
}
vectors() { turns operations; }
hostvec() { run "$build/bench/hostvec" -budget 60 -o "$to" -id "$id"; }

# MPIEXEC of bench/ranks; peer's MPI is staged
ranks() {
  for n in $(echo "$ranks" | tr , ' '); do
    for method in cg bcgs; do
      these=$(echo "${cases:-lognormal27_64,lognormal27_128,lognormal27_200,lognormal7_200,elastic_64,mesh_700,lognormal27_128x,convection7_64,convection7_128,convection7_200}" | tr , '\n' | if [ $method = cg ]; then grep -v '^convection'; else grep '^convection'; fi | paste -sd, -)
      [ -n "$these" ] || continue
      # shellcheck disable=SC2086
      {
        run $MPIEXEC -n "$n" "$build/bench/ranks" -mat_type gpucsr -vec_type gpu -ksp gpu$method,$method -cases "$these" -dll_append "$build/lib/libpetscgpucsr.so" $with -o "$to" -id "$id"
        [ -z "$cuda" ] || run $MPIEXEC -n "$n" "$build/bench/ranks" -mat_type aijcusparse -vec_type cuda -use_gpu_aware_mpi 0 -ksp $method -cases "$these" -o "$to" -id "$id"
      }
    done
  done
}

measure() {
  header
  part=reference && reference
  for part in $(echo "$parts" | tr , ' '); do
    : > "$out/$part.log"
    began=$(date +%s)
    case $part in
      products | small | ksp | sweep | amg | large | program | learning | vectors | hostvec | ranks) $part ;;
      *) echo "table.sh: -part $part: must be some of products, small, ksp, sweep, amg, large, program, learning, vectors, hostvec, ranks" >&2; status=2 ;;
    esac
    echo "table.sh: $part took $(($(date +%s) - began)) s"
  done
  part=reference && reference
}
# Is each reference row within 3 % of the record's first?
steady() { sed -n 's/.*"record": "reference".*"iteration_us": *\([0-9.]*\).*/\1/p' "$to" | awk 'NR == 1 {first = $1} $1 > 1.03 * first || $1 < first / 1.03 {off = 1} END {exit off}'; }
before=$(cat "$to" 2>/dev/null | wc -l)
measure
if [ -z "$small" ] && ! steady; then
  echo "table.sh: the reference row is off by more than 3 %: the call's rows go, and it runs once more" >&2
  head -n "$before" "$to" > "$to.kept" && mv "$to.kept" "$to"
  measure
fi
rm -f "$out"/peer.md
if command -v python3 > /dev/null; then python3 "$here/tables/table.py" "$to" || status=1; fi
exit $status
