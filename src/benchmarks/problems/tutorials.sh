#!/bin/sh
# Systems that PETSc's own tutorials assemble, in PETSc binary, for the survey: nothing is solved.
#
#   tutorials.sh -src PETSC_SOURCES | -programs FOLDER [-out FOLDER] [-np 8] [-size small|large] [-only NAME]
#
#   -src       sources of the PETSc that pkg-config finds ($PETSC_DIR/src lies in it): the tutorials are compiled into FOLDER (OUT/programs)
#   -programs  folder of compiled tutorials
#   -np        processes, a cube's number (1, 8, 27) for ksp-ex56; MPIEXEC has their launcher, mpiexec by default
#   -size      small: some thousand rows, to try it; large: up to 26 million entries, a minute on 8 cores
set -u
src= programs= out=tutorials np=8 size=large only=
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "tutorials.sh: $1 needs a value" >&2; exit 2; }
  case $1 in
    -src) src=$2 ;;
    -programs) programs=$2 ;;
    -out) out=$2 ;;
    -np) np=$2 ;;
    -size) size=$2 ;;
    -only) only=$2 ;;
    *) echo "tutorials.sh: unknown option $1 (see its head)" >&2; exit 2 ;;
  esac
  shift 2
done
[ -n "$src$programs" ] || { echo "tutorials.sh: -src or -programs is needed (see its head)" >&2; exit 2; }
: "${programs:=$out/programs}"
mkdir -p "$out" "$programs" || exit 2
out=$(cd "$out" && pwd) programs=$(cd "$programs" && pwd)

# system NAME PROGRAM PREFIX SMALL LARGE OPTION ...: S in the options becomes the size
system() {
  name=$1 program=$2 prefix=$3 s=$4
  [ "$size" = small ] || s=$5
  shift 5
  case $name in *"$only"*) ;; *) return ;; esac
  if [ ! -x "$programs/$program" ]; then
    [ -n "$src" ] || { echo "tutorials.sh: $programs/$program is not there, and -src is not given" >&2; return; }
    file=$src/src/$(echo "$program" | sed 's|^ksp-|ksp/ksp/tutorials/|; s|^snes-|snes/tutorials/|').c
    $(pkg-config --variable=ccompiler PETSc) -O2 $(pkg-config --cflags PETSc) "$file" -o "$programs/$program" $(pkg-config --libs PETSc) -lm -Wl,-rpath,"$(pkg-config --variable=libdir PETSc)" || return
  fi
  options=$(echo "$*" | sed "s/\\bS\\b/$s/g")
  rm -f "$out/$name.petsc"
  cd "$out" || return # some leave files behind
  timeout 100 ${MPIEXEC:-mpiexec} -n "$np" "$programs/$program" $options -${prefix}ksp_max_it 1 -${prefix}ksp_type gmres -${prefix}pc_type none -snes_max_it 1 -snes_linesearch_type basic \
    -${prefix}ksp_view_mat "binary:$out/$name.petsc" -viewer_binary_skip_info > "$out/$name.log" 2>&1
  [ -s "$out/$name.petsc" ] || echo "tutorials.sh: $name was not assembled, see $out/$name.log" >&2
}
tetrahedra='-dm_plex_dim 3 -dm_plex_reference_cell_domain -dm_plex_cell tetrahedron'
cubes='-dm_plex_dim 3 -dm_plex_simplex 0 -dm_plex_box_faces S,S,S'

system elasticity3d ksp-ex56 '' 7 47 -ne S
system elasticity2d ksp-ex49 elas_ 20 700 -mx S -my S
system stokes3d ksp-ex42 stokes_ 6 32 -mx S -my S -mz S
system stokes2d ksp-ex43 stokes_ 20 400 -mx S -my S
system poisson_tetrahedra1 snes-ex13 '' 3 6 $tetrahedra -dm_refine S -potential_petscspace_degree 1
system poisson_tetrahedra2 snes-ex13 '' 2 5 $tetrahedra -dm_refine S -potential_petscspace_degree 2
system poisson_cubes2 snes-ex13 '' 4 30 $cubes -potential_petscspace_degree 2
system elasticity_cubes2 snes-ex17 '' 3 14 $cubes -displacement_petscspace_degree 2
system elasticity_squares3 snes-ex17 '' 8 120 -dm_plex_dim 2 -dm_plex_simplex 0 -dm_plex_box_faces S,S -displacement_petscspace_degree 3
system taylor_hood snes-ex62 '' 3 10 -sol quadratic $cubes -vel_petscspace_degree 2 -pres_petscspace_degree 1
system convection_cavity snes-ex19 '' 20 500 -da_grid_x S -da_grid_y S
system ice_flow snes-ex48 '' 6 50 -M S -P 12
rm -f "$out"/*-p00*.dat
ls -l "$out"/*.petsc
