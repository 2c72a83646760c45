#!/bin/bash
#
# A newcomer's format and kernel: docs/adding-a-kernel.md is followed to the letter in a copy of the sources, which is then built and
# tested. Nothing else is edited there.
#
#   BUILD=build tests/t800-newcomer.sh
#
# The page's blocks ```c file=PATH are written to PATH, its blocks ```c row=PATH are added to the end of PATH. If BUILD holds
# device code, nvcc compiles the kernel too and the benchmark must list it. Skipped without a compiler, and
# if PETSc's numbers are not real doubles.
root=$(cd "$(dirname "$0")/.." && pwd)
page=$root/docs/adding-a-kernel.md
if [ ! -f "$root/makefile" ] || [ ! -f "$page" ]; then exit 77; fi
for tool in make pkg-config mpicc; do command -v $tool >/dev/null || exit 77; done
pkg-config --exists "${PETSC:-PETSc}" || exit 77
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
case $BUILD in /*) built=$BUILD ;; *) built=$root/${BUILD:-build} ;; esac
unset PETSC_OPTIONS
export CUDA_VISIBLE_DEVICES=

fail() {
  echo "$1"
  cat "${2:-/dev/null}"
  exit 1
}

# build WORD ...: make these there, with the compilers of BUILD
build() {
  make -C "$tmp/copy" BUILD=build "$@" >"$tmp/log" 2>&1 || fail "make $* failed in the copy:" "$tmp/log"
  if grep -n 'warning:' "$tmp/log"; then fail "make $* warned" "$tmp/log"; fi
}

mkdir "$tmp/copy"
cp -a "$root/makefile" "$root/include" "$root/src" "$root/tests" "$tmp/copy"
awk -v to="$tmp/copy" '
  /^```[a-z]+ (file|row)=/ {split($2, a, "="); path = to "/" a[2]; row = a[1] == "row"; next}
  /^```/ {path = ""}
  path {if (row) print >> path; else print > path}' "$page"
format=$(sed -n 's/^GPUCSR_FORMAT(\([a-z]*\),.*/\1/p' "$tmp/copy/src/mat/impls/gpucsr/blackbox/format/formatlist.h" | tail -n 1)
kernel=$(sed -n 's/^GPUCSR_KERNEL(\([a-z0-9_]*\),.*/\1/p' "$tmp/copy/src/mat/impls/gpucsr/blackbox/kernels/kernellist.h" | tail -n 1)

# Objects keep their flags and times: make then compiles only the files that see the new rows. Those of the other kernels do not change
nvcc=$(sed 's/ .*//' "$root/build/device/flags" 2>/dev/null)
if ! grep -q GPUCSR_HAVE_CUDA "$built/flags" 2>/dev/null || [ ! -x "$nvcc" ]; then nvcc=''; fi
cd "$root" || exit 2
if [ -d "$built/obj" ] && [ -z "$(find "$built/obj" -name '*.gcno' -print -quit)" ]; then
  mkdir "$tmp/copy/build" && cp -a "$built/obj" "$built/flags" "$tmp/copy/build"
  find "$tmp/copy/build/obj" -name '*.d' -exec sed -i 's|^[^ ]*obj/src/|build/obj/src/|' {} +
fi
if [ -n "$nvcc" ]; then
  find build/device \( -path build/device/flags -o -path build/device/arch -o -name '*.cu.o' \) ! -path '*/benchmarks/*' -exec cp -a --parents {} "$tmp/copy" \;
fi
build NVCC="$nvcc" lib build/examples/poisson3d build/tests/t100-formats build/tests/t200-kernels ${nvcc:+build/bench/spmv}
cd "$tmp/copy" || exit 2
plugin="-dll_append $PWD/build/lib/libpetscgpucsr.so -mat_type gpucsr -mat_gpucsr_backend host"
# shellcheck disable=SC2086 # options are words
build/examples/poisson3d -n 6 $plugin -mat_gpucsr_format "$format" -mat_gpucsr_report full >"$tmp/out" 2>&1 || fail "-mat_gpucsr_format $format failed:" "$tmp/out"
if grep -q 'this PETSc computes with' "$tmp/out"; then exit 77; fi
grep -q "A: format $format, kernel $kernel" "$tmp/out" || fail "-mat_gpucsr_format $format is not what ran:" "$tmp/out"
# shellcheck disable=SC2086
build/examples/poisson3d -n 6 $plugin -mat_gpucsr_kernel "$kernel" -mat_gpucsr_transpose_kernel "$kernel" >"$tmp/out" 2>&1 || fail "-mat_gpucsr_kernel $kernel failed:" "$tmp/out"
# shellcheck disable=SC2086
build/examples/poisson3d -n 6 $plugin -mat_gpucsr_format nonsense 2>&1 | grep -q "must be one of auto, .*$format" || fail "an unknown format does not list $format"
build/tests/t100-formats >"$tmp/out" 2>&1 || fail "t100-formats failed:" "$tmp/out"
build/tests/t200-kernels -backend host -only triplets -large 0 >"$tmp/out" 2>&1 || fail "t200-kernels failed:" "$tmp/out"

if [ -n "$nvcc" ]; then
  if ! build/bench/spmv -backend host -shrink 40 -precisions double -setup no -o "$tmp/bench" >"$tmp/out" 2>&1; then fail "the benchmark failed:" "$tmp/out"; fi
  grep -q "\"$kernel\"" "$tmp/bench" || fail "the benchmark does not list $kernel:" "$tmp/bench"
fi

# A fault in the newcomer must be seen: the same with the last entry of every row left out
sed -i 's/row\[k\] == r; k++) sum +=/row[k] == r; k++) if (k + 1 < A->nnz \&\& row[k + 1] == r) sum +=/' "src/mat/impls/gpucsr/blackbox/format/$format.c"
grep -q 'row\[k + 1\]' "src/mat/impls/gpucsr/blackbox/format/$format.c" || fail "the fault could not be put in"
build NVCC="$nvcc" build/tests/t100-formats build/tests/t200-kernels
if build/tests/t100-formats >"$tmp/out" 2>&1; then fail "t100-formats did not see a wrong product"; fi
if build/tests/t200-kernels -backend host -only triplets -large 0 >"$tmp/out" 2>&1; then fail "t200-kernels did not see a wrong product"; fi
grep -q "kernel $kernel" "$tmp/out" || fail "t200-kernels did not name the wrong kernel:" "$tmp/out"
exit 0
