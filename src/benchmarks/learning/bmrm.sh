#!/bin/sh
# Learning by the bundle method on data sets of the shape of well-known ones, as tables: bmrm.py, from what `make lib examples convert` built.
#
#   bmrm.sh [-build build] [-out FOLDER] [-sets NAME,...] [-configurations NAME,...] [-budget SECONDS] [-ranks N] [-dir FOLDER] [-name NAME] [-lines]
#
#   -build    lib/libpetscgpucsr.so, examples/bmrm and examples/learnset; default build
#   -out      gets bmrm.jsonl (added to), NAME.md and NAME-*.png; default bmrm-results, or $OUT
#   -sets     sets of learnset (NAME:10 for ten classes), files for bmrm, or `shipped`: the files of share/datasets. Default: shipped and all sets of learnset
#   -budget   seconds for everything; a message names runs left out. Default 3600
#   -limit    seconds for one run. Default 120
#   -long     entries times iterations that a core is given; beyond, a run of aij is cut and its time scaled. Default 2e9
#   -iterations  at the most, of any run. Default 2000
#   -dense    bytes of a dense matrix, beyond which dense types are left out. Default 6e9
#   -ranks    of the parallel runs; default: the cores of this machine
#   -lines    add to bmrm.jsonl, and write no page
#   -dir      the folder for data sets; default: a temporary folder
#
# Runs without a GPU too: gpucsr then is the host backend.
exec python3 "$(dirname "$0")/bmrm.py" "$@"
