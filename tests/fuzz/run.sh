#!/bin/bash
#
# Fuzz the readers with libFuzzer (clang), the address and the undefined-behaviour sanitizer.
#
#   tests/fuzz/run.sh TARGET [SECONDS] [FOLDER]     TARGET is read or number; for 60 seconds; new inputs go to FOLDER (build/fuzz/TARGET)
#   tests/fuzz/run.sh TARGET FILE                   one input again: a finding
#
# The seeds are in tests/fuzz/seeds/TARGET: for `read` two bytes (size of blocks, whether to skip bad lines and to bound indices) and a file. A finding is written to the
# current folder; once it is fixed, it belongs among the seeds. PETSC names the pkg-config module, as in the makefile: its headers alone are used.
# tests/fuzz/read.tar.xz holds inputs found so far, as few as reach what all did (-merge=1): a run starts from them.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
target=$1 what=${2:-60} folder=${3:-build/fuzz/$1}
flags=(-g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined)
mpi=$(mpicc --showme:compile 2>/dev/null || mpicc -compile_info 2>/dev/null | tr ' ' '\n' | grep '^-I' | tr '\n' ' ')
mkdir -p build/fuzz
# shellcheck disable=SC2046,SC2086 # words
clang "${flags[@]}" -DGPUCSR_HAVE_ZLIB -DGPUCSR_HAVE_LZMA -DGPUCSR_HAVE_BZ2 $(pkg-config --cflags "${PETSC:-PETSc}") $mpi \
  tests/fuzz/"$target".c src/io/{piece,number,libsvm,market,boeing,binary,source,assemble}.c -lz -llzma -lbz2 -lm -o build/fuzz/fuzz-"$target" || exit 2
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
if [ -f "$what" ]; then exec build/fuzz/fuzz-"$target" "$what"; fi
mkdir -p "$folder"
if [ -f "tests/fuzz/$target.tar.xz" ]; then tar -xJf "tests/fuzz/$target.tar.xz" -C "$folder"; fi
exec build/fuzz/fuzz-"$target" -max_total_time="$what" -max_len=1500 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -dict=tests/fuzz/words.dict "$folder" tests/fuzz/seeds/"$target"
