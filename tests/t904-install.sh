#!/bin/bash
#
# `make install`, a user's program compiled and run with the flags of pkg-config, and `make uninstall`. Skipped without a compiler.
#
#   BUILD=build tests/t904-install.sh
if ldd "$LIB" | grep -q libasan; then exit 77; fi # a library for the sanitizers wants programs that are
if ! command -v pkg-config make mpicc >/dev/null || ! pkg-config --exists PETSc || [ ! -f makefile ]; then exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
make -s install BUILD="$BUILD" DOCS="$tmp/docs" PREFIX="$tmp/p" -o lib -o convert -o "$BUILD/examples/bmrm" >"$tmp/log" 2>&1 || { cat "$tmp/log" && exit 1; }
export PKG_CONFIG_PATH=$tmp/p/lib/pkgconfig:$PKG_CONFIG_PATH
echo '#include <petscgpucsr.h>
int main(int argc, char **argv)
{
  Mat       A;
  PetscBool ours;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 1, 1, 1, 1));
  PetscCall(MatSetType(A, MATGPUCSR));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &ours));
  PetscCheck(ours, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The matrix is of another type");
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}' >"$tmp/user.c"
# shellcheck disable=SC2046 # flags are words
mpicc "$tmp/user.c" -o "$tmp/user" $(pkg-config --cflags --libs petscgpucsr PETSc) -Wl,-rpath,"$(pkg-config --variable=libdir PETSc)" || exit 1
PETSC_OPTIONS='' "$tmp/user" || exit 1
pages=''
if command -v python3 >/dev/null; then pages="share/man/man1/gpucsr-convert.1 share/man/man1/gpucsr-advise.1 share/man/man1/bmrm.1 share/man/man3/MATGPUCSR.3 share/man/man3/MatGPUCSRGetInfo.3 share/doc/petscgpucsr/html/index.html"; fi
for file in bin/gpucsr-convert bin/gpucsr-advise bin/bmrm share/petscgpucsr/python/gpucsr/learn.py lib/libpetscgpucsr.so include/petscgpucsr.h lib/pkgconfig/petscgpucsr.pc share/doc/petscgpucsr/{README.md,LICENSE,CHANGELOG,docs/options.md,docs/results/products.png} $pages; do
  if [ ! -e "$tmp/p/$file" ]; then echo "$file is not installed" && exit 1; fi
done
PETSC_OPTIONS='' "$tmp/p/bin/gpucsr-advise" share/datasets/ash219.mtx | grep -q 'take: ' || { echo "gpucsr-advise does not run where it is installed" && exit 1; }
if [ "$(pkg-config --variable=library petscgpucsr)" != "$tmp/p/lib/libpetscgpucsr.so" ]; then echo "pkg-config gives another library: $(pkg-config --variable=library petscgpucsr)" && exit 1; fi
"$tmp/p/bin/bmrm" -f share/datasets/learning/heart_scale.svm.gz -dll_append "$tmp/p/lib/libpetscgpucsr.so" >/dev/null || { echo "bmrm does not run where it is installed" && exit 1; }
if command -v python3 >/dev/null; then
  found=$(PYTHONPATH=$(pkg-config --variable=pythondir petscgpucsr) python3 -B -c 'import gpucsr; print(gpucsr.library())')
  if [ "$found" != "$tmp/p/lib/libpetscgpucsr.so" ]; then echo "the module gpucsr names another library: $found" && exit 1; fi
fi
make -s uninstall BUILD="$BUILD" DOCS="$tmp/docs" PREFIX="$tmp/p" >"$tmp/log" 2>&1 || { cat "$tmp/log" && exit 1; }
if [ -n "$(find "$tmp/p" -type f)" ]; then echo "make uninstall leaves:" && find "$tmp/p" -type f && exit 1; fi
