# shellcheck shell=bash
# Sourced by scripts with many small runs of one program, in a folder of their own. The runs go side by side, each with its output in a file.
#
#   side FUNCTION WORD ...    starts a case. A case fails if it prints something; it must not change files of another case
#   together                  waits for all cases and shows their output; fails if there is any
#
# In a case, $out names a file of its own.
cases=0 most=$(($(nproc) < 8 ? $(nproc) : 8))

side() {
  while (($(jobs -rp | wc -l) >= most)); do wait -n; done
  cases=$((cases + 1))
  out=out.$cases
  "$@" >"said.$cases" 2>&1 &
}

together() {
  wait
  for ((n = 1; n <= cases; n++)); do cat "said.$n"; done
  for ((n = 1; n <= cases; n++)); do if [ -s "said.$n" ]; then return 1; fi; done
}
