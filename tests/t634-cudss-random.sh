#!/bin/bash
#
# t634-cudss-random.c with the host in place of GPUs and tests/fake/cudss.c in place of cuDSS. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
if [ "$BACKEND" != host ] || ! command -v mpicc >/dev/null; then exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
mpicc -shared -fPIC -O1 -o "$tmp/cudss.so" tests/fake/cudss.c -lm || exit 1
failed=0
run() {
  if ! timeout 240 "$BUILD/tests/t634-cudss-random" -dll_append "$LIB" -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_cudss_library "$tmp/cudss.so" "$@" >"$tmp/out" 2>&1; then
    echo "t634-cudss-random $*:" && grep -v 'MATGPUCSR warning' "$tmp/out" && failed=1
  fi
}
run -programs 800
run -first 800 -programs 200 -gpucsr_debug_defer 1
run -first 1000 -programs 200 -mat_gpucsr_master device -gpucsr_debug_defer 2
run -first 1200 -programs 100 -mat_gpucsr_precision single
run -first 1300 -programs 100 -mat_gpucsr_cudss_deterministic 1 -malloc_dump
exit $failed
