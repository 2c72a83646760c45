# gpucsr: MATGPUCSR, a GPU matrix type that loads into the PETSc you have. Targets below; `make info` says what was found.
#   PETSC=name      the pkg-config module to build against (PETSc, PETSc-complex, ..., or a path's module by PKG_CONFIG_PATH)
#   BUILD=folder    where everything built goes
#   CUDA_ARCH=list  compute capabilities; machine code for each that nvcc knows, PTX of the last for later GPUs, and of 7.5 for others between
#   NVCC=           empty: without CUDA
PETSC     ?= PETSc
BUILD     ?= build
PREFIX    ?= /usr/local
CUDA_ARCH ?= 80 90
NVCC      ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))

# so that `make PKG_CONFIG_PATH=...` reaches the pkg-config of $(shell) as well
pkgconfig := $(if $(PKG_CONFIG_PATH),PKG_CONFIG_PATH=$(PKG_CONFIG_PATH) )pkg-config

CC      := $(or $(shell $(pkgconfig) --variable=ccompiler $(PETSC) 2>/dev/null),mpicc)
CXX     := $(or $(shell $(pkgconfig) --variable=cxxcompiler $(PETSC) 2>/dev/null),mpicxx)
CPPFLAGS += -Iinclude $(filter-out -L% -l% -D_FORTIFY_SOURCE% -Wdate-time,$(shell $(pkgconfig) --cflags $(PETSC) 2>/dev/null))
CFLAGS  ?= -O2 -g -ftree-vectorize -fvect-cost-model=dynamic
# With -lineinfo compute-sanitizer and ncu name lines of the source; the code is then three times as large, and loads accordingly when it is first needed
NVCCFLAGS ?= -O3
WARN    := -Wall -Wextra -Wno-unused-parameter
LIBS    := $(filter-out -I%,$(shell $(pkgconfig) --libs $(PETSC) 2>/dev/null)) -lm
LIBDIRS := $(shell $(pkgconfig) --variable=libdir $(PETSC) 2>/dev/null)

comma := ,
LIB  := $(BUILD)/lib/libpetscgpucsr.so
IO   := $(addprefix src/io/,piece.c number.c libsvm.c market.c boeing.c binary.c source.c assemble.c)
SRC  := $(sort $(IO) src/io/loadfile.c $(wildcard src/*.c src/sys/*.c src/sys/host/*.c src/mat/impls/gpucsr/*.c src/mat/impls/gpucsr/*/*.c src/vec/impls/*/*.c src/ksp/impls/*/*.c src/tao/impls/*/*.c))
ifneq ($(NVCC),)
  CUDA_DIR ?= $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
  KNOWN    := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
  ARCHS    := $(filter $(KNOWN),$(CUDA_ARCH))
  PTX      := $(if $(word 2,$(ARCHS)),75) $(lastword $(ARCHS))
  GENCODE  := $(foreach a,$(ARCHS),-gencode=arch=compute_$a,code=sm_$a) $(foreach a,$(PTX),-gencode=arch=compute_$a,code=compute_$a)
  SRC      += $(sort $(wildcard src/sys/cuda/*.c))
  CU       := $(sort $(wildcard src/sys/cuda/*.cu src/mat/impls/gpucsr/kernels/*.cu src/mat/impls/gpucsr/factor/*.cu src/vec/impls/*/*.cu src/ksp/impls/*/*.cu src/tao/impls/*/*.cu))
  CPPFLAGS += -DGPUCSR_HAVE_CUDA -I$(CUDA_DIR)/include
  CUDALIBS := -L$(CUDA_DIR)/lib64 -L$(CUDA_DIR)/targets/x86_64-linux/lib -lcudart_static -ldl -lrt -lpthread
