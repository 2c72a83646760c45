#!/bin/bash
#
# Stokes' equations (src/benchmarks/coo), on a staggered grid and with Taylor-Hood elements, in each layout: GMRES with PCFIELDSPLIT by a Schur complement takes MATAIJ's iterations, with the host in place of a
# GPU. On one rank a solve copies fewer than ten vectors. The mass matrix in place of the Schur complement keeps the iterations from growing with the mesh; with the Schur complement itself there are two.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host MPIEXEC=mpiexec tests/t709-stokes.sh
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v mpicc >/dev/null || ! pkg-config --exists "${PETSC:-PETSc}"; then exit 77; fi
export PETSC_OPTIONS=''
ours="-dll_append $LIB -mat_type gpucsr -vec_type gpu -mat_gpucsr_backend cuda"
if [ "$BACKEND" = host ]; then ours="$ours -gpucsr_debug_standin 1"; fi
solver="-points 0 -grid 0 -parts stokes -rounds 1 -stokes_ksp_type gmres -stokes_ksp_rtol 1e-8 -stokes_pc_fieldsplit_schur_fact_type lower -stokes_fieldsplit_u_ksp_type preonly
  -stokes_fieldsplit_p_ksp_type preonly -stokes_fieldsplit_p_pc_type jacobi"
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
# shellcheck source=tests/cases.sh
. "$here/cases.sh"
# shellcheck disable=SC2046 # flags are words
mpicc -std=gnu99 -O1 -w "$here"/../src/benchmarks/coo/*.c $(pkg-config --cflags --libs "${PETSC:-PETSc}") -Wl,-rpath,"$(pkg-config --variable=libdir "${PETSC:-PETSc}")" -ldl -lm -o coo >said 2>&1 || { cat said; exit 1; }

# its FILE: iterations
its() { sed -n 's/.*"iterations": \([0-9]*\).*/\1/p' "$1"; }

# run FILE RANKS OPTIONS
run() {
  local file=$1 launch=()
  if [ "$2" -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $2"; fi
  shift 2
  # shellcheck disable=SC2086 # options are words
  "${launch[@]}" ./coo $solver "$@" -o "$file" >"$file.said" 2>&1 || { echo "$*: the run fails" && tail -5 "$file.said"; }
  awk -F'"residual": ' '{if ($2 + 0 > 1e-6) print "residual " $2}' "$file"
}

# same RANKS LAYOUT OPTIONS: as many iterations as MATAIJ
same() {
  local ranks=$1 layout=$2
  shift 2
  run "$out.aij" "$ranks" -mat_type aij "$@"
  # shellcheck disable=SC2086
  run "$out.ours" "$ranks" $ours $layout "$@"
  if [ "$(its "$out.aij")" != "$(its "$out.ours")" ]; then echo "$ranks ranks, $layout $*: $(its "$out.ours") iterations, MATAIJ takes $(its "$out.aij")"; fi
  awk -F'"copies": ' -v ranks="$ranks" '{if (ranks == 1 && $2 + 0 > 9) print "copies of vectors in one solve: " $2}' "$out.ours"
}

# bounded: with 6 cells a side at most a quarter more iterations than with 3
bounded() {
  local n
  for n in 3 6; do
    # shellcheck disable=SC2086
    run "$out.$n" 1 $ours -element taylorhood -cells $n -stokes_fieldsplit_u_pc_type gamg -stokes_fieldsplit_u_pc_gamg_aggressive_coarsening 0
  done
  if (($(its "$out.6") * 4 > $(its "$out.3") * 5)); then echo "iterations grow with the mesh: $(its "$out.3"), $(its "$out.6")"; fi
}

exact() {
  # shellcheck disable=SC2086
  run "$out.exact" 1 $ours -element taylorhood -cells 3 -stokes_fieldsplit_u_pc_type lu -stokes_fieldsplit_p_ksp_type gmres -stokes_fieldsplit_p_ksp_rtol 1e-11
  if (($(its "$out.exact") > 2)); then echo "$(its "$out.exact") iterations with the Schur complement itself"; fi
}

for layout in "" -interlaced -nest; do
  for ranks in 1 2; do
    side same $ranks "$layout" -element taylorhood -cells 3 -stokes_fieldsplit_u_pc_type bjacobi
    side same $ranks "$layout" -element staggered -cells 6 -stokes_fieldsplit_u_pc_type bjacobi
  done
done
side same 3 "" -element taylorhood -cells 2 -stokes_fieldsplit_u_pc_type jacobi # a rank without cells
side bounded
side exact
together
