#!/bin/bash
#
# The Debian package and the Python wheel: built, checked, unpacked elsewhere, and used by a program. A package without its tools is left out; skipped if both are.
#
#   BUILD=build LIB=build/lib/libpetscgpucsr.so tests/t906-packages.sh
if [ ! -f makefile ] || ! pkg-config --exists PETSc; then exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp" "$BUILD/deb" "$BUILD/wheel"' EXIT
solve="$BUILD/examples/solve -f share/datasets/bcsstk16.petsc -ksp_type cg -ksp_view_mat ::ascii_info"
some=''

# use NAME OPTIONS: a program that knows nothing of the library gets a matrix of our type
use() {
  # shellcheck disable=SC2086 # words
  PETSC_OPTIONS="$2 -mat_gpucsr_backend host" $solve >"$tmp/out" 2>&1 || { echo "$1: solve failed:" && cat "$tmp/out" && exit 1; }
  grep -q seqaijgpucsr "$tmp/out" || { echo "$1: the matrix is not seqaijgpucsr:" && cat "$tmp/out" && exit 1; }
}

if command -v dpkg-deb dpkg-shlibdeps dpkg-architecture >/dev/null && dpkg -S "$(realpath "$(pkg-config --variable=libdir PETSc)"/libpetsc*.so | head -n 1)" >/dev/null 2>&1; then
  some=yes
  DEBEMAIL=packager@debian.org DEBFULLNAME=Packager make -s deb BUILD="$BUILD" -o lib -o convert >"$tmp/log" 2>&1 || { cat "$tmp/log" && exit 1; }
  deb=$(ls "$BUILD"/deb/*.deb)
  if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning "$deb" >"$tmp/log" 2>&1 || { echo "lintian:" && cat "$tmp/log" && exit 1; }; fi
  dpkg-deb -f "$deb" Depends | grep -q petsc || { echo "the package does not depend on PETSc" && exit 1; }
  dpkg -x "$deb" "$tmp/deb"
  lib=$(find "$tmp/deb/usr/lib" -type f -name libpetscgpucsr.so)
  use "Debian package" "-dll_append $lib -mat_type gpucsr"
  link=$(find "$tmp/deb/usr/lib" -type l -name libpetscgpucsr.so)
  if [ "$(realpath "$link")" != "$(realpath "$lib")" ] || [ "${link#"$tmp/deb"}" != "$(pkg-config --variable=libdir PETSc)/libpetscgpucsr.so" ]; then echo "the link in PETSc's folder is wrong: $link" && exit 1; fi
fi

if python3 -c 'import setuptools, wheel, venv, ensurepip' 2>/dev/null; then
  some=yes
  make -s wheel BUILD="$BUILD" -o lib >"$tmp/log" 2>&1 || { cat "$tmp/log" && exit 1; }
  python3 -m zipfile -e "$BUILD"/wheel/*.whl "$tmp/wheel"
  use wheel "$(cd "$tmp/wheel" && python3 -m gpucsr --options)"
  (cd "$tmp/wheel" && python3 -m gpucsr) >"$tmp/out" && grep -q '^export PETSC_OPTIONS="-dll_append ' "$tmp/out" || { echo "python -m gpucsr says:" && cat "$tmp/out" && exit 1; }
fi
if [ -z "$some" ]; then exit 77; fi