endif
OBJ      := $(SRC:%.c=$(BUILD)/obj/%.o) $(CU:%.cu=$(BUILD)/obj/%.cu.o)
# What decompresses, each library where it can be linked: NAME,HEADER,LIBRARY. Without it such files are refused, by name
linkable  = $(shell echo 'int main(void) { return 0; }' | $(CC) -include $1 -x c - -o /dev/null -l$2 2>/dev/null && echo yes)
ZLIB     := $(call linkable,zlib.h,z)
LZMA     := $(call linkable,lzma.h,lzma)
BZ2      := $(call linkable,bzlib.h,bz2)
CPPFLAGS += $(if $(ZLIB),-DGPUCSR_HAVE_ZLIB) $(if $(LZMA),-DGPUCSR_HAVE_LZMA) $(if $(BZ2),-DGPUCSR_HAVE_BZ2)
IOLIBS   := $(if $(ZLIB),-lz) $(if $(LZMA),-llzma) $(if $(BZ2),-lbz2)
EXAMPLES := $(patsubst src/ksp/examples/%.c,$(BUILD)/examples/%,$(wildcard src/ksp/examples/*.c))
TESTS    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/t*.c))
BENCHES  := $(if $(NVCC),$(patsubst src/benchmarks/%.c,$(BUILD)/bench/%,$(wildcard src/benchmarks/*.c)),$(BUILD)/bench/read)

.PHONY: all lib convert examples tests benches demo check check-gpu bench install docs format lint clean info deps
all: lib examples convert
lib: $(LIB)
convert: $(BUILD)/bin/gpucsr-convert
examples: $(EXAMPLES)
tests: $(TESTS)
benches: $(BENCHES)

$(LIB): $(OBJ)
	@mkdir -p $(@D)
	$(if $(NVCC),$(CXX),$(CC)) -shared -o $@ $^ -Wl,-z,nodelete -Wl,-soname,$(notdir $@) -Wl,--no-undefined -fopenmp $(LIBS) $(IOLIBS) $(CUDALIBS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fPIC -fvisibility=hidden -fopenmp -MMD -MP -c $< -o $@

$(BUILD)/obj/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) -ccbin $(CXX) $(CPPFLAGS) $(NVCCFLAGS) -std=c++17 $(GENCODE) --threads 2 -Xcompiler -fPIC,-fvisibility=hidden -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# The converter is a program of its own: no PETSc is needed to run it
$(BUILD)/bin/gpucsr-convert: $(patsubst %.c,$(BUILD)/obj/%.o,$(IO) src/io/convert.c src/io/write.c src/io/statistics.c)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ -Wl,--as-needed -fopenmp $(IOLIBS) -lm

GIT := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
# Programs know nothing of the library; tests of its own functions are linked with it, internal ones with its objects
$(BUILD)/examples/%: src/ksp/examples/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fopenmp -MMD -MP $< -o $@ $(LIBS) -Wl,-rpath,$(LIBDIRS)

$(BUILD)/tests/%: tests/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fopenmp -MMD -MP $< -o $@ $(if $(filter t0% t1% t2% t3%,$(notdir $*)),$(OBJ) $(IOLIBS) $(CUDALIBS) -lstdc++,-L$(BUILD)/lib -Wl$(comma)--as-needed -lpetscgpucsr -Wl$(comma)-rpath$(comma)'$$ORIGIN/../lib') $(LIBS) -Wl,-rpath,$(LIBDIRS)

$(BUILD)/bench/%: src/benchmarks/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -std=gnu99 -fopenmp -MMD -MP $< -DGPUCSR_GIT='"$(GIT)"' -o $@ $(if $(filter ksp vec,$(notdir $*)),,$(if $(filter read,$(notdir $*)),-L$(BUILD)/lib -lpetscgpucsr -Wl$(comma)-rpath$(comma)'$$ORIGIN/../lib',$(OBJ) $(IOLIBS) $(CUDALIBS) -L$(CUDA_DIR)/lib64 -lcusparse -lstdc++)) $(LIBS) -Wl,-rpath,$(LIBDIRS)

CARRY ?= carry
# `deps` may install PETSc, and what pkg-config says is asked when make starts: so these call make again
VERSION := $(shell sed -n 's/^.define PETSCGPUCSR_VERSION  *"\(.*\)"/\1/p' include/petscgpucsr.h)
FOUND   := $(shell $(pkgconfig) --exists $(PETSC) 2>/dev/null && echo yes)

deps:
	@PETSC=$(PETSC) share/setup.sh $(WITH)
demo: deps
	@$(MAKE) --no-print-directory -s lib examples
	@BUILD=$(BUILD) share/demo.sh
check:
	@$(MAKE) --no-print-directory -s deps WITH=check
	@$(MAKE) --no-print-directory -s lib convert examples tests
	@tests/run.sh BACKEND=host BUILD=$(BUILD)
# On a machine without PETSc, what `make carry` put together elsewhere
check-gpu: $(if $(FOUND),lib convert examples tests)
	@$(if $(FOUND),,LD_LIBRARY_PATH=$(abspath $(CARRY)/lib-$(BUILD)):$$LD_LIBRARY_PATH) tests/run.sh BACKEND=cuda BUILD=$(if $(FOUND),,$(CARRY)/)$(BUILD)
FOUNDMINOR = $(basename $(shell $(pkgconfig) --modversion $(PETSC)))
install: lib convert
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 $(LIB) $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(BUILD)/bin/gpucsr-convert $(DESTDIR)$(PREFIX)/bin/
	install -m 644 include/petscgpucsr.h $(DESTDIR)$(PREFIX)/include/
	sed -e 's|@PREFIX@|$(abspath $(PREFIX))|; s|@VERSION@|$(VERSION)|; s|@PETSC@|$(PETSC)|g; s|@PETSCMINOR@|$(FOUNDMINOR)|; s|@PETSCNEXT@|$(shell echo $(FOUNDMINOR) | awk -F. '{print $$1 "." $$2 + 1}')|' share/petscgpucsr.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/petscgpucsr.pc
docs:
	python3 docs/makeman.py $(BUILD)/docs/manualpages
format:
	clang-format -i $$(find src include tests -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | grep -v plan/h200.h)
lint:
	@tests/lint.sh
# A profile of this machine for -mat_gpucsr_profile: minutes, once
TUNED ?= $(BUILD)/profile.txt
tune: benches
	rm -f $(BUILD)/samples.txt
	$(BUILD)/bench/spmv -dir share/datasets -collection -setup no -samples $(BUILD)/samples.txt
	$(BUILD)/bench/fit -o $(TUNED) -machine "$$(nvidia-smi --query-gpu=name --format=csv,noheader -i 0)" $(BUILD)/samples.txt
	@echo "Use it: -mat_gpucsr_profile $(abspath $(TUNED))"
bench: benches
	src/benchmarks/run.sh -build $(BUILD) -out $(BUILD)/bench-results

-include $(OBJ:.o=.d) $(EXAMPLES:%=%.d) $(TESTS:%=%.d) $(BENCHES:%=%.d)

clean:
	rm -rf $(BUILD)
info:
	@echo "PETSc       $(shell $(pkgconfig) --modversion $(PETSC) 2>/dev/null || echo not found) ($(PETSC)), $(CC)"
	@echo "decompress  $(if $(ZLIB),gzip) $(if $(LZMA),xz) $(if $(BZ2),bzip2)"
	@echo "CUDA        $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') for $(ARCHS) and PTX,not found: host backend alone)"

# What a machine with a GPU and MPI but without PETSc needs to run tests and benchmarks: build products, PETSc's library and
# those it needs that such a machine may lack. MPI, the C and C++ runtimes and the driver are that machine's own.
OWN   := ld-linux|linux-vdso|libc\.|libm\.|libdl|libpthread|librt|libmpi\.|libopen-|libhwloc|libevent|libudev|libstdc|libgcc_s|libgomp|libcap|libcuda|libz\.
carry: lib convert examples tests benches
	rm -rf $(CARRY)/$(BUILD) $(CARRY)/lib-$(BUILD) && mkdir -p $(CARRY)/$(BUILD) $(CARRY)/lib-$(BUILD)
	cp -r $(foreach d,lib bin examples tests bench,$(wildcard $(BUILD)/$d)) $(CARRY)/$(BUILD)/
	find $(CARRY)/$(BUILD) -name '*.d' -delete
	ldd $(LIB) $(wildcard $(BUILD)/bench/*) | awk '$$2 == "=>" && $$3 ~ /^\// {print $$3}' | sort -u | grep -vE '/($(OWN))|libcu(sparse|blas|rand|solver|fft)|libnvJitLink|libpetscgpucsr' | xargs -I{} cp -L -u {} $(CARRY)/lib-$(BUILD)/
	find $(CARRY)/$(BUILD) $(CARRY)/lib-$(BUILD) -type f \( -perm -100 -o -name '*.so*' \) -exec strip --strip-unneeded {} + 2>/dev/null || true
.PHONY: carry
