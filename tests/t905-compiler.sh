#!/bin/bash
#
# A driver but no nvcc: share/cuda.sh fetches a compiler that fits the driver, or says what to do. Two scripts play the driver and PyPI.
#
#   tests/t905-compiler.sh
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
if [ ! -f share/cuda.sh ] || [ -e /proc/driver/nvidia/version ]; then exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin"
# shellcheck disable=SC2016 # the player expands it
printf '#!/bin/sh\necho "$DRIVER"\n' >"$tmp/bin/nvidia-smi"
cat >"$tmp/bin/python3" <<'END'
#!/bin/sh
case "$*" in *--version*) exit 0 ;; esac
if [ "$PYPI" = no ]; then echo "ERROR: no matching distribution" && exit 1; fi
while [ $# -gt 0 ]; do if [ "$1" = --target ]; then mkdir -p "$2/nvidia/cu13/bin" && : >"$2/nvidia/cu13/bin/nvcc" && chmod +x "$2/nvidia/cu13/bin/nvcc"; fi; shift; done
END
chmod +x "$tmp"/bin/*

unset NVCC MAKEFLAGS MAKEOVERRIDES # `make check NVCC=` exports them, and what the makefile finds by itself is the question here

# case DRIVER PYPI NVCC TEXT FETCHED: the output holds TEXT (nothing: silence), and a compiler is there or not
one() {
  rm -rf "$tmp/build"
  DRIVER=$1 PYPI=$2 BUILD=$tmp/build PATH=$tmp/bin:$PATH share/cuda.sh $3 >"$tmp/said" 2>&1 || { echo "driver $1: status $?" && exit 1; }
  if [ -z "$4" ] && [ -s "$tmp/said" ]; then echo "driver '$1', nvcc '$3': should be silent, said: $(cat "$tmp/said")" && exit 1; fi
  grep -qF -- "$4" "$tmp/said" || { [ -z "$4" ] || { echo "driver '$1', PyPI $2: said $(cat "$tmp/said"), not: $4" && exit 1; }; }
  if [ -x "$tmp/build/cuda/nvidia/cu13/bin/nvcc" ]; then fetched=yes; else fetched=no; fi
  if [ "$fetched" != "$5" ]; then echo "driver '$1', PyPI $2: fetched $fetched" && exit 1; fi
}
one 580.65.06 yes '' 'fetching the compiler' yes
one 580.65.06 no '' 'pip could not fetch it: ERROR: no matching distribution. The library is built for the CPU alone' no
one 470.57.02 yes '' 'needs driver 580. The library is built for the CPU alone' no
one 580.65.06 yes /usr/bin/nvcc '' no
one '' yes '' '' no
one 'NVIDIA-SMI has failed' yes '' '' no
DRIVER=580.65.06 BUILD=$tmp/build PATH=$tmp/bin:$PATH share/cuda.sh >/dev/null
# shellcheck disable=SC2016 # make expands it
if [ -z "$(make -s --eval='show:; @echo $(NVCC)' show BUILD="$tmp/build")" ]; then echo "the makefile does not find what was fetched" && exit 1; fi
