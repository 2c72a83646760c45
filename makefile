# gpucsr: MATGPUCSR, a GPU matrix type that loads into the PETSc you have. `make help` lists the targets, `make info` what was found.
#   PETSC=name      pkg-config's name of the PETSc to build against (PETSc, PETSc64, ...); PKG_CONFIG_PATH finds one of your own
#   BUILD=folder    folder for everything that is built
#   DEVICE=folder   folder for the kernels, which serve the libraries of every PETSc
#   CUDA_ARCH=list  compute capabilities to compile for; other GPUs from 7.5 on use PTX
#   NVCC=           build without CUDA
#   CUDA=no         make demo: fetch no compiler for a GPU
#   BENCH=options   make bench: of table.sh, as -peers FOLDER
PETSC     ?= PETSc
BUILD     ?= build
DEVICE    ?= build/device
PREFIX    ?= /usr/local
# The GPUs that make demo has found here; packages are for others too
HERE      := $(if $(filter deb wheel,$(MAKECMDGOALS)),,$(shell cat $(DEVICE)/arch 2>/dev/null))
CUDA_ARCH ?= $(or $(HERE),80 90)
# share/cuda.sh fetches the last of these
NVCC      ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc $(BUILD)/cuda/nvidia/cu*/bin/nvcc))

# so that `make PKG_CONFIG_PATH=...` reaches the pkg-config of $(shell) as well
pkgconfig := $(if $(PKG_CONFIG_PATH),PKG_CONFIG_PATH=$(PKG_CONFIG_PATH) )pkg-config

CC      := $(or $(shell $(pkgconfig) --variable=ccompiler $(PETSC) 2>/dev/null),mpicc)
CXX     := $(or $(shell $(pkgconfig) --variable=cxxcompiler $(PETSC) 2>/dev/null),mpicxx)
CPPFLAGS += -Iinclude $(filter-out -L% -l% -D_FORTIFY_SOURCE% -Wdate-time,$(shell $(pkgconfig) --cflags $(PETSC) 2>/dev/null))
CFLAGS  ?= -O2 -g -ftree-vectorize -fvect-cost-model=dynamic
# With -lineinfo compute-sanitizer and ncu name lines of the source; the code is then three times as large, and loads accordingly when it is first needed
NVCCFLAGS ?= -O3
# A pointer to an integer of another width writes beside it, in one of PETSc's flavours alone
WARN    := -Wall -Wextra -Wshadow -Wno-unused-parameter -Werror=incompatible-pointer-types -Werror=int-conversion
LIBS    := $(filter-out -I%,$(shell $(pkgconfig) --libs $(PETSC) 2>/dev/null)) -lm
LIBDIRS := $(shell $(pkgconfig) --variable=libdir $(PETSC) 2>/dev/null)

FOUND   := $(shell $(pkgconfig) --exists $(PETSC) 2>/dev/null && echo yes)

comma := ,
LIB  := $(BUILD)/lib/libpetscgpucsr.so
# All sources are in the library, but for programs and a backend that is left out
FOUNDC := $(shell find src -name '*.c')
SRC  := $(sort $(filter-out src/bin/% src/learn/% src/ksp/examples/% src/benchmarks/% src/sys/backends/cuda/%,$(FOUNDC)))
ifneq ($(NVCC),)
  CUDA_DIR ?= $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
  KNOWN    := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
  ARCHS    := $(filter $(KNOWN),$(CUDA_ARCH))
  PTX      := $(if $(and $(HERE),$(filter file,$(origin CUDA_ARCH))),,$(if $(word 2,$(ARCHS)),75) $(lastword $(ARCHS)))
  GENCODE  := $(foreach a,$(ARCHS),-gencode=arch=compute_$a,code=sm_$a) $(foreach a,$(PTX),-gencode=arch=compute_$a,code=compute_$a)
  SRC      += $(filter src/sys/backends/cuda/%,$(FOUNDC))
  CU       := $(sort $(filter-out src/benchmarks/% src/ksp/examples/%,$(shell find src -name '*.cu')))
  CPPFLAGS += -DGPUCSR_HAVE_CUDA -I$(CUDA_DIR)/include
  CUDALIBS := -L$(CUDA_DIR)/lib64 -L$(CUDA_DIR)/lib -L$(CUDA_DIR)/targets/x86_64-linux/lib -lcudart_static -ldl -lrt -lpthread
