#!/bin/bash
#
# Run the tests and say how many passed.
#
#   tests/run.sh [search='TEXT ...'] [without='TEXT ...'] [BACKEND=host|cuda] [BUILD=build] [JOBS=n] [LIMIT=600] [TIMES=file]
#
# search takes the runs with one of its texts in their names; without leaves such runs out. Usage, from the folder above this one:
#
#   tests/t*.c           each //TEST line, with the program BUILD/tests/NAME
#   tests/examples.list  each row, with the program BUILD/examples/NAME: once with the library, once with aij and without it, same output
#   tests/t*.sh          each script that is executable; it finds LIB, BUILD, BACKEND and MPIEXEC in its environment
#
# A //TEST line stands at the top of the source and holds WORD=VALUE pairs:
#
#   name="ranks2"          added to the name of the program to name the run
#   nsize=2                number of ranks
#   args="-option value"   {lib} stands for the path of the library
#   loop="csr sell"        one run for each of these words, which takes the place of {} in args and nsize; {kernels} stands for the names of all
#                          kernels of the library, {formats} for its formats
#   output=FILE            what stdout must hold is in tests/output/FILE; without it stdout must stay empty
#   fails="text"           the run must end in an error (no signal) and say this text exactly once
#   warns="text"           the run must pass and say this text exactly once on stderr
#   gpu=1                  for BACKEND=cuda alone; gpu=0: for BACKEND=host alone, which hides any GPU
#   whole=1                only if the environment has WHOLE=1 (make check-all)
#   load=0                 neither load the library nor name a backend
#
# JOBS runs go side by side: on the host two a processor, because a run also waits; on a GPU two. On a terminal
# each run prints a dot; elsewhere the script names each source as its runs begin. At the end it prints the failures, the names
# of skipped runs, and the counts. TIMES names a file for the processor seconds of each run, in descending order.
#
# A script is skipped by status 77, a program by printing a line that begins with "skipped: " (77 is PETSC_ERR_PLIB). The variable MPIEXEC names the launcher and its options; a machine without PETSc
# runs all this from a copied folder once LD_LIBRARY_PATH says where the libraries are.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) && cd "$root" || exit 2
search='' without='' BACKEND=${BACKEND:-host} BUILD=${BUILD:-build} JOBS=${JOBS:-} LIMIT=${LIMIT:-600} TIMES=${TIMES:-}
for word; do
  case $word in
  search=* | without=* | BACKEND=* | BUILD=* | JOBS=* | LIMIT=* | TIMES=*) declare "$word" ;;
  *) sed -n '3,/^$/{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
  esac
done
case $BACKEND in host | cuda) ;; *) echo "BACKEND is host or cuda, not $BACKEND" >&2 && exit 2 ;; esac
if [ -z "$JOBS" ]; then if [ "$BACKEND" = host ]; then JOBS=$((2 * $(nproc))); else JOBS=2; fi; fi

if [ -z "${MPIEXEC+set}" ]; then
  MPIEXEC=mpiexec
  if [ "$(id -u)" = 0 ]; then MPIEXEC+=" --allow-run-as-root --oversubscribe"; fi
