#!/bin/bash
#
# -mat_gpucsr_halo nccl, with the host in place of GPUs and tests/fake/nccl.c in place of NCCL: products and solves on several ranks, faults of one rank, a missing or incomplete library. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
[ "$BACKEND" = host ] && command -v mpicc >/dev/null || exit 77
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
failed=0
mkdir "$tmp/whole" "$tmp/part" "$tmp/none"
mpicc -shared -fPIC -o "$tmp/whole/libnccl.so.2" tests/fake/nccl.c || exit 1
echo 'int ncclGetUniqueId(void *p) { return p == (void *)0; }' >"$tmp/part.c" && mpicc -shared -fPIC -o "$tmp/part/libnccl.so.2" "$tmp/part.c" || exit 1
echo 'not a library' >"$tmp/none/libnccl.so.2"

# halo LIBRARY RANKS ARGS ...
halo() {
  local library=$tmp/$1 ranks=$2
  shift 2
  # shellcheck disable=SC2086 # the launcher is words
  LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 120 $MPIEXEC -n "$ranks" "$BUILD/tests/t422-halo" -dll_append "$LIB" -mat_gpucsr_halo nccl -gpucsr_debug_standin 2 -mat_gpucsr_backend cuda "$@" >"$tmp/out" 2>&1
}
right() {
  halo whole "$@" || { echo "t422-halo of $* ended with status $?:" && cat "$tmp/out" && failed=1; }
}
# solves RANKS ARGS ...: gpucg and gpubcgs by graphs with NCCL in them
solves() {
  local ranks=$1
  shift
  # shellcheck disable=SC2086 # the launcher is words
  LD_LIBRARY_PATH=$tmp/whole${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 240 $MPIEXEC -n "$ranks" "$BUILD/tests/t617-gpuksp-peers" -dll_append "$LIB" -mat_gpucsr_halo nccl -mat_gpucsr_format csr -path graph -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda "$@" >"$tmp/out" 2>&1 || { echo "t617-gpuksp-peers of $* on $ranks ranks failed:" && cat "$tmp/out" && failed=1; }
}
refused() {
  local text=$1
  shift
  if halo "$@" || [ "$(grep -cF -- "$text" "$tmp/out")" != 1 ]; then echo "t422-halo of $* does not end in: $text" && cat "$tmp/out" && failed=1; fi
}
right 1 -vec_type gpu -cases 4
right 3 -vec_type gpu -cases 8
right 4 -standard_vectors -cases 6
right 2 -vec_type gpu -faults -gpucsr_debug_fault launch:27:rank=1
right 2 -vec_type gpu -faults -gpucsr_debug_fault launch:36:rank=1
right 2 -vec_type gpu -gpucsr_peer_patience 0.5 -missing
right 3 -standard_vectors -gpucsr_peer_patience 0.5 -missing
refused "-mat_gpucsr_halo nccl: rank 0, cuda device 0: NCCL has no ncclCommInitRank: version 2.7 or later is needed" part 2 -cases 1
refused "-mat_gpucsr_halo nccl: rank 0, cuda device 0: NCCL cannot be loaded: " none 3 -cases 1
solves 2 -sizes 12
solves 3 -sizes 2,12 -seeds 2
solves 2 -gpucsr_peer_timeout 2 -late
exit $failed
