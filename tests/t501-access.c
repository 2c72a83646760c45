/*
  The two copies of a VECGPU: every access to the host's array, vectors made from vectors, other types, and a long
  random walk through all of these, each compared with VECSTANDARD.
*/
//TEST
//TEST name=malloc args="-vec_gpu_separate -malloc_debug -malloc_dump"
//TEST name=ranks2 nsize=2
//TEST name=standin args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1" gpu=0
//TEST name=ranks3.separate nsize=3 args="-vec_gpu_separate"
//TEST name=ranks4.separate nsize=4 args="-vec_gpu_separate -seed 5"
#include "testing.h"
#include "access.h"
#include <petscgpucsr.h>
#include <unistd.h>

/* Copies that were made since the last call: up, down; only where host and device are apart */
static PetscErrorCode Copies(Vec v, PetscInt up, PetscInt down, const char what[])
{
  static PetscInt last[2]  = {0, 0};
  static Vec      of       = NULL;
  PetscBool       separate = PETSC_FALSE, cuda;
  VecGPUInfo      info;

  PetscFunctionBegin;
  PetscCall(VecGPUGetInfo(v, &info));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-vec_gpu_separate", &separate, NULL));
  PetscCall(PetscStrcmp(info.backend, "cuda", &cuda));
  if (of != v) last[0] = last[1] = 0;
  if (up >= 0 && (separate || cuda))
    PetscCheck(info.uploads - last[0] == up && info.downloads - last[1] == down, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " copies up and %" PetscInt_FMT " down, should be %" PetscInt_FMT " and %" PetscInt_FMT, what, info.uploads - last[0], info.downloads - last[1], up, down);
  if (!separate && !cuda) PetscCheck(!info.uploads && !info.downloads, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: copies where there is one array", what);
  of      = v;
  last[0] = info.uploads;
  last[1] = info.downloads;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What crosses the bus, and what must not */
static PetscErrorCode TestCounts(void)
{
  Vec                v, w;
  PetscScalar       *a, dot;
  const PetscScalar *r;
  PetscReal          norm;
  PetscMemType       type;

  PetscFunctionBegin;
  PetscCall(Create(VECGPU, 1000, 1, &v));
  PetscCall(Copies(v, 0, 0, "A new vector"));
  PetscCall(VecDuplicate(v, &w));
  PetscCall(VecNorm(v, NORM_2, &norm));
  PetscCheck(norm == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A new vector has norm %g", (double)norm);
  PetscCall(VecDot(v, w, &dot));
  PetscCheck(dot == (PetscScalar)0.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "New vectors are not zero");
  PetscCall(VecGetArrayRead(w, &r));
  for (PetscInt k = 0; k < 1000; k++) PetscCheck(r[k] == (PetscScalar)0.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A new vector is not zero");
  PetscCall(VecRestoreArrayRead(w, &r));
  PetscCall(VecSet(v, 3.0));
  PetscCall(VecAXPY(v, 2.0, v == w ? v : w));
  PetscCall(Copies(v, 0, 0, "Work on the device"));
  PetscCall(VecGetArrayRead(v, &r));
  PetscCall(VecRestoreArrayRead(v, &r));
  PetscCall(Copies(v, 0, 1, "VecGetArrayRead"));
  PetscCall(VecGetArrayRead(v, &r));
  PetscCall(VecRestoreArrayRead(v, &r));
  PetscCall(VecScale(w, 2.0));
  PetscCall(VecDot(v, w, &dot));
  PetscCall(Copies(v, 0, 0, "Both copies valid"));
  PetscCall(VecGetArray(v, &a));
  a[0] = 4.0;
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(Copies(v, 0, 0, "VecGetArray of a valid array"));
  PetscCall(VecScale(v, 2.0));
  PetscCall(Copies(v, 1, 0, "The device after VecGetArray"));
  PetscCall(VecGetArrayWrite(v, &a));
  for (PetscInt k = 0; k < 1000; k++) a[k] = 1.0;
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscCall(Copies(v, 0, 0, "VecGetArrayWrite"));
  PetscCall(VecSet(v, 1.0));
  PetscCall(VecGetArrayRead(v, &r));
  PetscCall(VecRestoreArrayRead(v, &r));
  PetscCall(VecShift(v, 0.5));
  PetscCall(Copies(v, 1, 0, "VecSet after the host wrote, the host first"));
  PetscCall(VecSet(v, 1.0));
  PetscCall(VecShift(v, 0.5));
  PetscCall(Copies(v, 0, 0, "VecSet, the device first"));
  PetscCall(VecGetArrayAndMemType(v, &a, &type));
  PetscCheck(PetscMemTypeHost(type), PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc was told that the array is on the device");
  PetscCheck(a[999] == (PetscScalar)1.5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "VecGetArrayAndMemType gives %g", (double)PetscRealPart(a[999]));
  PetscCall(VecRestoreArrayAndMemType(v, &a));
  PetscCall(Copies(v, 0, 1, "VecGetArrayAndMemType"));
  PetscCall(VecScale(v, 2.0));
  PetscCall(VecShift(v, -0.5));
  PetscCall(VecGetArrayReadAndMemType(v, &r, &type));
  PetscCheck(PetscMemTypeHost(type) && r[7] == (PetscScalar)2.5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "VecGetArrayReadAndMemType");
  PetscCall(VecRestoreArrayReadAndMemType(v, &r));
  PetscCall(VecSum(v, &dot));
  PetscCall(Copies(v, 1, 1, "VecGetArrayReadAndMemType"));
  PetscCall(VecGetArrayWriteAndMemType(v, &a, &type));
  PetscCheck(PetscMemTypeHost(type), PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc was told that the array to write is on the device");
  for (PetscInt k = 0; k < 1000; k++) a[k] = 0.5;
  PetscCall(VecRestoreArrayWriteAndMemType(v, &a));
  PetscCall(VecShift(v, 1.0));
  PetscCall(Copies(v, 1, 0, "VecGetArrayWriteAndMemType"));
  /* written, read by the device, written again, all between one Get and its Restore */
  PetscCall(VecGetArray(v, &a));
  a[3] = 8.0;
  PetscCall(VecDot(v, w, &dot));
  a[4] = 9.0;
  PetscCall(VecRestoreArray(v, &a));
  PetscCall(VecNorm(v, NORM_INFINITY, &norm));
  PetscCheck(norm == 9.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "What was written while the device had read is lost: norm %g", (double)norm);
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values set entry by entry, on other ranks too */
static PetscErrorCode TestSetValues(void)
{
  Vec         v[2];
  PetscInt    rs, re, N;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (int k = 0; k < 2; k++) {
    PetscCall(Create(k ? VECSTANDARD : VECGPU, 30, 3, &v[k]));
    PetscCall(VecSet(v[k], 1.0));
    PetscCall(VecGetOwnershipRange(v[k], &rs, &re));
    PetscCall(VecGetSize(v[k], &N));
    for (PetscInt r = rs; r < re; r += 2) PetscCall(VecSetValue(v[k], (r + 7) % N, 0.25 * (double)r, ADD_VALUES));
    PetscCall(VecAssemblyBegin(v[k]));
    PetscCall(VecAssemblyEnd(v[k]));
    PetscCall(VecScale(v[k], 3.0));
    if (!rank) {
      const PetscInt    block  = N / 3 - 1;
      const PetscScalar vals[] = {1.0, 2.0, 3.0};

      PetscCall(VecSetValuesBlocked(v[k], 1, &block, vals, INSERT_VALUES));
    }
    PetscCall(VecAssemblyBegin(v[k]));
    PetscCall(VecAssemblyEnd(v[k]));
    PetscCall(VecShift(v[k], 0.5));
    PetscCall(VecSetOption(v[k], VEC_IGNORE_OFF_PROC_ENTRIES, PETSC_TRUE));
    PetscCall(VecSetOption(v[k], VEC_IGNORE_NEGATIVE_INDICES, PETSC_TRUE));
    PetscCall(VecSetValue(v[k], rs, 7.0, INSERT_VALUES));
    PetscCall(VecSetValue(v[k], -1, 7.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(v[k]));
    PetscCall(VecAssemblyEnd(v[k]));
  }
  PetscCall(Same(v[0], v[1], "Values set"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays placed, reset, replaced */
static PetscErrorCode TestPlace(void)
{
  Vec          v[2];
  PetscScalar *a, *b, *c;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(50, &a, 50, &b));
  for (int k = 0; k < 2; k++) {
    PetscCall(Create(k ? VECSTANDARD : VECGPU, 50, 1, &v[k]));
    PetscCall(VecSet(v[k], 4.0));
    for (int i = 0; i < 50; i++) a[i] = b[i] = 0.5 * i;
    PetscCall(VecPlaceArray(v[k], a));
    PetscCall(VecScale(v[k], 2.0)); /* reaches a only when it is reset */
    PetscCall(VecResetArray(v[k]));
    for (int i = 0; i < 50; i++) PetscCheck(a[i] == (PetscScalar)i, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The placed array was not brought up to date: entry %d is %g", i, (double)PetscRealPart(a[i]));
    PetscCall(VecShift(v[k], 0.25));
    PetscCall(VecPlaceArray(v[k], b));
    PetscCall(VecResetArray(v[k]));
    PetscCall(VecShift(v[k], 0.25));
  }
  PetscCall(Same(v[0], v[1], "After arrays were placed"));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscMalloc1(50, &c));
    for (int i = 0; i < 50; i++) c[i] = 1.0 / (1 + i);
    PetscCall(VecReplaceArray(v[k], c));
    PetscCall(VecScale(v[k], 3.0));
    PetscCall(VecPlaceArray(v[k], a)); /* and is destroyed so */
  }
  PetscCall(Same(v[0], v[1], "A placed array"));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(PetscFree2(a, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Subvectors of every shape, several at a time, changed on either side or not at all */
static PetscErrorCode TestSubVectors(void)
{
  for (int shape = 0; shape < 4; shape++) {
    for (int change = 0; change < 4; change++) {
      Vec v[2];

      PetscFunctionBegin;
      for (int k = 0; k < 2; k++) {
        PetscInt rs, re, size;
        IS       is, other;
        Vec      s, t;

        PetscCall(Create(k ? VECSTANDARD : VECGPU, 60, 2, &v[k]));
        PetscCall(VecGetOwnershipRange(v[k], &rs, &re));
        for (PetscInt r = rs; r < re; r++) PetscCall(VecSetValue(v[k], r, 0.1 * (double)r, INSERT_VALUES));
        PetscCall(VecAssemblyBegin(v[k]));
        PetscCall(VecAssemblyEnd(v[k]));
        if (change != 1) PetscCall(VecScale(v[k], 2.0));
        switch (shape) {
        case 0: /* all */
          PetscCall(ISCreateStride(PETSC_COMM_WORLD, re - rs, rs, 1, &is));
          break;
        case 1: /* a piece that begins at an odd entry */
          PetscCall(ISCreateStride(PETSC_COMM_WORLD, 21, rs + 5, 1, &is));
          break;
        case 2: /* every second: a copy */
          PetscCall(ISCreateStride(PETSC_COMM_WORLD, 25, rs, 2, &is));
          break;
        default: /* none */
          PetscCall(ISCreateStride(PETSC_COMM_WORLD, 0, rs, 1, &is));
        }
        PetscCall(ISCreateStride(PETSC_COMM_WORLD, 10, rs + 50, 1, &other));
        PetscCall(VecGetSubVector(v[k], is, &s));
        if (shape) PetscCall(VecGetSubVector(v[k], other, &t));
        PetscCall(VecGetSize(s, &size));
        if (change == 1) PetscCall(VecScale(s, 3.0));
        if (change == 2) {
          PetscScalar *a;
          PetscInt     n;

          PetscCall(VecGetLocalSize(s, &n));
          PetscCall(VecGetArray(s, &a));
          for (PetscInt i = 0; i < n; i++) a[i] += 10.0;
          PetscCall(VecRestoreArray(s, &a));
        }
        if (change == 3) { /* twice, on both sides */
          Vec u;

          PetscCall(VecDuplicate(s, &u));
          PetscCall(VecCopy(s, u));
          PetscCall(VecExp(u));
          PetscCall(VecAXPY(s, 1.0, u));
          PetscCall(VecSetRandom(u, NULL));
          PetscCall(VecDestroy(&u));
#if PETSC_VERSION_LT(3, 20, 0)
          if (size) PetscCall(VecChop(s, 3.0));
#else
          if (size) PetscCall(VecFilter(s, 3.0));
#endif
        }
        if (shape) PetscCall(VecShift(t, 1.0));
        PetscCall(VecRestoreSubVector(v[k], is, &s));
        if (shape) PetscCall(VecRestoreSubVector(v[k], other, &t));
        PetscCall(ISDestroy(&is));
        PetscCall(ISDestroy(&other));
        PetscCall(VecShift(v[k], 0.125));
      }
      PetscCall(Same(v[0], v[1], "After subvectors"));
      for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Local vectors, of the same type, of another, made by VecCreateLocalVector(), and a standard one without an array, which becomes a VECGPU that keeps its type's name */
static PetscErrorCode TestLocalVectors(void)
{
  PetscFunctionBegin;
  for (int how = 0; how < 4; how++) {
    Vec v[2], l;

    for (int k = 0; k < 2; k++) {
      PetscScalar *a;

      PetscCall(Create(k ? VECSTANDARD : VECGPU, 40, 1, &v[k]));
      PetscCall(VecSet(v[k], 2.0));
      if (how == 0) PetscCall(VecCreateLocalVector(v[k], &l));
      else if (how == 3) PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, 40, NULL, &l));
      else {
        PetscCall(VecCreate(PETSC_COMM_SELF, &l));
        PetscCall(VecSetSizes(l, 40, 40));
        PetscCall(VecSetType(l, how == 1 ? VECSEQ : VECSEQGPU));
      }
      if (how == 0 && k == 0) PetscCall(TestVecType(l, VECSEQGPU, "A local vector"));
      PetscCall(VecGetLocalVectorRead(v[k], l));
      if (how == 3 && k == 0) {
        VecGPUInfo info;

        PetscCall(VecGPUGetInfo(l, &info)); /* an error with any other type */
        if (!PetscDefined(HAVE_DEVICE)) PetscCall(TestVecType(l, VECSEQ, "A local vector that had no array"));
      }
      {
        PetscReal norm;

        PetscCall(VecNorm(l, NORM_1, &norm));
        PetscCheck(norm == 80.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A local vector has norm %g", (double)norm);
      }
      PetscCall(VecRestoreLocalVectorRead(v[k], l));
      PetscCall(VecGetLocalVector(v[k], l));
      PetscCall(VecScale(l, 3.0));
      PetscCall(VecRestoreLocalVector(v[k], l));
      PetscCall(VecShift(v[k], 1.0));
      PetscCall(VecGetLocalVector(v[k], l));
      PetscCall(VecGetArray(l, &a));
      for (int i = 0; i < 40; i++) a[i] += i;
      PetscCall(VecRestoreArray(l, &a));
      PetscCall(VecRestoreLocalVector(v[k], l));
      PetscCall(VecScale(v[k], 0.5));
      PetscCall(VecDestroy(&l));
    }
    PetscCall(Same(v[0], v[1], "After local vectors"));
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Files, scatters, strides, ghosts, other types, binding to the CPU */
static PetscErrorCode TestOthers(void)
{
  Vec         v[2], w, all, ghosted, local;
  PetscViewer viewer;
  VecScatter  scatter;
  PetscInt    N, rs, re, ghosts[2];
  PetscMPIInt size;
  char        file[] = "/tmp/t501-XXXXXX.d/v";
  char       *slash;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int k = 0; k < 2; k++) {
    PetscCall(Create(k ? VECSTANDARD : VECGPU, 24, 3, &v[k]));
    PetscCall(VecGetOwnershipRange(v[k], &rs, &re));
    for (PetscInt r = rs; r < re; r++) PetscCall(VecSetValue(v[k], r, 1.0 + (double)r, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(v[k]));
    PetscCall(VecAssemblyEnd(v[k]));
    PetscCall(VecReciprocal(v[k]));
  }
  PetscCall(VecGetSize(v[0], &N));
  PetscCall(TestVecType(v[0], size > 1 ? VECMPIGPU : VECSEQGPU, "A vector of type gpu"));
  PetscCall(VecDuplicate(v[0], &w));
  PetscCall(TestVecType(w, size > 1 ? VECMPIGPU : VECSEQGPU, "A duplicate"));

  /* a file, by the device's copy and back */
  slash  = strstr(file, ".d/");
  *slash = 0;
  {
    PetscMPIInt rank;

    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    if (!rank) {
      const int f = mkstemp(file);

      PetscCheck(f >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "No temporary file");
      close(f);
    }
    PetscCallMPI(MPI_Bcast(file, (PetscMPIInt)sizeof(file), MPI_CHAR, 0, PETSC_COMM_WORLD));
  }
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_WRITE, &viewer));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
  PetscCall(VecView(v[0], viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(VecSet(w, -1.0));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
  PetscCall(VecLoad(w, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(VecScale(w, 2.0));
  PetscCall(VecScale(w, 0.5));
  PetscCall(Same(w, v[1], "VecLoad"));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  (void)remove(file);

  /* scatters both ways, between types */
  PetscCall(VecScatterCreateToAll(v[0], &scatter, &all));
  PetscCall(VecScale(v[0], 2.0));
  PetscCall(VecScale(v[1], 2.0));
  PetscCall(VecScatterBegin(scatter, v[0], all, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(scatter, v[0], all, INSERT_VALUES, SCATTER_FORWARD));
  {
    PetscScalar sum, sums;

    PetscCall(VecSum(all, &sum));
    PetscCall(VecSum(v[1], &sums));
    PetscCheck(TestSame(sum, sums, 1e-12 * PetscAbsScalar(sums)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A scatter brought a sum of %g, should be %g", (double)PetscRealPart(sum), (double)PetscRealPart(sums));
  }
  PetscCall(VecScale(all, 3.0));
  PetscCall(VecScatterBegin(scatter, all, w, INSERT_VALUES, SCATTER_REVERSE_LOCAL));
  PetscCall(VecScatterEnd(scatter, all, w, INSERT_VALUES, SCATTER_REVERSE_LOCAL));
  PetscCall(VecScatterDestroy(&scatter));
  PetscCall(VecDestroy(&all));

  /* strides */
  {
    Vec s[2];

    for (int k = 0; k < 2; k++) {
      PetscCall(Create(k ? VECSTANDARD : VECGPU, 8, 1, &s[k]));
      PetscCall(VecStrideGather(v[k], 1, s[k], INSERT_VALUES));
      PetscCall(VecScale(s[k], -1.0));
      PetscCall(VecStrideScatter(s[k], 2, v[k], ADD_VALUES));
      PetscCall(VecStrideScale(v[k], 0, 5.0));
    }
    PetscCall(Same(s[0], s[1], "VecStrideGather"));
    PetscCall(Same(v[0], v[1], "VecStrideScatter"));
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&s[k]));
  }

  /* copies between types, and operations with one of each */
  PetscCall(VecShift(v[0], 1.0));
  PetscCall(VecCopy(v[0], v[1]));
  PetscCall(Same(v[0], v[1], "VecCopy to a standard vector"));
  PetscCall(VecShift(v[1], 1.0));
  PetscCall(VecCopy(v[1], w));
  PetscCall(VecScale(w, 1.5));
  PetscCall(VecScale(v[1], 1.5));
  PetscCall(Same(w, v[1], "VecCopy from a standard vector"));
  if (!PetscDefined(USE_DEBUG)) {
    PetscScalar d[2], e[2];
    Vec         ones[2];

    for (int k = 0; k < 2; k++) {
      PetscCall(VecDuplicate(k ? v[1] : w, &ones[k]));
      PetscCall(VecSet(ones[k], 1.0));
    }
    /* entries that look like a VECGPU with a device and without an array */
    PetscCall(VecSet(ones[1], 0.0));
    PetscCall(VecSetValue(ones[1], rs, 1.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(ones[1]));
    PetscCall(VecAssemblyEnd(ones[1]));
    PetscCall(VecDotNorm2(ones[0], ones[1], &d[0], (PetscReal *)&d[1]));
    for (int k = 0; k < 2; k++) PetscCheck(d[k] == (PetscScalar)(double)size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "VecDotNorm2 of two types: number %d is %g, should be %d", k, (double)PetscRealPart(d[k]), (int)size);
    for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&ones[k]));
    PetscCall(VecDotNorm2(w, v[1], &d[0], (PetscReal *)&d[1]));
    PetscCall(VecDotNorm2(v[1], v[1], &e[0], (PetscReal *)&e[1]));
    for (int k = 0; k < 2; k++) PetscCheck(TestSame(d[k], e[k], 1e-12 * PetscAbsScalar(e[k])), PETSC_COMM_SELF, PETSC_ERR_PLIB, "VecDotNorm2 of two types: number %d is %g, should be %g", k, (double)PetscRealPart(d[k]), (double)PetscRealPart(e[k]));
    PetscCall(VecAXPY(w, 2.0, v[1]));
    PetscCall(VecAXPY(v[1], 2.0, v[1] == w ? v[1] : v[0]));
    PetscCall(VecAXPY(v[0], 2.0, v[1]));
  }
#if PetscDefined(HAVE_CUDA)
  {
    Vec         c;
    PetscBool   cuda;
    VecGPUInfo  info;
    PetscScalar dot;

    PetscCall(VecGPUGetInfo(w, &info));
    PetscCall(PetscStrcmp(info.backend, "cuda", &cuda));
    if (cuda) {
      PetscCall(Create(VECCUDA, 24, 3, &c));
      PetscCall(VecShift(w, 1.0));
      PetscCall(VecCopy(w, c));
      PetscCall(VecScale(c, 2.0));
      PetscCall(VecScale(w, 2.0));
      PetscCall(VecCopy(w, v[1]));
      PetscCall(Same(c, v[1], "VecCopy to VECCUDA"));
      PetscCall(VecShift(c, 1.0));
      PetscCall(VecShift(v[1], 1.0));
      PetscCall(VecCopy(c, w));
      PetscCall(VecDot(w, w, &dot));
      PetscCall(Same(w, v[1], "VecCopy from VECCUDA"));
      PetscCall(VecDestroy(&c));
    }
    PetscCall(VecBindToCPU(w, PETSC_TRUE));
    PetscCall(VecCopy(w, v[1]));
    PetscCall(VecScale(w, 2.0));
    PetscCall(VecScale(v[1], 2.0));
    PetscCall(VecAXPY(w, 1.0, v[0]));
    PetscCall(VecAXPY(v[1], 1.0, v[0]));
    PetscCall(Same(w, v[1], "A vector bound to the CPU"));
    PetscCall(VecBindToCPU(w, PETSC_FALSE));
    PetscCall(VecScale(w, 2.0));
    PetscCall(VecScale(v[1], 2.0));
    PetscCall(Same(w, v[1], "A vector bound no more"));
  }
#endif

  /* a ghosted vector is on the host, and goes with the library's vectors */
  ghosts[0] = (re + 1) % N;
  ghosts[1] = (re + 5) % N;
  PetscCall(VecCreateGhost(PETSC_COMM_WORLD, re - rs, PETSC_DETERMINE, 2, ghosts, &ghosted));
  PetscCall(VecShift(w, 0.5));
  PetscCall(VecCopy(w, ghosted));
  PetscCall(VecGhostUpdateBegin(ghosted, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecGhostUpdateEnd(ghosted, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecGhostGetLocalForm(ghosted, &local));
  PetscCheck(local, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A ghosted vector has no local form");
  PetscCall(VecGhostRestoreLocalForm(ghosted, &local));
  PetscCall(VecCopy(ghosted, v[0]));
  PetscCall(Same(w, v[0], "By way of a ghosted vector"));
  PetscCall(VecDestroy(&ghosted));

  /* a second reference, and a change of type there and back */
  PetscCall(PetscObjectReference((PetscObject)w));
  {
    Vec same = w;

    PetscCall(VecDestroy(&same));
  }
  PetscCall(VecCopy(w, v[1]));
#if PETSC_VERSION_GE(3, 20, 0)
  PetscCall(VecSetType(w, VECSTANDARD));
  PetscCall(Same(w, v[1], "VecSetType to standard"));
  PetscCall(VecSetType(w, VECGPU));
  PetscCall(VecScale(w, 2.0));
  PetscCall(VecScale(v[1], 2.0));
  PetscCall(Same(w, v[1], "VecSetType to gpu"));
#endif
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#include "t501-access/walk.h"

/* A vector keeps its type when asked for it again, as by a second VecSetFromOptions() */
static PetscErrorCode TestTypeAgain(void)
{
  static const VecType types[] = {VECGPU, VECSTANDARD, VECGPU};
  Vec                  v;
  PetscScalar          sum;
  PetscInt             n;

  PetscFunctionBegin;
  PetscCall(Create(VECGPU, 1000, 1, &v));
  PetscCall(VecGetSize(v, &n));
  PetscCall(VecSet(v, 3.0));
  for (int k = 0; k < 3; k++) {
    PetscCall(VecSetType(v, VECGPU));
    PetscCall(VecSum(v, &sum));
    PetscCheck(sum == (PetscScalar)(3.0 * (double)n), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of type gpu again, the entries sum up to %g", (double)PetscRealPart(sum));
  }
  PetscCall(VecDestroy(&v));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &v));
  PetscCall(VecSetSizes(v, 10, PETSC_DECIDE));
  for (int k = 0; k < 3; k++) {
    PetscCall(VecSetType(v, types[k]));
    if (!k) PetscCall(VecSet(v, 7.0));
  }
  PetscCall(VecGetSize(v, &n));
#if PETSC_VERSION_LT(3, 20, 0) /* where another type means other values */
  PetscCall(VecSum(v, &sum));
  PetscCheck(sum == (PetscScalar)0.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of type gpu, standard, gpu, old values are back: the entries sum up to %g", (double)PetscRealPart(sum));
#endif
  PetscCall(VecSet(v, 2.0));
  PetscCall(VecSum(v, &sum));
  PetscCheck(sum == (PetscScalar)(2.0 * (double)n), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of type gpu, standard, gpu, the entries sum up to %g", (double)PetscRealPart(sum));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors that outlive the package keep their entries, and go on with the host */
static PetscErrorCode TestOutlive(void)
{
  Vec          v, w;
  PetscScalar *a, sum;
  PetscReal    norm;
  PetscMPIInt  size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Create(VECGPU, 1000, 1, &v));
  PetscCall(VecDuplicate(v, &w));
  PetscCall(PetscMalloc1(1000, &a));
  for (int k = 0; k < 1000; k++) a[k] = 2.0;
  PetscCall(VecPlaceArray(w, a));
  PetscCall(VecShift(w, 1.0));
  PetscCall(VecShift(v, 1.0));
  PetscCall(MatGPUCSRFinalizePackage());
  PetscCall(VecAXPY(v, 1.0, w));
  PetscCall(VecResetArray(w));
  PetscCall(VecSum(v, &sum));
  PetscCall(VecNorm(w, NORM_1, &norm));
  PetscCheck(sum == (PetscScalar)(4000.0 * size) && norm == 0 && a[999] == (PetscScalar)3.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "After the package, the entries sum up to %g, should be %g", (double)PetscRealPart(sum), 4000.0 * size);
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscCall(PetscFree(a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt seed = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestRequireVecGPU());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(TestCounts());
  PetscCall(TestSetValues());
  PetscCall(TestPlace());
  PetscCall(TestSubVectors());
  PetscCall(TestLocalVectors());
  PetscCall(TestOthers());
  PetscCall(TestTypeAgain());
  for (PetscInt k = 0; k < 20; k++) PetscCall(Walk(seed + 100 * k, 300));
  PetscCall(TestOutlive());
  PetscCall(PetscFinalize());
  return 0;
}
