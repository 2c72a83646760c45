# shellcheck shell=bash
# Sourced by scripts that compare runs of bmrm, in folder $tmp.
data=share/datasets/learning
export PETSC_OPTIONS="${PETSC_OPTIONS:-} -dll_append $LIB -mat_gpucsr_backend $BACKEND"
fail() { echo "$*" >&2 && exit 1; }

# learn RANKS OPTIONS ...: a line in json
learn() {
  local ranks=$1 launch=()
  shift
  if [ "$ranks" -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  "${launch[@]}" "$BUILD/examples/bmrm" -json "$tmp/json" "$@" >"$tmp/out" 2>&1 && return
  if grep -q "needs a PETSc of real numbers" "$tmp/out"; then exit 77; fi
  fail "bmrm $*: $(cat "$tmp/out")"
}

# same WHAT [PENALTY]: all runs converged, and no objective lies below another objective less its gap, up to the rounding of sums of 1e3 rows. The first objective is higher by at most PENALTY
same() {
  python3 - "$tmp/json" "${2:-0}" <<'PYTHON' || fail "$1: ${2:-} $(cat "$tmp/json")"
import json, sys
runs = [json.loads(line) for line in open(sys.argv[1])]
runs[0]["gap"] += float(sys.argv[2])
sys.exit(not (len(runs) > 1 and all(r["reason"] == "CONVERGED" for r in runs) and all(a["objective"] >= b["objective"] - b["gap"] - 1e3 * 2.3e-16 for a in runs for b in runs)))
PYTHON
  rm "$tmp/json"
}
