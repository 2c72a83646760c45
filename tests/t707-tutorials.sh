#!/bin/bash
#
# PETSc's unmodified tutorials, with the preconditioners that run on the device: the driven cavity (snes ex19), Bratu's problem (snes ex5), elasticity with its rigid motions (ksp ex56) and reaction with
# diffusion in time (ts ex5). Each takes as many iterations as with MATAIJ and ends for the same reason. The host stands in for a GPU if there is none. Skipped if the sources of the examples are not installed
# (Debian's libpetsc3.18-dev-examples).
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host tests/t707-tutorials.sh
here=$(cd "$(dirname "$0")" && pwd)
minor=$(pkg-config --modversion "${PETSC:-PETSc}" 2>/dev/null | cut -d. -f1,2)
sources=/usr/share/petsc/$minor/share/petsc/examples/src
if [ -z "$minor" ] || [ ! -d "$sources/ksp" ] || ! command -v mpicc >/dev/null; then exit 77; fi
standin=''
if [ "$BACKEND" = host ]; then standin='-gpucsr_debug_standin 1'; fi
ours="-dll_append $LIB -mat_gpucsr_backend cuda $standin -dm_mat_type gpucsr -dm_vec_type gpu -mat_seqaij_type seqaijgpucsr -mat_gpucsr_product_least 0"
export PETSC_OPTIONS=''
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
# shellcheck source=tests/cases.sh
. "$here/cases.sh"

flags=$(pkg-config --cflags --libs "${PETSC:-PETSc}")
for source in snes/tutorials/ex19 snes/tutorials/ex5 ksp/ksp/tutorials/ex56 ts/tutorials/advection-diffusion-reaction/ex5; do
  # shellcheck disable=SC2086 # flags are words
  mpicc -O1 -w -I"$(dirname "$sources/$source.c")" "$sources/$source.c" $([ "$source" = ts/tutorials/advection-diffusion-reaction/ex5 ] && echo "$(dirname "$sources/$source.c")/reaction_diffusion.c") -o "$(echo $source | tr / -)" $flags -lm >said 2>&1 || { cat said; exit 1; }
done

# tutorial PROGRAM OPTIONS ...: as many iterations with the library as without, and the same reasons
tutorial() {
  local program=$1
  shift
  ./$program "$@" -snes_converged_reason -ksp_converged_reason >"$out.aij" 2>&1 || { echo "$program $*: MATAIJ's run fails" && tail -5 "$out.aij"; }
  # shellcheck disable=SC2086
  ./$program "$@" -snes_converged_reason -ksp_converged_reason $ours >"$out.ours" 2>&1 || { echo "$program $*: the run fails" && tail -5 "$out.ours"; }
  if ! grep -q "onverged" "$out.aij"; then echo "$program $*: no test"; fi
  diff <(grep -E "(converged|diverged)" "$out.aij") <(grep -E "(converged|diverged)" "$out.ours") >"$out.diff" || { echo "$program $*: other iterations" && head -6 "$out.diff"; }
}

# shellcheck disable=SC2086 # options are words
for pc in ilu "bjacobi -pc_bjacobi_blocks 4" pbjacobi "asm -pc_asm_blocks 4" "fieldsplit -fieldsplit_pc_type ilu" "mg -mg_levels_pc_type jacobi -da_refine 2 -mg_coarse_pc_type lu" "gamg -mg_levels_pc_type jacobi"; do
  side tutorial snes-tutorials-ex19 -da_grid_x 9 -da_grid_y 9 -ksp_max_it 400 -pc_type $pc
done
for pc in ilu "icc -ksp_type cg" "bjacobi -pc_bjacobi_blocks 8 -sub_pc_type icc -ksp_type cg" "mg -mg_levels_pc_type jacobi -da_refine 2 -ksp_type cg" "gamg -ksp_type cg"; do
  side tutorial snes-tutorials-ex5 -da_grid_x 17 -da_grid_y 17 -pc_type $pc
done
for pc in gamg pbjacobi "bjacobi -pc_bjacobi_blocks 3"; do
  side tutorial ksp-ksp-tutorials-ex56 -ne 6 -pc_type $pc -ksp_type cg
done
for pc in ilu pbjacobi "fieldsplit -fieldsplit_pc_type jacobi" gamg; do
  side tutorial ts-tutorials-advection-diffusion-reaction-ex5 -da_grid_x 16 -da_grid_y 16 -ts_max_steps 4 -pc_type $pc
done
together