endif
OBJ      := $(SRC:%.c=$(BUILD)/obj/%.o) $(CU:%.cu=$(DEVICE)/%.cu.o)
# Libraries for compressed files, if they can be linked: HEADER,LIBRARY. Without one its files are refused with a message
linkable  = $(shell echo 'int main(void) { return 0; }' | $(CC) -include $1 -x c - -o /dev/null -l$2 2>/dev/null && echo yes)
ZLIB     := $(call linkable,zlib.h,z)
LZMA     := $(call linkable,lzma.h,lzma)
BZ2      := $(call linkable,bzlib.h,bz2)
ZSTD     := $(call linkable,zstd.h,zstd)
CPPFLAGS += $(if $(ZLIB),-DGPUCSR_HAVE_ZLIB) $(if $(LZMA),-DGPUCSR_HAVE_LZMA) $(if $(BZ2),-DGPUCSR_HAVE_BZ2) $(if $(ZSTD),-DGPUCSR_HAVE_ZSTD)
IOLIBS   := $(if $(ZLIB),-lz) $(if $(LZMA),-llzma) $(if $(BZ2),-lbz2) $(if $(ZSTD),-lzstd)
EXAMPLES := $(patsubst %.c,$(BUILD)/examples/%,$(notdir $(wildcard src/ksp/examples/*.c src/learn/*.c)))
TESTS    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/t*.c))
FOLDERS  := spmv fit reads variants amgcollection direct apply coo# benchmarks of several files
BENCHES  := $(addprefix $(BUILD)/bench/,$(if $(NVCC),$(FOLDERS) $(patsubst src/benchmarks/%.c,%,$(wildcard src/benchmarks/*.c)),read places fill amgcollection direct apply fit))

# One message if PETSc is missing, instead of the compilers'
ifeq ($(FOUND),)
$(OBJ) $(EXAMPLES) $(TESTS) $(BENCHES): | nopetsc
nopetsc:
	@echo "make: pkg-config does not know a PETSc named $(PETSC): name one with PETSC=, add the folder of its .pc file to PKG_CONFIG_PATH, or run make demo, which installs the distribution's" >&2; false
endif

.PHONY: all nopetsc needs-gpu lib convert examples tests benches deps demo here cudss check check-all check-gpu check-sanitize check-memcheck coverage bench tune h200 papers \
        install uninstall deb wheel docs format lint fuzz carry clean info help
all: lib examples convert ## the library, the examples, gpucsr-convert and gpucsr-advise (the default)
lib: $(LIB)
convert: $(BUILD)/bin/gpucsr-convert $(BUILD)/bin/gpucsr-advise
examples: $(EXAMPLES)
tests: $(TESTS) $(BUILD)/tests/yield.so
benches: $(BENCHES)

$(LIB): $(OBJ)
	@mkdir -p $(@D)
	$(if $(NVCC),$(CXX),$(CC)) -shared -o $@ $^ -Wl,-z,nodelete -Wl,-soname,$(notdir $@) -Wl,--no-undefined -fopenmp $(LIBS) $(IOLIBS) $(CUDALIBS)

# On a terminal `make demo` shows what is being compiled; a log gets one line
progress = $(if $(PROGRESS),@if [ -t 2 ]; then printf '\r\033[K%s' "compiling $<" >&2; fi)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(progress)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fPIC -fvisibility=hidden -fopenmp -MMD -MP -c $< -o $@

# Device sources include nothing of PETSc: their compiler and its flags do not depend on it
CUFLAGS = -DGPUCSR_HAVE_CUDA $(NVCCFLAGS) -std=c++17 $(GENCODE)
$(DEVICE)/%.cu.o: %.cu $(DEVICE)/flags
	@mkdir -p $(@D)
	$(progress)
	$(NVCC) -ccbin g++ $(CUFLAGS) --threads 2 -Xcompiler -fPIC,-fvisibility=hidden -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# A folder that was built otherwise, for another PETSc say, is built anew
remember = $(shell mkdir -p $(dir $1) && echo '$2' | cmp -s - $1 || echo '$2' >$1)
ifneq ($(filter-out help info clean docs format lint deps cudss,$(or $(MAKECMDGOALS),all)),)
  $(call remember,$(BUILD)/flags,$(CC) $(CPPFLAGS) $(CFLAGS) $(LIBS))
  $(if $(NVCC),$(call remember,$(DEVICE)/flags,$(NVCC) $(CUFLAGS)))
endif
$(SRC:%.c=$(BUILD)/obj/%.o): $(BUILD)/flags

# The names of all options, as the sources read them, for those that are misspelt
NAMES := $(BUILD)/obj/include/optionnames.h
$(NAMES): $(SRC)
	@mkdir -p $(@D)
	@cat $(SRC) | grep -oE '"-[a-z_]*(gpucsr|_gpu)[a-z_]*[a-z]"' | grep -v use_gpu_aware_mpi | sort -u | sed 's|"-\(.*\)"|GPUCSR_OPTION(\1)|' >$@.new && [ -s $@.new ]
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/obj/src/sys/misspelt.o: CPPFLAGS += -I$(BUILD)/obj/include
$(BUILD)/obj/src/sys/misspelt.o: $(NAMES)

# The converter and the adviser are programs of PETSc's, which find the library beside themselves; a distribution's package (deb/) finds both where all libraries are
RUNPATH := -Wl,-rpath,$(LIBDIRS)
$(BUILD)/bin/gpucsr-% $(BUILD)/deb/gpucsr-%: src/bin/%.c $(wildcard src/bin/*.h) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fopenmp $(filter %.c,$^) -o $@ -L$(BUILD)/lib -lpetscgpucsr $(LIBS) $(if $(RUNPATH),-Wl$(comma)-rpath$(comma)'$$ORIGIN/../lib') $(RUNPATH)
$(BUILD)/bin/gpucsr-convert $(BUILD)/deb/gpucsr-convert: src/bin/write.c src/bin/statistics.c

# Programs know nothing of the library, but for newton; bmrm is several files
$(BUILD)/examples/%: src/ksp/examples/%.c
	$(program)
$(BUILD)/examples/%: src/learn/%.c
	$(program)
define program
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fopenmp $(filter %.c %.o,$^) -o $@ $(LINKED) $(LIBS) $(RUNPATH)
endef
$(EXAMPLES): $(wildcard src/ksp/examples/*.h)
$(BUILD)/examples/newton: $(if $(NVCC),$(DEVICE)/src/ksp/examples/newton.cu.o) $(LIB)
$(BUILD)/examples/newton: LINKED = $(PUBLIC) $(if $(NVCC),$(CUDALIBS) -lstdc++)
$(BUILD)/examples/bmrm: $(wildcard src/learn/bmrm/*)
$(BUILD)/deb/bmrm: src/learn/bmrm.c $(wildcard src/learn/bmrm/*) src/ksp/examples/loadmat.h
	$(program)

# Linked with the library, or with its objects for its internal functions
PUBLIC   := -L$(BUILD)/lib -Wl,--as-needed -lpetscgpucsr -Wl,-rpath,'$$ORIGIN/../lib'
INTERNAL := $(OBJ) $(IOLIBS) $(CUDALIBS) -lstdc++
# A test runs once: it is compiled quickly
TESTLIBS = $(if $(filter t0% t1% t2% t3%,$*),$(INTERNAL),$(PUBLIC))
$(BUILD)/tests/%: tests/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS:-O2=-O1) $(WARN) -std=gnu99 -fopenmp -MMD -MP $< -o $@ $(TESTLIBS) $(LIBS) $(RUNPATH)

$(BUILD)/tests/yield.so: tests/yield.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -shared -fPIC $< -o $@

# Some benchmarks know nothing of the library, some its public functions alone; CUDA's libraries are their peers
GIT := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
PEERS     = $(if $(NVCC),-L$(CUDA_DIR)/lib64 -lcusparse $(if $(filter dense,$*),-lcublas))
BENCHLIBS = $(if $(filter ksp vec gamg amgcollection precond ranks direct apply coo,$*),,$(if $(filter read places,$*),$(PUBLIC),$(INTERNAL) $(PEERS)))
$(BUILD)/bench/%: $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fopenmp $(filter %.c %.cu.o,$^) -DGPUCSR_GIT='"$(GIT)"' -o $@ $(BENCHLIBS) $(LIBS) $(RUNPATH)
$(foreach b,$(notdir $(BENCHES)),$(eval $(BUILD)/bench/$b: $(wildcard src/benchmarks/$b.c src/benchmarks/$b/*) src/benchmarks/bench.h $(wildcard src/benchmarks/problems/*)))
$(BUILD)/bench/coo: src/ksp/examples/newton.h
# Kernels for a benchmark alone: many and small, so that they are compressed
BENCHCU = $(patsubst %.cu,$(DEVICE)/%.cu.o,$(wildcard src/benchmarks/$1/*.cu))
$(BUILD)/bench/variants: $(call BENCHCU,variants)
$(BUILD)/bench/reads: $(call BENCHCU,reads)
$(call BENCHCU,variants) $(call BENCHCU,reads): NVCCFLAGS += -Xfatbin=-compress-all
$(call BENCHCU,variants): src/benchmarks/variants/kernels.cuh src/benchmarks/variants/variants.h

CARRY ?= carry
# `deps` may install PETSc, but make has asked pkg-config already: so these targets call make again
VERSION := $(shell sed -n 's/^.define PETSCGPUCSR_VERSION  *"\(.*\)"/\1/p' include/petscgpucsr.h)

# All processors, up to eight, unless the caller says how many: nvcc needs a gigabyte or two a process
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell n=$$(nproc); echo $$((n < 8 ? n : 8))))

deps:
	@PETSC=$(PETSC) share/setup.sh $(WITH)
demo: deps ## install what is missing, build, and solve a real system
	@$(if $(filter no,$(CUDA)),,BUILD=$(BUILD) share/cuda.sh $(NVCC))
	@$(MAKE) --no-print-directory -s here
	@[ -t 2 ] || $(MAKE) -sq lib convert examples >/dev/null 2>&1 || echo "compiling into $(BUILD): a minute, several with CUDA" >&2
	@$(MAKE) --no-print-directory -s $(PARALLEL) PROGRESS=yes lib convert examples
	@if [ -t 2 ]; then printf '\r\033[K' >&2; fi
	@BUILD=$(BUILD) share/demo.sh
# For the GPUs of this machine alone, if nvcc knows all of them: other architectures and PTX take most of the time
here:
	@[ -n "$(NVCC)" ] && [ "$(origin CUDA_ARCH)" = file ] && [ ! -e $(DEVICE)/src ] || exit 0; \
	found=$$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d ' .' | sort -u); \
	for a in $$found; do case " $(KNOWN) " in *" $$a "*) ;; *) found= ;; esac; done; \
	if [ -n "$$found" ]; then mkdir -p $(DEVICE) && echo $$found >$(DEVICE)/arch; \
	else echo "demo: no GPU is found that $(NVCC) knows, so the library is compiled for compute capabilities $(CUDA_ARCH) and PTX; make demo CUDA_ARCH=90 is for an H100 or H200 alone" >&2; fi
cudss: ## fetch NVIDIA's direct solver for -pc_type lu, see docs/direct.md
	@BUILD=$(BUILD) share/cudss.sh
check: ## install what is missing, build, run the lint and all tests on the host
	@$(MAKE) --no-print-directory -s deps WITH=check
	@$(MAKE) --no-print-directory -s $(PARALLEL) lib convert examples tests
	@tests/lint.sh -quick; lint=$$?; tests/run.sh BACKEND=host BUILD=$(BUILD) && exit $$lint
check-all: ## the same with products of cases, random walks, flavours of PETSc and the lint in whole: an hour or more
	@$(MAKE) --no-print-directory -s deps WITH=check
	@$(MAKE) --no-print-directory -s $(PARALLEL) lib convert examples tests
	@tests/lint.sh; lint=$$?; WHOLE=1 LIMIT=7200 tests/run.sh BACKEND=host BUILD=$(BUILD) && exit $$lint
# On a machine without PETSc it runs what `make carry` collected
check-gpu: $(if $(FOUND),lib convert examples tests) ## run all tests on a GPU
	@$(if $(FOUND),,LD_LIBRARY_PATH=$(abspath $(CARRY)/lib-$(BUILD)):$$LD_LIBRARY_PATH) tests/run.sh BACKEND=cuda BUILD=$(if $(FOUND),,$(CARRY)/)$(BUILD)
# Built with gcc's sanitizers and without CUDA, run on the host, also as a stand-in for a GPU. Tests of petsc4py and tests that build in their own folder are
# left out. -malloc_dump and t010 find leaks: the leak sanitizer cannot name MPI's, because MPI unloads its modules before the end
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
check-sanitize: ## the tests with gcc's sanitizers
	@$(MAKE) --no-print-directory -s $(PARALLEL) NVCC= BUILD=build-sanitize CC="$(CC) $(SANITIZE)" CFLAGS="-O1 -g -fno-omit-frame-pointer" lib convert examples tests
	@ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 tests/run.sh BACKEND=host BUILD=build-sanitize LIMIT=3600 without="t70 t8 t909" search="$(SEARCH)"
# Lines of src/, without .cu, that the tests reach on the host. The others are in build-coverage/uncovered.txt, and with reasons on PAGE
coverage: ## the lines that the tests reach
	@$(MAKE) --no-print-directory -s $(PARALLEL) NVCC= BUILD=build-coverage CC="$(CC) --coverage" CFLAGS="-O0 -g" lib convert examples tests
	@find build-coverage -name '*.gcda' -delete
	-@tests/run.sh BACKEND=host BUILD=build-coverage LIMIT=3600 without="t8 t909" search="$(SEARCH)"
	@python3 tests/coverage.py build-coverage $(PAGE)
# compute-sanitizer's four tools on a GPU
check-memcheck: $(if $(FOUND),lib tests) ## compute-sanitizer's tools on a GPU
	@BUILD=$(if $(FOUND),,$(CARRY)/)$(BUILD) tests/memcheck.sh
FOUNDMINOR = $(basename $(shell $(pkgconfig) --modversion $(PETSC)))
# Where things go; DOCDIR gets the pages of docs/, the licence and the man pages in HTML, PYDIR the module gpucsr
LIBDIR ?= $(PREFIX)/lib
DOCDIR ?= $(PREFIX)/share/doc/petscgpucsr
MANDIR ?= $(PREFIX)/share/man
PYDIR  ?= $(PREFIX)/share/petscgpucsr/python
DOCS   ?= $(BUILD)/docs
PYTHON3  := $(shell command -v python3)
PROGRAMS := $(BUILD)/bin/gpucsr-convert $(BUILD)/bin/gpucsr-advise $(BUILD)/examples/bmrm
PCFILE = s|@PREFIX@|$(abspath $(PREFIX))|; s|@LIBDIR@|$(abspath $(LIBDIR))|; s|@PYDIR@|$(abspath $(PYDIR))|; \
         s|@VERSION@|$(VERSION)|; s|@PETSC@|$(PETSC)|g; s|@PETSCMINOR@|$(FOUNDMINOR)|; \
         s|@PETSCNEXT@|$(shell echo $(FOUNDMINOR) | awk -F. '{print $$1 "." $$2 + 1}')|
install: lib convert $(BUILD)/examples/bmrm $(if $(PYTHON3),docs) ## install below PREFIX
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(LIBDIR)/pkgconfig $(PREFIX)/include $(DOCDIR)/docs $(DOCDIR)/html)
	install -m 755 $(LIB) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin/
	install -m 644 -Dt $(DESTDIR)$(PYDIR)/gpucsr python/gpucsr/*.py
	printf 'petsc = "%s"\nversion = "%s"\nlibdir = "%s"\n' $(FOUNDMINOR) $(VERSION) $(abspath $(LIBDIR)) > $(DESTDIR)$(PYDIR)/gpucsr/_built.py
	install -m 644 include/petscgpucsr.h $(DESTDIR)$(PREFIX)/include/
	sed -e '$(PCFILE)' share/petscgpucsr.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/petscgpucsr.pc
	install -m 644 README.md LICENSE CHANGELOG $(DESTDIR)$(DOCDIR)/
	install -m 644 docs/*.md $(DESTDIR)$(DOCDIR)/docs/
	install -m 644 -Dt $(DESTDIR)$(DOCDIR)/docs/results docs/results/*.md docs/results/*.png
	$(if $(PYTHON3),install -m 644 $(DOCS)/html/* $(DESTDIR)$(DOCDIR)/html/)
	$(if $(PYTHON3),$(foreach k,1 3,install -m 644 -Dt $(DESTDIR)$(MANDIR)/man$k $(DOCS)/man$k/*.$k &&) true,@echo "install: no man pages, because python3 is missing")
uninstall: $(if $(PYTHON3),docs) ## remove what make install installed
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,$(notdir $(LIB)) pkgconfig/petscgpucsr.pc)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,$(addprefix bin/,$(notdir $(PROGRAMS))) include/petscgpucsr.h)
	rm -f $(foreach k,1 3,$(patsubst $(DOCS)/%,$(DESTDIR)$(MANDIR)/%,$(wildcard $(DOCS)/man$k/*)))
	rm -rf $(DESTDIR)$(DOCDIR) $(DESTDIR)$(PYDIR)/gpucsr
deb: lib convert $(BUILD)/examples/bmrm ## a Debian package, in BUILD/deb
	@BUILD=$(BUILD) PETSC=$(PETSC) share/deb.sh $(VERSION)
wheel: lib ## a Python wheel, in BUILD/wheel
	@BUILD=$(BUILD) PETSC=$(PETSC) share/wheel.sh $(VERSION)
docs: ## man pages, in BUILD/docs
	python3 docs/makeman.py $(DOCS)
format: ## white space
	clang-format -i $$(find src include tests -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | grep -v plan/h200.h)
lint: ## what a reader would have to check by eye
	@tests/lint.sh
# Random sequences of operations beside MATAIJ's and VECSTANDARD's (tests/t450-sequences.c), as many as FUZZ says, in several set-ups
FUZZ ?= 20000
fuzz: lib $(BUILD)/tests/t450-sequences ## random sequences of operations beside PETSc's types
	@tests/fuzz/sequences.sh $(BUILD) $(FUZZ) $(if $(BACKEND),$(BACKEND),host)
# What is tuned to this machine, for -mat_gpucsr_profile (minutes) and -mat_gpucsr_machine (a second), once
TUNED ?= $(BUILD)/profile.txt
MACHINE ?= $(BUILD)/machine.txt
needs-gpu:
	@$(if $(NVCC),,echo "make: this measures a GPU$(comma) but nvcc was not found or not wanted (NVCC=): see make info" >&2; false)
tune: needs-gpu benches ## what is tuned to this machine, for -mat_gpucsr_profile and -mat_gpucsr_machine
	$(BUILD)/bench/tune -o $(MACHINE)
	rm -f $(BUILD)/samples.txt
	$(BUILD)/bench/spmv -dir share/datasets -collection -setup no -samples $(BUILD)/samples.txt
	$(BUILD)/bench/fit -without $(FIDELITY) -o $(TUNED) -machine "$$(nvidia-smi --query-gpu=name --format=csv,noheader -i 0)" $(BUILD)/samples.txt
	@echo "Use them: -mat_gpucsr_profile $(abspath $(TUNED)) -mat_gpucsr_machine $(abspath $(MACHINE))"
# The built-in profile, from the samples in docs/results: minutes. The order counts: of a pair that was timed twice the later file has its time
SAMPLES := $(patsubst %,docs/results/%-samples.txt.xz,survey-2026-11-21 drawn later meshes survey-2026-11-23)
# Systems of the papers, which auto does not choose
FIDELITY := block4x64,jad,csr_scan,twostep,coo,hyb,wide1
h200: $(BUILD)/bench/fit ## the built-in profile, from the samples in docs/results
	$< -without $(FIDELITY) -header src/mat/impls/gpucsr/blackbox/plan/h200.h $(SAMPLES)
# The papers' tables that need no GPU, from the samples in docs/results into build/papers. Needs NumPy, and Matplotlib for the plots
PAPERS := clock floor meshes sets threads cgmodel ladder accesses strips places variants reads dense gospmv lookalikes
papers: ## the papers' tables that need no GPU, in build/papers
	@python3 -c 'import numpy' 2>/dev/null || { echo "make: these tables need NumPy, which python3 does not have" >&2; false; }
	@for p in $(PAPERS); do echo "papers: $$p"; python3 src/benchmarks/papers/$$p.py || exit 1; done
bench: needs-gpu benches examples convert ## the table of README, on a GPU
	src/benchmarks/table.sh -build $(BUILD) -out $(BUILD)/bench-results $(BENCH)

-include $(OBJ:.o=.d) $(patsubst src/ksp/examples/%.c,$(BUILD)/examples/%.d,$(wildcard src/ksp/examples/*.c)) $(TESTS:%=%.d)

clean: ## remove BUILD
	rm -rf $(BUILD)
help: ## this list
	@sed -n "s/^\([a-z0-9-]*\):[^=#]*## \(.*\)/make \1\t\2/p" makefile | expand -t 22
	@sed -n "s/^#   \([A-Z_]*=.*\)/\1/p" makefile
info: ## what was found: PETSc, compilers, CUDA
	@echo "PETSc       $(shell $(pkgconfig) --modversion $(PETSC) 2>/dev/null || echo not found) ($(PETSC)), $(CC)"
	@echo "decompress  $(if $(ZLIB),gzip) $(if $(LZMA),xz) $(if $(BZ2),bzip2) $(if $(ZSTD),zstd)"
	@echo "CUDA        $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') for $(ARCHS)$(if $(PTX), and PTX),$(NOCUDA): host backend alone)"
NOCUDA = $(if $(filter command environment,$(firstword $(origin NVCC))),not wanted (NVCC=),nvcc not found)

# What a machine with a GPU and MPI but without PETSc needs for tests and benchmarks: what was built, PETSc, and the
# libraries of PETSc that may be missing there. MPI, the C and C++ runtimes and the driver must be on that machine.
OWN   := /(ld-linux|linux-vdso|libc\.|libm\.|libdl|libpthread|librt|libmpi\.|libopen-|libhwloc|libevent)
OWN   := $(OWN)|/(libudev|libstdc|libgcc_s|libgomp|libcap|libcuda|libz\.)|libcu(sparse|blas|rand|solver|fft)|libnvJitLink|libpetscgpucsr
carry: lib convert examples tests benches ## copy what a GPU machine without PETSc needs
	rm -rf $(CARRY)/$(BUILD) $(CARRY)/lib-$(BUILD) && mkdir -p $(CARRY)/$(BUILD) $(CARRY)/lib-$(BUILD)
	cp -r $(foreach d,lib bin share examples tests bench,$(wildcard $(BUILD)/$d)) $(CARRY)/$(BUILD)/
	find $(CARRY)/$(BUILD) -name '*.d' -delete
	ldd $(LIB) $(wildcard $(BUILD)/bench/*) | awk '$$2 == "=>" && $$3 ~ /^\// {print $$3}' | sort -u | grep -vE '$(OWN)' | xargs -I{} cp -L -u {} $(CARRY)/lib-$(BUILD)/
	find $(CARRY)/$(BUILD) $(CARRY)/lib-$(BUILD) -type f \( -perm -100 -o -name '*.so*' \) -exec strip --strip-unneeded {} + 2>/dev/null || true
