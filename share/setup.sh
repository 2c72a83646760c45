#!/bin/bash
#
# Install what building needs and is missing, from the distribution's packages. Does nothing, and needs no network, where all is there.
#
#   share/setup.sh            what `make` and `make demo` need
#   share/setup.sh check      and what tests use where they find it (petsc4py, slepc4py, PETSc with complex numbers and with 64-bit indices); it is no error if that cannot be had
#
# PETSC names the pkg-config module of the PETSc to build against, as in the makefile. Needs root or sudo only to install.
petsc=${PETSC:-PETSc}
missing=()

# want PROGRAM PACKAGE ...
want() {
  if ! command -v "$1" >/dev/null; then missing+=("${@:2}"); fi
}

want make make
want gcc gcc libc6-dev
want g++ g++
want pkg-config pkg-config
want mpicc libopenmpi-dev
want mpiexec openmpi-bin
if ! pkg-config --exists "$petsc" 2>/dev/null; then
  case $petsc in
  PETSc | petsc) missing+=(libpetsc-real-dev) ;;
  PETSc64 | petsc64) missing+=(libpetsc64-real-dev) ;;
  *)
    echo "setup: pkg-config does not know a PETSc named $petsc: put the folder of its $petsc.pc into PKG_CONFIG_PATH" >&2
    exit 1
    ;;
  esac
fi
# Another PETSc than the distribution's has its own petsc4py and slepc4py, or none
optional=()
if [ "$1" = check ] && [ "$petsc" = PETSc ] && [ -z "$PKG_CONFIG_PATH" ] && command -v apt-get >/dev/null; then
  for name in petsc slepc; do
    if ! compgen -G "/usr/lib/${name}dir/*/*-real/lib/python3/dist-packages/${name}4py" >/dev/null; then optional+=("python3-${name}4py-real"); fi
  done
  # t909 builds in each of the distribution's flavours, which lie side by side; PETSc.pc stays that of the real one with 32-bit indices
  for name in petsc-complex petsc64-real petsc64-complex; do
    if [ ! -e "/usr/lib/petscdir/$name/lib/pkgconfig/PETSc.pc" ]; then optional+=("lib$name-dev"); fi
  done
fi
if [ ${#missing[@]} = 0 ] && [ ${#optional[@]} = 0 ]; then exit 0; fi

if ! command -v apt-get >/dev/null; then
  echo "setup: missing here: ${missing[*]} (names of Debian's packages). This system has no apt-get: install what corresponds to them, a C and C++" >&2
  echo "compiler, MPI, pkg-config and PETSc 3.18 or later with shared libraries, and run make again." >&2
  exit 1
fi
root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    if [ ${#missing[@]} = 0 ]; then exit 0; fi
    echo "setup: missing here: ${missing[*]}. As root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  root=(sudo)
fi

# apt WORD ...: apt-get, its output in a file
log=$(mktemp) && trap 'rm -f "$log"' EXIT
apt() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$log" 2>&1; }

echo "setup: installing ${missing[*]} ${optional[*]}"
apt update # what it cannot do shows next
if [ ${#missing[@]} != 0 ] && ! apt install -y --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  echo "setup: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
# One that the distribution lacks keeps none of the rest away
if [ ${#optional[@]} != 0 ] && ! apt install -y --no-install-recommends "${optional[@]}"; then
  for name in "${optional[@]}"; do
    apt install -y --no-install-recommends "$name" || echo "setup: $name could not be installed; the tests that use it are skipped"
  done
fi
pkg-config --exists "$petsc" || { echo "setup: the packages are installed, yet pkg-config does not know $petsc" >&2 && exit 1; }
