#!/bin/bash
#
# The library loaded into a PETSc that it was not built for, of another minor version, scalar type or index size: one clear error, no crash.
# Skipped where no other PETSc is installed; OTHER_PETSC may name folders of pkg-config files, separated by colons.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so OTHER_PETSC=/opt/petsc/lib/pkgconfig tests/t901-load.sh
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
petsc() { ldd "$1" | sed -n 's/.*=> \([^ ]*libpetsc[^ ]*\) .*/\1/p' | grep -v gpucsr | head -n 1 | xargs -r realpath; }
mine=$(petsc "$BUILD/examples/solve") # which knows where it is
echo '#include <petscsys.h>
int main(int argc, char **argv)
{
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscFinalize());
  return 0;
}' >"$tmp/empty.c"
tried=0 failed=0

IFS=: read -ra folders <<<"${OTHER_PETSC:-}"
for folder in "${folders[@]}" /usr/lib/petscdir/*/*/lib/pkgconfig; do
  file=$(find "$folder" -iname 'petsc*.pc' 2>/dev/null | head -n 1)
  if [ -z "$file" ] || ! command -v pkg-config mpicc >/dev/null; then continue; fi
  # shellcheck disable=SC2046 # flags are words
  mpicc "$tmp/empty.c" -o "$tmp/empty" $(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs "$file") -Wl,-rpath,"$(pkg-config --variable=libdir "$file")" 2>"$tmp/log" || continue
  if [ "$(petsc "$tmp/empty")" = "$mine" ]; then continue; fi
  if ! PETSC_OPTIONS='' "$tmp/empty" >"$tmp/log" 2>&1; then continue; fi # a PETSc that does not start here at all
  tried=1
  LD_LIBRARY_PATH=$(dirname "$mine"):$LD_LIBRARY_PATH PETSC_OPTIONS="-dll_append $LIB" "$tmp/empty" >"$tmp/log" 2>&1
  status=$?
  if [ $status = 0 ] || [ $status -gt 128 ] || [ "$(grep -c 'libpetscgpucsr.so was built for .* loaded into' "$tmp/log")" != 1 ]; then
    echo "loaded into $(petsc "$tmp/empty"): ended with status $status and said" && grep -v 'Configure options' "$tmp/log" && failed=1
  fi
done
if [ $tried = 0 ]; then exit 77; fi
exit $failed
