#!/bin/bash
#
# Fetch NVIDIA's direct solver cuDSS, with the cuBLAS that it needs, from PyPI's wheels into BUILD/cudss, where the library looks for it. Needs no root, and no GPU.
#
#   BUILD=build share/cudss.sh
#
# CUDA 13's, or CUDA 12's for a driver that is too old for it.
BUILD=${BUILD:-build}
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
cuda=13
if [[ $driver =~ ^[0-9]+\. ]] && ((${driver%%.*} < 580)); then cuda=12; fi
if [ -e "$BUILD/cudss/nvidia/cu$cuda/lib/libcudss.so.1" ]; then echo "cudss: $BUILD/cudss has it" && exit 0; fi
if ! python3 -m pip --version >/dev/null 2>&1; then echo "cudss: python3 has no pip: apt install python3-pip" >&2 && exit 1; fi
echo "cudss: fetching nvidia-cudss-cu$cuda and nvidia-cublas (0.6 GB) from PyPI into $BUILD/cudss" >&2
if ! log=$(python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$BUILD/cudss" "nvidia-cudss-cu$cuda==1.*" 2>&1); then
  rm -rf "$BUILD/cudss"
  echo "cudss: pip could not fetch it: $(tail -n 1 <<<"$log")" >&2
  exit 1
fi
echo "cudss: -pc_type lu of a large gpucsr matrix takes it from now on; -ksp_view says so"
