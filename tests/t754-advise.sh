#!/bin/bash
#
# gpucsr-advise: its output for files of each kind, and for wrong ones.
#
#   BUILD=build tests/t754-advise.sh
advise=$(realpath "$BUILD/bin/gpucsr-advise") data=$(realpath share/datasets)
if [ ! -x "$advise" ]; then echo "$advise is not built: make convert" && exit 1; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
failed=0
export PETSC_OPTIONS=''

# ends STATUS TEXT ARGS ...: the program ends so and says TEXT
ends() {
  local status=$1 text=$2 is
  shift 2
  timeout 60 "$advise" "$@" >out 2>err
  is=$?
  if ((is != status)) || ! cat out err | grep -qF -- "$text"; then
    echo "$*: status $is, should be $status and say: $text" && cat out err
    failed=1
  fi
}

if ! "$advise" "$data/gr_30_30.mtx" 2>&1 | grep -q 'advice'; then # complex numbers, or 64 bits without features
  ends 1 "No model covers the numbers of this PETSc" "$data/gr_30_30.mtx"
  exit $failed
fi
ends 0 "MATGPUCSR advice for 900 x 900" "$data/gr_30_30.mtx"
ends 0 "MATGPUCSR advice for 1224 x 1224" "$data/bcsstk27.petsc"
ends 0 "MATGPUCSR advice for" "$data/learning/heart_scale.svm.gz"
ends 0 "take: " "$data/bcsstk27.petsc" -mat_gpucsr_precision single -mat_gpucsr_format bcsr3x3
ends 0 "Usage: " -help
ends 0 "gpucsr-advise 0" -version
ends 2 "no file"
ends 2 "unknown option -what" -what "$data/gr_30_30.mtx"
ends 2 "one file, not also b" a b
ends 1 "nowhere.mtx" nowhere.mtx
# the solver: of a symmetric matrix, and of an unsymmetric one
ends 0 "to solve with CG -ksp_type gpucg" "$data/bcsstk16.petsc"
ends 0 "to solve with BiCGStab or GMRES -ksp_type gpubcgs or gpugmres" "$data/bfw782a.petsc"
head -c 3000 "$data/nos3.petsc" >short.petsc
ends 1 "has 3000 bytes where its header asks for 193984" short.petsc
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 0\n' >empty.mtx
ends 1 "No model covers a matrix of 3 rows, 3 columns and 0 nonzeros" empty.mtx
printf 'gpucsr-profile 2\n' >profile
ends 1 'its first line is not "gpucsr-profile 6"' "$data/gr_30_30.mtx" -mat_gpucsr_profile profile
sed 's/^/x/' err | (($(wc -l) == 1)) || { echo "an error is more than a line" && cat err && failed=1; }
printf 'gpucsr-profile 6\nmachine M\ncost csr csr_vector8 8 8 inf 3 0.1' >profile
ends 1 'line 3 should be "cost FORMAT KERNEL" and 24 numbers' "$data/gr_30_30.mtx" -mat_gpucsr_profile profile
printf 'gpucsr-profile 6\nmachine M\ncost csr csr_vector8 8 8 inf 1  3 0.1 0.2 0 0.1 0 0 0 0 0 0 0 0 0 0 0 0 0  20 0\n' >profile
ends 1 "The profile has no line for format jad" "$data/gr_30_30.mtx" -mat_gpucsr_profile profile -mat_gpucsr_format jad

if ! command -v python3 >/dev/null; then exit $failed; fi
# the lines that convert files of other programs
if python3 -c 'import numpy, scipy' 2>/dev/null; then
  python3 -c "import numpy, scipy.io, scipy.sparse as s; A = s.random(9, 8, 0.4, 'csr'); s.save_npz('a.npz', A); numpy.save('a.npy', A.toarray()); scipy.io.savemat('a.mat', {'A': A})"
  for file in a.npz a.npy a.mat; do
    ends 1 "convert it: python3 -c" $file
    bash -c "$(sed 's/.*convert it: //; s/ FILE.*/ '$file'/' err)" && ends 0 "MATGPUCSR advice for 9 x 8" new.mtx
    rm -f new.mtx
  done
fi
exit $failed
