#!/bin/sh
# Learning by the bundle method on data sets of the shape of well-known ones, as tables: bmrm.py, from what `make lib examples convert` built.
#
#   bmrm.sh [-build build] [-out FOLDER] [-sets NAME,...] [-configurations NAME,...] [-budget SECONDS] [-ranks N] [-dir FOLDER] [-name NAME] [-lines]
#
#   -build    lib/libpetscgpucsr.so, examples/bmrm and examples/learnset; default build
#   -out      gets bmrm.jsonl (added to), NAME.md and NAME-*.png; default bmrm-results, or $OUT
#   -sets     names that learnset knows (NAME:10 for ten classes), files that bmrm reads, or `shipped`: those of share/datasets; default: shipped and all of learnset's
#   -budget   seconds for everything; what does not fit is left out and said so. Default 3600
#   -limit    seconds for one run. Default 120
#   -long     entries times iterations that a core is given; beyond, a run of aij is cut and its time scaled. Default 2e9
#   -iterations  at the most, of any run. Default 2000
#   -dense    bytes of a dense matrix, beyond which dense types are left out. Default 6e9
#   -ranks    of the parallel runs; default: the cores of this machine
#   -lines    add to bmrm.jsonl, and write no page
#   -dir      where data sets are made, and left; default: a temporary folder that goes
#
# Runs without a GPU too: gpucsr then is the host backend.
exec python3 "$(dirname "$0")/bmrm.py" "$@"
