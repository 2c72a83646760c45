#!/bin/bash
#
# A Python wheel of what is built: BUILD/wheel/petsc_gpucsr-VERSION-py3-none-PLATFORM.whl
#
#   BUILD=build PETSC=PETSc share/wheel.sh VERSION     (make wheel)
#
# It holds the library, which fits the PETSc that it was built against, and the module gpucsr of python/.
set -e
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUILD=${BUILD:-build} PETSC=${PETSC:-PETSc} version=$1
python3 -c 'import setuptools, wheel' 2>/dev/null || python3 -c 'from setuptools.command import bdist_wheel' 2>/dev/null || { echo "wheel: Python's setuptools and wheel are not there: apt-get install python3-setuptools python3-wheel, or pip install them" >&2 && exit 1; }
work=$(realpath "$BUILD")/wheel/work
rm -rf "$work" && mkdir -p "$work" && cp -r python/gpucsr python/setup.py "$work" && mkdir -p "$work/gpucsr/lib"
cp "$BUILD/lib/libpetscgpucsr.so" "$work/gpucsr/lib/" && strip --strip-unneeded "$work/gpucsr/lib/libpetscgpucsr.so"
printf 'petsc = "%s"\nversion = "%s"\nlibdir = "lib"\n' "$(pkg-config --modversion "$PETSC")" "$version" >"$work/gpucsr/_built.py"
(cd "$work" && GPUCSR_VERSION=$version python3 setup.py -q bdist_wheel -d .. 2>"$work/log") || { tail -n 20 "$work/log" >&2 && exit 1; }
rm -rf "$work"
ls "$BUILD"/wheel/petsc_gpucsr-"$version"-*.whl
