#!/bin/bash
#
# The library loaded twice into one process: by the same path, by a link to the same file, and from a copy. Each run ends well, or with one
# clear error; none crashes.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so tests/t403-second-load.sh
program=$BUILD/tests/t403-registration
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
ln -s "$LIB" "$tmp/libpetscgpucsr.so"
mkdir "$tmp/copy" && cp "$LIB" "$tmp/copy/libpetscgpucsr.so"
failed=0
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_odr_violation=0 # two copies of a library define everything twice

# twice NAME PATH: may it fail? only with a message
twice() {
  local status
  PETSC_OPTIONS="-mat_gpucsr_backend $BACKEND" "$program" -dll_append "$LIB,$2" -mat_type gpucsr >"$tmp/out" 2>&1
  status=$?
  if [ $status = 0 ] && [ ! -s "$tmp/out" ]; then return; fi
  if [ $status != 0 ] && [ $status -le 128 ] && [ "$3" = may_fail ] && ! grep -q 'Caught signal' "$tmp/out" &&
    [ "$(grep -c 'libpetscgpucsr.*already\|already.*libpetscgpucsr' "$tmp/out")" = 1 ]; then return; fi
  echo "the second load by $1 ended with status $status and said:"
  cat "$tmp/out"
  failed=1
}

twice "the same path" "$LIB"
twice "a link" "$tmp/libpetscgpucsr.so"
twice "a copy" "$tmp/copy/libpetscgpucsr.so" may_fail
# under another name PETSc finds nothing in it, and its error about the type alone would not tell why
cp "$LIB" "$tmp/libcopy.so"
PETSC_OPTIONS="-mat_gpucsr_backend $BACKEND" "$program" -dll_append "$tmp/libcopy.so" -mat_type gpucsr >"$tmp/out" 2>&1
status=$?
if [ $status = 0 ] || [ $status -gt 128 ] || [ "$(grep -c 'libcopy.so is libpetscgpucsr.so under another name' "$tmp/out")" != 1 ]; then
  echo "under another name the library ended with status $status and said:"
  cat "$tmp/out"
  failed=1
fi
exit $failed
