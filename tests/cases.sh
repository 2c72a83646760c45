# Sourced by scripts that are many small runs of one program, in a folder of their own: these go side by side, each with its words in a file.
#
#   side FUNCTION WORD ...    a case, which fails by saying something; it may not change files that another one reads
#   together                  wait for all, show what they said; fails where one did
#
# In a case, $out is the name of a file of its own.
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