fi
LIB=$root/$BUILD/lib/libpetscgpucsr.so
case $BUILD in /*) LIB=$BUILD/lib/libpetscgpucsr.so ;; esac
# In a fresh build the programs named by search are made first, without CUDA if the build has none
fresh=()
for source in tests/t[0-9]*.c; do
  program=$(basename "$source" .c)
  for text in $search; do
    if [[ $program == *$text* || $text == $program* ]] && [ ! -x "$BUILD/tests/$program" ]; then fresh+=("$BUILD/tests/$program") && break; fi
  done
done
if ((${#fresh[@]})) && pkg-config --exists "${PETSC:-PETSc}"; then
  host=()
  if [ -f "$BUILD/flags" ] && ! grep -q GPUCSR_HAVE_CUDA "$BUILD/flags"; then host=(NVCC=); fi
  make -s -j"$(nproc)" BUILD="$BUILD" "${host[@]}" lib "${fresh[@]}" >&2 || exit 2
fi
# Open MPI: a single process starts no daemon and makes no folder (mpiexec needs both). On the host, the search for networks and for other devices (hwloc), half of a start, is left out. A run
# then starts in a tenth of a second, not half a second
export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_orte_create_session_dirs=0
if [ "$BACKEND" = host ]; then export CUDA_VISIBLE_DEVICES= OMPI_MCA_pml=${OMPI_MCA_pml:-^ucx,cm} OMPI_MCA_btl=${OMPI_MCA_btl:-^openib,ofi,tcp} HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--linuxio,-pci}; fi
# Ranks that wait sleep (tests/yield.c); a sanitizer's library must be the first one
yield=${LIB%/lib/*}/tests/yield.so
if [ ! -f "$yield" ] || ldd "$LIB" 2>/dev/null | grep -q libasan; then yield=$LD_PRELOAD; fi
MPIEXEC="env -u OMPI_MCA_orte_create_session_dirs LD_PRELOAD=$yield $MPIEXEC"
export LIB BUILD BACKEND MPIEXEC
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} OMPI_MCA_mpi_yield_when_idle=1 # who waits leaves the processor to others
export MALLOC_PERTURB_=${MALLOC_PERTURB_:-1}                                      # memory that nobody wrote is no zero: glibc fills it
options=${PETSC_OPTIONS:-} # the caller's own, kept in front of ours
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
trap 'stopped=", stopped before the end"; finish; exit 1' TERM INT # what is known by then
count=0

# names LIST: the first words of the rows of a list in the library's sources
names() { sed -n 's/^GPUCSR_[A-Z]*(\([a-z0-9_]*\),.*/\1/p' "src/mat/impls/gpucsr/blackbox/$1" | tr '\n' ' '; }
kernels=$(names kernels/kernellist.h) formats=$(names format/formatlist.h)

# One run: judge NAME NSIZE PROGRAM ARGS OPTIONS EXPECTED FAILS WARNS, the last three may be empty. Status: 0 passed, 77 skipped, 1 failed.
# Leaves a failure's output in $log.
judge() {
  local nsize=$2 program=$3 args=$4 expected=$6 fails=$7 warns=$8 launch=() status hits
  export PETSC_OPTIONS="-options_left no $options $5"
  if [ "$nsize" -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $nsize"; fi
  echo "PETSC_OPTIONS=\"${PETSC_OPTIONS# }\" ${launch[*]} $program $args" >"$log.command"
  if [ ! -x "$program" ]; then
    echo "$program is not built" >"$log"
    return 1
  fi
  # shellcheck disable=SC2086 # args are words
  timeout -k 10 "$LIMIT" "${launch[@]}" "$program" $args >"$log.out" 2>"$log.err" </dev/null
  status=$?
  cat "$log.out" "$log.err" >"$log"
  if [ $status = 0 ] && grep -q '^skipped: ' "$log.out"; then return 77; fi
  if [ $status = 124 ] || [ $status = 137 ]; then
    echo "stopped after the limit of $LIMIT seconds" >>"$log"
    return 1
  fi
  if [ -n "$fails" ]; then
    hits=$(grep -cF -- "$fails" "$log")
    if [ $status = 0 ]; then
      echo "ended without the error it should meet: $fails" >>"$log"
    elif [ $status -gt 128 ] || grep -qE 'Caught signal|Signal: |[Ss]egmentation' "$log"; then
      echo "ended by a signal (status $status)" >>"$log"
    elif [ "$hits" != 1 ]; then
      echo "said $hits times, not once: $fails" >>"$log"
    else
      return 0
    fi
    return 1
  fi
  if [ $status != 0 ]; then
    echo "ended with status $status" >>"$log"
    return 1
  fi
  if [ -n "$warns" ]; then
    hits=$(grep -cF -- "$warns" "$log.err")
    if [ "$hits" != 1 ]; then
      echo "warned $hits times, not once: $warns" >>"$log"
      return 1
    fi
  fi
  if ! diff "${expected:-/dev/null}" "$log.out" >"$log.diff" 2>&1; then
    { echo "stdout differs from ${expected:-nothing} (< expected, > printed):" && cat "$log.diff"; } >"$log"
    return 1
  fi
}

script() {
  local status
  echo "$2" >"$log.command"
  timeout -k 10 "$LIMIT" "$2" >"$log" 2>&1 </dev/null
  status=$?
  if [ $status = 124 ] || [ $status = 137 ]; then echo "stopped after the limit of $LIMIT seconds" >>"$log"; fi
  return $status
}

# asked NAME: is this run searched for?
asked() {
  local text
  for text in $without; do if [[ $1 == *$text* ]]; then return 1; fi; done
  for text in $search; do if [[ $1 == *$text* ]]; then return 0; fi; done
  [ -z "$search" ]
}

# job FUNCTION NAME ...: run `FUNCTION NAME ...` in the background, JOBS at a time, if the name is searched for
job() {
  asked "$2" || return
  while (($(jobs -rp | wc -l) >= JOBS)); do wait -n; done
  count=$((count + 1))
  if [ ! -t 1 ] && [ "${2%%.*}" != "${named:-}" ]; then
    named=${2%%.*}
    echo "$named"
  fi
  echo "$2" >"$tmp/$count.begun"
  (
    log=$tmp/$count
    "$@"
    status=$?
    if [ -t 1 ]; then printf .; fi
    if [ -n "$TIMES" ]; then times >"$log.times"; fi
    case $status in
    0) : >"$log.passed" ;;
    77) echo "$2" >"$log.skipped" ;;
    *) { echo "FAILED $2"; cat "$log.command"; grep -vE 'PETSC ERROR: (Configure options|-)' "$log" | tail -n 30; } >"$log.failed" ;;
    esac
  ) &
}

