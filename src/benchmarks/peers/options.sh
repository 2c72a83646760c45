# The options of amgx.sh, hypre.sh and petsc.sh, which read this file: -src, -out, -arch, -jobs. Sets src, out (whole path), arch, jobs, here, nvcc and cuda. default: the folder of the sources inside of out
me=$(basename "$0") src='' out=build/peers arch=90 jobs=$(nproc)
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "$me: $1 needs a value" >&2; exit 2; }
  case $1 in
    -src) src=$2 ;;
    -out) out=$2 ;;
    -arch) arch=$2 ;;
    -jobs) jobs=$2 ;;
    *) echo "$me: unknown option $1 (see its head)" >&2; exit 2 ;;
  esac
  shift 2
done
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
: "${src:=$out/$default}"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
