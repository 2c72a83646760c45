#!/bin/bash
#
# The formulas of Verschoor's and Jalba's model of CG, with their parameters, against numbers computed by hand; and the constants of sys/machine.h that today's formula takes are
# there. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
exec python3 src/benchmarks/papers/cgmodel.py -check
