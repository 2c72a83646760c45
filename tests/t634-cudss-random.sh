#!/bin/bash
#
# t634-cudss-random.c with the host in place of GPUs and tests/fake/cudss.c in place of cuDSS; on a GPU with the library itself, where it is found. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
fake=''
if [ "$BACKEND" = host ]; then
  command -v mpicc >/dev/null || exit 77
  mpicc -shared -fPIC -O1 -o "$tmp/cudss.so" tests/fake/cudss.c -lm || exit 1
  fake="-gpucsr_debug_standin 1 -mat_gpucsr_cudss_library $tmp/cudss.so"
fi
failed=0
run() {
  # shellcheck disable=SC2086 # options are words
  if timeout 240 "$BUILD/tests/t634-cudss-random" -dll_append "$LIB" -mat_gpucsr_backend cuda $fake "$@" >"$tmp/out" 2>&1; then return; fi
  if [ -z "$fake" ] && grep -q 'cuDSS cannot be loaded' "$tmp/out"; then exit 77; fi
  echo "t634-cudss-random $*:" && grep -v 'MATGPUCSR warning' "$tmp/out" && failed=1
}
if [ -z "$fake" ]; then
  run -programs 150
  run -first 1000 -programs 30 -mat_gpucsr_master device
  run -first 1300 -programs 30 -mat_gpucsr_cudss_deterministic 1
  exit $failed
fi
run -programs 800
run -first 800 -programs 200 -gpucsr_debug_defer 1
FAKE_CUDSS_PIVOT=1e300 run -first 900 -programs 100 # zero pivots of which the library says nothing
run -first 1000 -programs 200 -mat_gpucsr_master device -gpucsr_debug_defer 2
run -first 1200 -programs 100 -mat_gpucsr_precision single
run -first 1300 -programs 100 -mat_gpucsr_cudss_deterministic 1 -malloc_dump
exit $failed
