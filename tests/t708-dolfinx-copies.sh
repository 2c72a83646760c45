#!/bin/bash
#
# Copies of vectors over the bus in programs for FEniCSx (dolfinx), by options alone. Its vectors are ghosted, and PETSc keeps them on the host: right-hand side up, solution down, and at most one more copy a
# linear solve, by the report, on one and two ranks, with the host in place of a GPU. Results are those without the library. And Debian's demos, unmodified: Poisson's equation in Python, by LU,
# copies two; hyperelasticity in C++, to which an options file of aliases gives another solver than the one that the program sets. Skipped where there is no dolfinx of the PETSc that the library was built for.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host MPIEXEC=mpiexec tests/t708-dolfinx-copies.sh
python=${PYTHON:-/usr/bin/python3}
here=$(cd "$(dirname "$0")" && pwd)
demos=/usr/share/dolfinx
petsc() { ldd "$1" 2>/dev/null | grep -o 'libpetsc[^ ]*\.so[^ ]*' | grep -v gpucsr | head -n 1; }
module=$($python -c 'import dolfinx.cpp, petsc4py; petsc4py.init(); from petsc4py import PETSc; print(PETSc.__file__)' 2>/dev/null) || exit 77
if [ "$(petsc "$module")" != "$(petsc "$LIB")" ]; then exit 77; fi
case $BUILD in /*) export XDG_CACHE_HOME=$BUILD/cache ;; *) export XDG_CACHE_HOME=$PWD/$BUILD/cache ;; esac # what it compiles
ours="-dll_append $LIB -mat_gpucsr_backend cuda -mat_gpucsr_report"
if [ "$BACKEND" = host ]; then ours="$ours -gpucsr_debug_standin 1"; fi
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
# shellcheck source=tests/cases.sh
. "$here/cases.sh"

# few FILE RANKS MOST: at most so many copies a linear solve and rank. Vectors shorter than 1000 bytes, in the set-up of a coarse grid, do not count
few() {
  awk -v ranks="$2" -v most="$3" '
    /^  solver / {match($0, /[0-9]+ solve/); solves += substr($0, RSTART)}
    /^VECGPU: .*copied to the device/ {
      match($0, /to the device [0-9]+/); up = substr($0, RSTART + 14, RLENGTH - 14); match($0, /to the host [0-9]+/); down = substr($0, RSTART + 12, RLENGTH - 12)
      match($0, /times, [^ ]* MB/); mb = substr($0, RSTART + 7)
      if (mb * 1e6 >= 1000 * up) copies += up + down
    }
    END {if (!solves || copies > most * solves * ranks) printf "%d copies in %d linear solves of %d ranks\n", copies, solves, ranks}' "$1"
}

# own RANKS METHOD PC
own() {
  local launch=()
  if [ "$1" -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $1"; fi
  PETSC_OPTIONS='' "${launch[@]}" "$python" "$here/t708-dolfinx-copies.py" "${2#gpu}" "$3" >"$out.plain" 2>"$out.err" || { echo "$*: no run without the library" && tail -3 "$out.err"; }
  PETSC_OPTIONS="$ours -mat_type gpucsr" "${launch[@]}" "$python" "$here/t708-dolfinx-copies.py" "$2" "$3" >"$out.ours" 2>&1 || { echo "$*: the run fails" && tail -5 "$out.ours"; }
  diff "$out.plain" <(grep -E '^(poisson|hyperelastic)' "$out.ours") >"$out.diff" || { echo "$*: other results" && cat "$out.diff"; }
  few "$out.ours" "$1" 3 | sed "s/^/$*: /"
}

# demo RANKS OPTIONS: hyperelasticity by Newton's method
demo() {
  local launch=() ranks=$1
  shift
  if [ "$ranks" -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  mkdir "$out.folder" && cd "$out.folder" || exit 2
  PETSC_OPTIONS="$ours -mat_type gpucsr $* -options_file $work/aliases" "${launch[@]}" "$built/demo_hyperelasticity" >../"$out.ours" 2>&1 || { echo "demo $*: fails" && tail -5 ../"$out.ours"; }
  few ../"$out.ours" "$ranks" 3 | sed "s/^/hyperelasticity with $*: /"
}

$python "$here/t708-dolfinx-copies.py" cg jacobi >said 2>&1 || { cat said; exit 1; } # compiles, before others would at the same time
for ranks in 1 2; do
  for solver in "cg jacobi" "gmres bjacobi" "gpucg jacobi" "bcgs gamg"; do
    # shellcheck disable=SC2086
    if [ $ranks = 1 ] || [ "${solver% *}" != gpucg ]; then side own $ranks $solver; fi # which runs on several ranks by PETSc's operations here, since the host computes
  done
done
if [ -f $demos/demo-python/demo_poisson.py ]; then
  mkdir out_poisson
  PETSC_OPTIONS="$ours -mat_seqaij_type seqaijgpucsr" $python $demos/demo-python/demo_poisson.py >said 2>&1 || { echo "demo_poisson.py fails" && tail -5 said && exit 1; }
  if ! grep -q '^VECGPU: .*copied to the device 1 times, .*; to the host 1 times' said; then echo "demo_poisson.py: other copies than b up and x down" && tail -5 said && exit 1; fi
fi
built=$XDG_CACHE_HOME/hyperelasticity
if [ -d $demos/demo-real/hyperelasticity ] && command -v cmake >/dev/null; then
  if [ ! -x "$built/demo_hyperelasticity" ]; then
    mkdir -p "$built" && cmake -DCMAKE_BUILD_TYPE=Debug -S $demos/demo-real/hyperelasticity -B "$built" >cmake.said 2>&1 && make -C "$built" >>cmake.said 2>&1 || rm -rf "$built"
  fi
  printf 'alias -nls_solve_%s -programs_%s\n' ksp_type ksp_type pc_type pc_type pc_factor_mat_solver_type solver >aliases # what the program sets goes elsewhere
  for solver in "cg jacobi" "gpugmres jacobi" "gmres bjacobi" "cg gamg"; do
    if [ -x "$built/demo_hyperelasticity" ]; then side demo 1 -nls_solve_ksp_type ${solver% *} -nls_solve_pc_type ${solver#* }; fi
  done
  if [ -x "$built/demo_hyperelasticity" ]; then side demo 2 -nls_solve_ksp_type cg -nls_solve_pc_type jacobi; fi
fi
together
