#!/bin/bash
#
# What a reader would have to check by eye: direction of includes, white space, lengths of files and functions, shadowing, compute capability, cppcheck, man pages, words that do not belong.
#
#   tests/lint.sh [-quick] [FOLDER]     of the tree above this folder, or of another; -quick leaves out cppcheck and shadowing, which take minutes
#
# Prints one line if all is well, otherwise each fault with its place. A missing tool is named, and its check counts as left out. `make format` mends white space.

quick=''
if [ "${1:-}" = -quick ]; then quick=yes && shift; fi
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}" || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 left_out=0

# check NAME COMMAND ...: passes when the command is silent and succeeds
check() {
  local name=$1
  shift
  if "$@" >"$tmp/out" 2>&1 && [ ! -s "$tmp/out" ]; then
    passed=$((passed + 1))
  else
    echo "FAILED $name" && cat "$tmp/out" && echo
    failed=$((failed + 1))
  fi
}

# need PROGRAM: is it there?
need() {
  if command -v "$1" >/dev/null; then return 0; fi
  echo "lint: $1 is not there, its check is left out" >&2
  left_out=$((left_out + 1))
  return 1
}

# Files of our own in C and CUDA
sources=$(find src include tests -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | grep -v plan/h200.h | sort) # h200.h is made by src/benchmarks/fit/fit.c

# --- Rooms: includes allowed for each file (rooms.py), and system headers that are not

mat=src/mat/impls/gpucsr
vec=src/vec/impls/gpu
tao=src/tao/impls/bmrm
cuda='cuda|cub/|cublas|cusparse|thrust'
upper='petsc(vec|mat|dm|pc|ksp|snes|ts|tao|gpucsr)|petsc/private'

# without "FILES" "REGEX": the files include no system header matching REGEX
without() { # shellcheck disable=SC2086 # names without blanks
  grep -nE "^ *# *include *<($2)" $1 /dev/null | sed 's/$/: must not be included here/'
}

rooms() {
  if need python3; then python3 tests/rooms.py; fi
  without "$(find src/sys $mat/blackbox \( -name '*.[ch]' \) ! -path 'src/sys/backends/cuda/*')" "$upper|$cuda"
  without "$(find $mat/type $mat/product $mat/sparse $mat/factor $mat/mpi $mat/report $vec src/ksp/impls src/ksp/pc src/tao/impls src/dlregisgpucsr.c -name '*.[ch]')" "$cuda"
  without "$(find src/io -name '*.[ch]' ! -name 'load*' ! -name setrows.c)" "$upper|$cuda"
  without "$(find src/bin src/learn include -name '*.[ch]')" "petsc/private|$cuda"
  without "$(find src/ksp/examples -name '*.[ch]' ! -name newton.c)" "petsc/private|petscgpucsr|$cuda"
  without src/ksp/examples/newton.c "petsc/private|$cuda"
}
check "rooms" rooms

# One build of the kernels serves every PETSc: the device sources are plain C, with all their includes as nvcc sees them
plain() {
  local file include petsc
  include=$(echo '#include <petscsys.h>' | mpicc -E -x c $(pkg-config --cflags "${PETSC:-PETSc}") - 2>/dev/null | sed -n 's|^# 1 "\(.*\)/petscsys.h".*|\1|p' | head -n 1)
  petsc=$(find src -name '*.cu' ! -path 'src/benchmarks/*' | sort)
  # shellcheck disable=SC2086 # names without blanks
  grep -nE 'Petsc|PETSC_|KSP_[CDN]|MPI_' $petsc $(find src -name '*.cuh') | grep -vE '/\*.*Petsc|GPUKSP_[CDN]'
  for file in $petsc; do
    g++ -M -MG -x c++ -D__CUDACC__ -Iinclude ${include:+-idirafter "$include"} "$file" 2>/dev/null | tr ' ' '\n' | grep -E 'petsc[a-z]*\.h' | sed "s|^|$file: includes |"
  done
}
check "device sources without PETSc" plain