skip() {
  if asked "$1"; then
    count=$((count + 1))
    echo "$1" >"$tmp/$count.skipped"
  fi
}

# What a program needs: nothing below t400, and not to be told where the type is when it is linked with the library. Sets `needs`
load_options() {
  local number=${1#t}
  number=${number%%-*}
  needs=''
  if ((10#$number < 400)); then return; fi
  if ! ldd "$2" 2>/dev/null | grep -q libpetscgpucsr; then needs="-dll_append $LIB "; fi
  needs+="-mat_gpucsr_backend $BACKEND"
}

# The files that PETSc wrote are of real numbers and of 32-bit indices; not for PROGRAM?
foreign() { ldd "$1" 2>/dev/null | grep -qE 'libpetsc(64|[^ ]*complex)'; }

# The processor time of each run, user and system, from what `times` says of its children ("0m1.23s 0m0.45s")
slowest() {
  for ((n = 1; n <= count; n++)); do
    if [ -f "$tmp/$n.times" ]; then sed -n "2s|$| $(cat "$tmp/$n.begun")|p" "$tmp/$n.times"; fi
  done | awk '{ split($1, u, /[ms]/); split($2, s, /[ms]/); t = 60 * (u[1] + s[1]) + u[2] + s[2]; sum += t; printf "%8.2f %s\n", t, $3 } END { printf "%8.2f all\n", sum }' | sort -rn
}

# Failures, skipped runs, and the counts
ended() { find "$tmp" -name "*.$1" | wc -l; }
finish() {
  if [ -t 1 ] && ((count > 0)); then echo; fi
  for ((n = 1; n <= count; n++)); do
    if [ -f "$tmp/$n.failed" ]; then cat "$tmp/$n.failed" && echo; fi
  done
  passed=$(ended passed) failed=$(ended failed) skipped=$(ended skipped)
  if ((count == 0)); then echo "no test is named ${search// / or }" >&2; fi
  for ((n = 1; n <= count; n++)); do
    if [ -f "$tmp/$n.begun" ] && [ ! -f "$tmp/$n.passed" ] && [ ! -f "$tmp/$n.skipped" ] && [ ! -f "$tmp/$n.failed" ]; then echo "not ended: $(cat "$tmp/$n.begun")"; fi
  done
  if ((skipped > 0)); then
    summary=", $skipped skipped"
    echo "skipped: $(sort "$tmp"/*.skipped | tr '\n' ' ')" | fold -sw 140
  fi
  echo "$passed passed, $failed failed${summary:-}${stopped:-}"
}

# Scripts take longest: they begin first, so that no processor is idle at the end
for source in tests/t[0-9]*.sh; do
  if [ -x "$source" ]; then job script "$(basename "$source" .sh)" "$source"; fi
done

for source in tests/t[0-9]*.c; do
  test -f "$source" || continue
  program=${source##*/}
  program=${program%.c}
  load_options "$program" "$BUILD/tests/$program"
  while read -r line; do
    name='' nsize=1 args='' loop='' output='' fails='' warns='' gpu='' whole='' load=1
    rest=${line#*//TEST}
    while [[ $rest =~ ^[[:space:]]*([a-z]+)=(\"([^\"]*)\"|([^[:space:]\"]+))(.*)$ ]]; do
      case ${BASH_REMATCH[1]} in
      name | nsize | args | loop | output | fails | warns | gpu | whole | load) declare "${BASH_REMATCH[1]}=${BASH_REMATCH[3]}${BASH_REMATCH[4]}" ;;
      *) break ;;
      esac
      rest=${BASH_REMATCH[5]}
    done
    if [[ $rest == *[![:space:]]* ]]; then echo "$source: cannot read this of a //TEST line: $rest" >&2 && exit 2; fi
    if [ "$whole${WHOLE:+yes}" = 1 ]; then continue; fi
    args=${args//\{lib\}/$LIB}
    loop=${loop//\{kernels\}/$kernels}
    loop=${loop//\{formats\}/$formats}
    loads=$needs
    if [ "$load" = 0 ]; then loads=''; fi
    for word in ${loop:-once}; do
      full=$program${name:+.$name}
      if [ -n "$loop" ]; then full+=.$word; fi
      if [ "$gpu$BACKEND" = 1host ] || [ "$gpu$BACKEND" = 0cuda ]; then
        skip "$full"
      else
        job judge "$full" "${nsize/\{\}/$word}" "$BUILD/tests/$program" "${args//\{\}/$word}" "$loads" "${output:+tests/output/$output}" "$fails" "$warns"
      fi
    done
  done < <(grep -E '^[[:space:]]*//TEST' "$source")
done

if [ -f tests/examples.list ]; then
  while IFS='|' read -r name nsize program args output; do
    read -r name <<<"$name"
    case $name in '' | '#'*) continue ;; esac
    # read drops the blanks around each field
    read -r nsize <<<"$nsize" && read -r program <<<"$program" && read -r output <<<"$output"
    read -r args <<<"$args"
    if [[ $args == *.petsc* ]] && foreign "$BUILD/examples/$program"; then
      skip "$name.gpucsr"
      skip "$name.aij"
      continue
    fi
    for folder in src/*/examples/output src/learn/output; do if [ -f "$folder/$output" ]; then output=$folder/$output; fi; done
    job judge "$name.gpucsr" "$nsize" "$BUILD/examples/$program" "$args -mat_type gpucsr" "-dll_append $LIB -mat_gpucsr_backend $BACKEND" "$output" "" ""
    with=
    if [[ $args == *.mtx* ]]; then with="-dll_append $LIB"; fi # which reads such files
    job judge "$name.aij" "$nsize" "$BUILD/examples/$program" "$args -mat_type aij" "$with" "$output" "" ""
  done <tests/examples.list
fi

wait
finish
if [ -n "$TIMES" ]; then slowest >"$TIMES"; fi
((failed == 0 && passed + skipped == count && count > 0))
