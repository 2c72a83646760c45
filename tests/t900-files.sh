#!/bin/bash
#
# What damaged files get from the program `solve`: one clear error that names the file, on one rank and on two, with the library and its type
# asked for; never a signal, never a result.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host MPIEXEC=mpiexec tests/t900-files.sh
program=$BUILD/examples/solve
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
failed=0

# Integers in PETSc's binary format: 4 bytes each, the highest first
ints() {
  local k
  for k; do printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((k >> 24 & 255)) $((k >> 16 & 255)) $((k >> 8 & 255)) $((k & 255)))"; done
}
ones() {
  local k
  for ((k = 0; k < $1; k++)); do printf '\x3f\xf0\0\0\0\0\0\0'; done
}
matrix=1211216 vector=1211214

ints $matrix 3 3 4 1 2 1 0 1 2 2 >"$tmp/good" && ones 4 >>"$tmp/good"
: >"$tmp/empty"
head -c 10 "$tmp/good" >"$tmp/header"
head -c 30 "$tmp/good" >"$tmp/indices"
head -c 60 "$tmp/good" >"$tmp/values"
{ ints $vector 3 && ones 3; } >"$tmp/class"
{ ints 4711 3 3 4 1 2 1 0 1 2 2 && ones 4; } >"$tmp/unknown"
{ ints $matrix -3 3 4 1 2 1 0 1 2 2 && ones 4; } >"$tmp/negative"
{ ints $matrix 2147483647 2147483647 2147483647 1 2 1 0 1 2 2 && ones 4; } >"$tmp/huge"
{ ints $matrix 3 3 4 1 2 1 0 1 7 2 && ones 4; } >"$tmp/column"
{ ints $matrix 3 3 4 1 2 1 0 1 -1 2 && ones 4; } >"$tmp/below"
{ ints $matrix 3 3 4 1 5 -2 0 1 2 2 && ones 4; } >"$tmp/lengths"
{ ints $matrix 3 3 4 1 1 1 0 1 2 2 && ones 4; } >"$tmp/sum"
gzip -c "$tmp/good" >"$tmp/compressed"
mkdir "$tmp/folder"
echo 'no matrix at all' >"$tmp/text"
market='%%MatrixMarket matrix coordinate real general'
printf '%s\n' "$market" '2 2 2' '1 1 1.0' '2 2 1.0' >"$tmp/good.mtx"
printf '%s\n' "$market" >"$tmp/nosize.mtx"
printf '%s\n' "$market" 'nan nan nan' '1 1 1.0' >"$tmp/nan.mtx"
printf '%s\n' "$market" '-2 2 2' '1 1 1.0' '2 2 1.0' >"$tmp/negative.mtx"
printf '%s\n' "$market" '2 2 2' '1 1 1.0' >"$tmp/short.mtx"
printf '%s\n' "$market" '2 2 2' '1 1 1.0' '3 2 1.0' >"$tmp/row.mtx"
printf '%s\n' "$market" '2 2 2' '1 1 1.0' '2 0 1.0' >"$tmp/zero.mtx"
printf '%s\n' "$market" '2 2 2' '1 1 1.0' '2 2 one' >"$tmp/word.mtx"
printf '%s\n' "$market" '2 2 2' '1 1 1.0' '2 2' >"$tmp/novalue.mtx"
printf '%s\n' "$market" '99999999999999999999 2 2' '1 1 1.0' '2 2 1.0' >"$tmp/large.mtx"
printf '%s\n' '%%MatrixMarket matrix coordinate quaternion general' '2 2 1' '1 1 1.0' >"$tmp/field.mtx"
printf '%s\n' '%%MatrixMarket vector coordinate real general' '2 2 1' '1 1 1.0' >"$tmp/object.mtx"

export PETSC_OPTIONS="-dll_append $LIB -mat_gpucsr_backend $BACKEND -mat_gpucsr_format csr -mat_type gpucsr -ksp_type gmres -pc_type none"
for ranks in 1 2; do
  launch=()
  if [ $ranks -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  for name in good good.mtx; do
    if ! "${launch[@]}" "$program" -f "$tmp/$name" >"$tmp/log" 2>&1; then
      echo "$name on $ranks ranks is no damaged file, and yet:" && cat "$tmp/log" && failed=1
    fi
  done
  for name in missing empty header indices values class unknown negative huge column below lengths sum compressed folder text \
    nosize.mtx nan.mtx negative.mtx short.mtx row.mtx zero.mtx word.mtx novalue.mtx large.mtx field.mtx object.mtx; do
    "${launch[@]}" "$program" -f "$tmp/$name" >"$tmp/out" 2>"$tmp/err"
    status=$?
    # the traceback, and PETSc's list of options, name the file too, but not in front of a colon or comma
    said=$(grep -cE "PETSC ERROR: ${tmp}/${name}[,:]" "$tmp/err")
    if [ $status = 0 ] || [ $status -gt 128 ] || [ "$said" != 1 ] || grep -q 'Caught signal' "$tmp/err" || grep -q residual "$tmp/out"; then
      echo "$name on $ranks ranks: status $status, $said clear errors:" && grep -v 'Configure options' "$tmp/err" | head -n 12 && failed=1
    fi
  done
done
exit $failed