# One header tells releases of PETSc apart. Each room has one file that includes PETSc's private headers, and says why
petscs() {
  grep -rnE 'PETSC_VERSION_[LG][TE]' src --include='*.[ch]' | grep -vE '^src/(sys/gpucsrcompat\.h|benchmarks/|bin/|learn/|ksp/examples/)' | sed 's/$/: releases are compared in gpucsrcompat.h/'
  grep -rnE '# *include <petsc/private/' src --include='*.[ch]' | grep -vE '^src/(io/loadfile\.h|vec/impls/gpu/vecgpuimpl\.h|mat/impls/gpucsr/type/gpucsrimpl\.h|ksp/wrap\.h|ksp/pc/impls/petscprivate\.h|ksp/impls/petsc/methods\.c|ksp/impls/gpu/common/gpukspimpl\.h|tao/impls/bmrm/gpubmrm\.c):.*/\*' | sed 's/$/: see gpucsrcompat.h/'
}
check "releases and private headers of PETSc" petscs

# Solvers see a matrix through operator.h alone
seam() { grep -rnE '"[^"]*gpucsrimpl\.h"' src/ksp src/tao; return 0; }
check "the seam between matrices and solvers" seam

# --- White space

space() {
  # shellcheck disable=SC2086 # names without blanks
  clang-format --dry-run -Werror $sources 2>&1 | grep -E '^[^ ].*: error' | awk -F: '!n[$1]++ {print $1 ":" $2 ": make format would change this line" } END {for (f in n) if (n[f] > 1) print f ": and " n[f] - 1 " more"}' | sort
}
# The same of the files that a page of the documentation tells to write
spaceofpages() {
  local file
  awk -v to="$tmp" '/^```[a-z]+ file=/ {n = split($2, a, "/"); path = to "/" a[n]; next} /^```/ {path = ""} path {print > path}' docs/*.md
  for file in "$tmp"/*.c "$tmp"/*.cu; do
    [ -f "$file" ] || continue
    clang-format --style=file:.clang-format --dry-run -Werror "$file" 2>&1 | sed -n "s|^$tmp/\(.*\): error.*|docs: \1: make format would change this line|p"
  done
}
# The output differs between versions
if need clang-format; then
  if clang-format --version | grep -q 'version 14\.'; then
    check "white space" space
    check "white space of pages" spaceofpages
  else
    echo "lint: clang-format is not version 14, its checks are left out" >&2
    left_out=$((left_out + 2))
  fi
fi

# --- Sizes: no file is longer than a reader can keep in mind; longer files are divided by subject

sizes() { # shellcheck disable=SC2086 # names without blanks
  wc -l $sources | awk '$2 != "total" && $1 > 700 {print $2 ": has " $1 " lines, of at most 700"}'
}
check "sizes" sizes

# A function of the library has at most 100 lines, unless the comment above calls it a flat table and says why
functions() {
  # shellcheck disable=SC2046 # names without blanks
  awk '
    function ends(start) { if (start && FNR - start - 1 > 100 && !flat) print FILENAME ":" start ": a function of " FNR - start - 1 " lines, of at most 100" }
    FNR == 1 { outer = inner = flat = 0 }
    /flat table/ { flat = FNR }
    /^\{$/ { outer = FNR; if (FNR - flat > 3) flat = 0 }
    /^  \{$/ && !outer { inner = FNR; if (FNR - flat > 3) flat = 0 }
    /^\}/ { ends(outer); outer = flat = 0 }
    /^  \}/ && inner { ends(inner); inner = flat = 0 }' $(printf '%s\n' $sources | grep ^src/)
}
check "sizes of functions" functions

# --- The makefile: lines that can be read, and targets that are no files are said to be none

makefile() {
  awk 'length > 200 {print "makefile:" FNR ": has " length " characters, of at most 200"}' makefile
  local target phony
  phony=$(sed -n '/^.PHONY:/,/[^\\]$/p' makefile | tr -s '\\\n' ' ')
  for target in $(sed -n 's/^\([a-z][a-z0-9-]*\):\( .*\)\{0,1\}$/\1/p' makefile); do
    case " $phony " in *" $target "*) ;; *) echo "makefile: $target is not in .PHONY" ;; esac
  done
}
check "makefile" makefile

# --- Names of files, with their folder, in comments and pages: the ends of paths in this tree

paths() {
  python3 - <<'END'
import re
from pathlib import Path

folders = ("src", "include", "tests", "docs", "share", "python")
known = {}
for f in (f for folder in folders for f in Path(folder).rglob("*.*")):
    known.setdefault(f.name, []).append(f"/{f}")
elsewhere = re.compile(r"(nvtx3|petsc|ROOT|tNNN|rvector|commonmpvec|runtests|triplets|_NAME)")
for page in sorted(f for folder in folders for f in Path(folder).rglob("*.*") if f.suffix in (".c", ".h", ".cu", ".cuh", ".md", ".sh")):
    for k, line in enumerate(page.read_text(errors="replace").split("\n"), 1):
        if re.match(r"\s*#\s*include", line):
            continue
        for name in re.findall(r"(?<![\w./{}$*-])((?:[\w.-]+/)+[\w-]+\.(?:c|cu|cuh|h))\b(?!\.[a-z])", line):
            end = name.replace("../", "").lstrip("./")
            if not elsewhere.search(name) and not any(p.endswith("/" + end) for p in known.get(end.rsplit("/", 1)[-1], [])):
                print(f"{page}:{k}: names {name}, which is not there")
END
}
if need python3; then check "names of files" paths; fi

# --- Shadowing: a name that hides another of the same function or file

shadowing() {
  # shellcheck disable=SC2046 # options are words
  find src -name '*.c' ! -path 'src/benchmarks/*' ! -path 'src/sys/backends/cuda/*' -print0 | xargs -0 -P "$(nproc)" -n 8 mpicc -fsyntax-only -Wshadow -std=gnu99 -fopenmp -Iinclude $(pkg-config --cflags "${PETSC:-PETSc}") 2>&1 | grep Wshadow
  return 0
}
if [ -z "$quick" ] && need mpicc && pkg-config --exists "${PETSC:-PETSc}"; then check "shadowing" shadowing; fi

# --- cppcheck

# Suppressed, since here they are wrong:
#   ctunullpointer      follows a NULL device into calls that are made with host vectors alone
#   invalidPointerCast  device memory is bytes, read in the type that was written
cpp() {
  local options=(--quiet --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -Iinclude --template='{file}:{line}: {message} ({id})'
    --suppress=ctunullpointer --suppress=invalidPointerCast)
  cppcheck "${options[@]}" --std=c99 src tests
  cppcheck "${options[@]}" --language=c++ --std=c++17 -D__CUDACC__ "$mat"/blackbox/*/*.cu "$mat"/blackbox/*/*/*.cu "$vec"/*.cu "$tao"/*.cu
}
if [ -z "$quick" ] && need cppcheck; then check "cppcheck" cpp; fi

# --- Compute capability: PTX is made for 7.5 too (makefile); what needs more stands below an #if of __CUDA_ARCH__. A build for one newer GPU does not find out
#
# CUDA's headers give the intrinsics; the search for instructions written as text needs no CUDA.

capability() {
  python3 - "${CUDA_DIR:-$(realpath -m "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)" | sed 's|/bin/.*||')}" <<'END'
import re
import sys
from pathlib import Path

needs = [(80, r"(?:cp\.async|redux\.sync|createpolicy)\b"), (90, r"(?:mbarrier\.[\w.]*(?:try_wait|expect_tx)|cp\.async\.bulk|mapa|barrier\.cluster|multimem|elect\.sync|griddepcontrol|setmaxnreg|wgmma|fence\.proxy|shared::cluster)\b")]
needs = [(level, re.compile("asm\\b.*\\b" + words)) for level, words in needs]
below = set()
for level in (70, 80, 90, 100):
    for folder in (Path(sys.argv[1]) / "include/crt", Path("/usr/local/cuda/include/crt"), Path("/usr/include/crt")):
        header = folder / f"sm_{level}_rt.h"
        if header.exists():
            names = set(re.findall(r"\b(__[a-z]\w*)\s*\(", header.read_text())) - below
            if level > 75 and names:
                needs.append((level, re.compile(r"\b(?:" + "|".join(sorted(names)) + r")\s*\(")))
            below |= names
            break

for file in sorted(f for f in Path("src").rglob("*.cu*") if not str(f).startswith("src/benchmarks/")):  # benchmarks are built for the GPU at hand
    levels = []  # of each #if around the line: the capability that it asks for
    for number, line in enumerate(file.read_text().splitlines(), 1):
        directive = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if directive:
            word, condition = directive.groups()
            if word in ("elif", "else", "endif") and levels:
                levels.pop()
            if word != "endif":
                asked = re.search(r"__CUDA_ARCH__\s*>=\s*(\d+)", condition)
                levels.append(int(asked[1]) // 10 if asked and "!" not in condition else 0)
            continue
        code = line.split("//")[0]
        for level, pattern in needs:
            found = pattern.search(code)
            if found and level > max(levels, default=0):
                what = found[0].rstrip("( ") if not found[0].startswith("asm") else re.search(r"[\w.:]+$", found[0])[0]
                print(f"{file}:{number}: {what} needs compute capability {level / 10}: put it below #if __CUDA_ARCH__ >= {level}0, with another way for less")
                break
END
}
if need python3; then check "compute capability" capability; fi

# --- Man pages

if need python3; then check "man pages and options" python3 docs/makeman.py --check; fi

# --- Words

# Folders of one machine, and notes of unfinished work
words() {
  find . \( -path ./.git -o -path './build*' -o -path ./carry -o -path ./pack -o -path ./share/datasets \) -prune -o -type f ! -name lint.sh -print |
    xargs grep -nIE '(^|[^A-Za-z0-9_.*/)}-])/(home|root|work|opt/work|scratch)/|\b(TODO|FIXME|XXX)\b' | sed 's|^\./||'
}
check "no folder of one machine, nothing left to do" words

