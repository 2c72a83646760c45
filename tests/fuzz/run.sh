#!/bin/bash
#
# Fuzz the readers with libFuzzer (clang), the address and the undefined-behaviour sanitizer.
#
#   tests/fuzz/run.sh TARGET [SECONDS] [FOLDER]     TARGET is read, loadfile or number; for 60 seconds; new inputs go to FOLDER (build/fuzz/TARGET)
#   tests/fuzz/run.sh TARGET FILE                   one input again: a finding
#
# The seeds are in tests/fuzz/seeds. A seed is a number for `number`, else two bytes and a file (bytes of `read`: size of blocks, whether to skip bad lines and to bound
# indices; see the targets). A finding is written to the current folder; after the repair its place is among the seeds. PETSC names the pkg-config module, as in the makefile:
# but for `loadfile` its headers alone are used.
# tests/fuzz/read.tar.xz holds inputs found so far, the fewest that reach the same code (-merge=1): a run starts from them.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
target=$1 what=${2:-60} folder=${3:-build/fuzz/$1}
flags=(-g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined)
mpi=$(mpicc --showme:compile 2>/dev/null || mpicc -compile_info 2>/dev/null | tr ' ' '\n' | grep '^-I' | tr '\n' ' ')
sources=(src/io/{piece,decode,source,assemble}.c src/io/formats/{number,libsvm,market,boeing,binary}.c) seeds=$target stored=$target
if [ "$target" = loadfile ]; then
  sources+=(src/io/{loadfile,loadtext,setrows}.c src/sys/agree.c) libraries=$(pkg-config --libs "${PETSC:-PETSc}")" "$(mpicc --showme:link 2>/dev/null)
  seeds=read stored=read
fi
mkdir -p build/fuzz
# shellcheck disable=SC2046,SC2086 # words
clang "${flags[@]}" -DGPUCSR_HAVE_ZLIB -DGPUCSR_HAVE_LZMA -DGPUCSR_HAVE_BZ2 -DGPUCSR_HAVE_ZSTD $(pkg-config --cflags "${PETSC:-PETSc}") $mpi \
  -Iinclude tests/fuzz/"$target".c "${sources[@]}" ${libraries:-} -lz -llzma -lbz2 -lzstd -lm -o build/fuzz/fuzz-"$target" || exit 2
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=1024:detect_leaks=$([ "$target" = loadfile ] && echo 0 || echo 1) # MPI keeps what it has
export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_opal_signal= PETSC_OPTIONS=-no_signal_handler # signals are the fuzzer's
if [ -f "$what" ]; then exec build/fuzz/fuzz-"$target" "$what"; fi
mkdir -p "$folder"
if [ -f "tests/fuzz/$stored.tar.xz" ]; then tar -xJf "tests/fuzz/$stored.tar.xz" -C "$folder"; fi
exec build/fuzz/fuzz-"$target" -max_total_time="$what" -max_len=1500 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -dict=tests/fuzz/words.dict "$folder" tests/fuzz/seeds/"$seeds"
