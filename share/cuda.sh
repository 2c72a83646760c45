#!/bin/bash
#
# A GPU but no nvcc: fetch NVIDIA's compiler from PyPI's wheels into BUILD/cuda, where the makefile looks for it. Needs no root.
#
#   BUILD=build share/cuda.sh [NVCC]
#
# Does nothing where the makefile found an nvcc, which it names here, or where no driver is. Never an error: what cannot be had is said, and the library is built for the host.
BUILD=${BUILD:-build}
if [ -n "$1" ]; then exit 0; fi

# The version of the driver, as nvidia-smi or the kernel's module gives it
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
if ! [[ $driver =~ ^[0-9]+\. ]]; then driver=$(sed -n 's/^NVRM version:.* \([0-9][0-9.]*\)  .*/\1/p' /proc/driver/nvidia/version 2>/dev/null); fi
if ! [[ $driver =~ ^[0-9]+\. ]]; then exit 0; fi

without() {
  echo "cuda: $1. The library is built for the CPU alone. To use the GPU: $2, then make clean and make demo" >&2
  exit 0
}
if ((${driver%%.*} < 580)); then
  without "an NVIDIA driver $driver is here, but no nvcc, and the compiler that PyPI has needs driver 580" "update the driver, or install the CUDA toolkit that fits it (nvidia-smi shows its version)"
fi
echo "cuda: an NVIDIA driver $driver is here, but no nvcc: fetching the compiler (105 MB) from PyPI into $BUILD/cuda; make demo CUDA=no declines"
if ! python3 -m pip --version >/dev/null 2>&1; then
  root=()
  if [ "$(id -u)" != 0 ]; then root=(sudo); fi
  if command -v apt-get >/dev/null && { [ ${#root[@]} = 0 ] || command -v sudo >/dev/null; }; then
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-pip >/dev/null 2>&1
  fi
fi
# CUDA 13.0 is what every driver from 580 on runs
wheels=(nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl)
if ! log=$(python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$BUILD/cuda" "${wheels[@]/%/==13.0.*}" 2>&1); then
  rm -rf "$BUILD/cuda"
  without "pip could not fetch it: $(tail -n 1 <<<"$log")" "install the CUDA toolkit"
fi