# --- Links: a page that is named is there, and has the heading

links() {
  python3 - <<'END'
import re
from pathlib import Path

def anchors(page):
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ +(.*)$", page.read_text(), re.M)}

for page in sorted([*Path(".").glob("*.md"), *Path("docs").rglob("*.md"), *Path("src").rglob("*.md"), *Path("share").rglob("*.md")]):
    for text, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists():
            print(f"{page}: links to {name}, which is not there")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            print(f"{page}: links to {target}: no such heading")
END
}
if need python3; then check "links" links; fi

# --- Sizes of pages: a manual that is read and a record of a screen a page; the rest of the record are rows of data

pages() {
  python3 - <<'END'
import re
from pathlib import Path

def parts(page):
    """(prose with its line numbers, rows of tables, all words): without fenced blocks, links as their text"""
    prose, rows, fence = [], 0, False
    for k, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            fence = not fence
        elif line.startswith("|"):
            rows += 1 - 2 * bool(re.match(r"\|[ :|-]+\|$", line))  # neither the head nor the rule below it
        elif not fence:
            prose.append((k, line))
    return prose, rows, len(page.read_text().split())

def said(page, prose):
    for k, line in prose:
        if len(line) > 200:
            print(f"{page}:{k}: has {len(line)} characters, of at most 200")

manual = everything = 0
for page in sorted(Path("docs").glob("*.md")):
    prose, rows, words = parts(page)
    manual += words
    said(page, prose)
    if words > 2500:
        print(f"{page}: has {words} words, of at most 2500")
    for k, line in prose:
        if found := re.search(r"\b(?=[0-9a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7}\b|[Ii]n (an earlier|another|that) run\b", line):
            print(f"{page}:{k}: {found[0]}: history belongs in docs/results")
for page in sorted(Path("docs/results").glob("*.md")):
    prose, rows, words = parts(page)
    everything += words
    said(page, prose)
    text = sum(len(line.split()) for _, line in prose)
    if text > 600 or rows > 30:
        print(f"{page}: has {text} words and {rows} rows of a table, of at most 600 and 30: rows go to the records")
everything += manual
if manual > 25000 or everything > 40000:
    print(f"docs: {manual} words of a manual and {everything} in all, of at most 25000 and 40000")
END
}
if need python3; then check "sizes of pages" pages; fi

# --- Scripts

scripts() {
  local script
  for script in tests/*.sh tests/fuzz/*.sh share/*.sh .ci/run; do bash -n "$script"; done
}
check "scripts" scripts
if need shellcheck; then check "shellcheck" shellcheck -f gcc -S error tests/*.sh tests/fuzz/*.sh share/*.sh .ci/run; fi

if ((left_out > 0)); then summary=", $left_out left out"; fi
echo "lint: $passed passed, $failed failed${summary:-}"
((failed == 0))
