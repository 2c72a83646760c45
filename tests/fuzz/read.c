/*
  Fuzz target: a file of any format, plain or compressed, is read in blocks and assembled; the first byte chooses the size of blocks. Matrix, labels
  and faults must equal those of one block. The second byte decides whether bad lines are skipped (1), and the first and last index of LIBSVM (2, and the rest).
*/
#include "../../src/io/gpucsrio.h"
#include <stdlib.h>
#include <string.h>

enum {
  ROWS = 1 << 16 /* files that announce more are parsed, not assembled */
};

typedef struct {
  GPUCSRTextHeader header;
  GPUCSRBlock     *block;
  size_t           n;
  int              failed;
  GPUCSRFault      fault;
  int64_t          entries, skipped, rows;
} File;

static int Keep(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  File *F = (File *)ctx;

  F->block         = (GPUCSRBlock *)realloc(F->block, (F->n + 1) * sizeof(*F->block));
  F->block[F->n++] = *block;
  F->entries += (int64_t)block->piece.entries;
  F->skipped += (int64_t)block->piece.skipped;
  F->rows += (int64_t)block->piece.rows;
  memset(&block->piece, 0, sizeof(block->piece));
  return 0;
}

/* PETSc binary, as far as its header and rows can be checked without a matrix */
static int Binary(GPUCSRInput *s, GPUCSRFault *f)
{
  GPUCSRBinary b;
  int64_t      row[ROWS / 64 + 1] = {0};
  PetscInt    *j;
  PetscScalar *v;

  if (!GPUCSRInputWhole(s, f) || GPUCSRBinaryHeader(s, &b, f) || b.nz < 0 || b.M > ROWS / 64 || GPUCSRBinaryRows(&b, 0, b.M, row, f)) return 1;
  j = (PetscInt *)malloc((size_t)b.nz * sizeof(*j) + 1);
  v = (PetscScalar *)malloc((size_t)b.nz * sizeof(*v) + 1);
  GPUCSRBinaryColumns(&b, 0, b.M, row, 0, j, 1, f);
  GPUCSRBinaryReals(&b, b.values, b.nz, v, 1, f);
  free(j);
  free(v);
  return 0;
}

static void Read(File *F, const uint8_t *data, size_t size, size_t cut, int how)
{
  GPUCSRInput *s = NULL;

  memset(F, 0, sizeof(*F));
  F->failed = GPUCSRInputMemory(data, size, &s, &F->fault) || GPUCSRInputHeader(s, GPUCSR_TEXT_AUTO, &F->header, &F->fault);
  if (!F->failed) {
    if (F->header.format == GPUCSR_TEXT_LIBSVM && how & 2) GPUCSRLibsvmBound(&F->header, 1, how >> 2);
    if (F->header.format == GPUCSR_TEXT_PETSC) F->failed = 1 + Binary(s, &F->fault);
  }
  if (!F->failed) F->failed = GPUCSRInputPart(s, &F->header, 0, 1, cut, &F->fault) || GPUCSRInputParse(s, &F->header, how & 1, 1, 3, Keep, F, &F->fault);
  if (!F->failed && F->header.format == GPUCSR_TEXT_MARKET && F->entries != F->header.entries) F->failed = 1;
  GPUCSRInputClose(s);
}

static void Must(int ok)
{
  if (!ok) abort();
}

/* To compressed rows; the checksum of what came out, order and all */
static uint64_t Rows(File *F)
{
  GPUCSRAssembly A = {F->header.symmetry, 0, F->header.format == GPUCSR_TEXT_LIBSVM ? F->rows : F->header.m, F->n, NULL, 2};
  int64_t       *row, equal, first = 0;
  PetscInt      *j;
  PetscScalar   *v;
  uint64_t       sum = 0;

  if (A.rend > ROWS) return 0;
  if (F->header.array)
    for (size_t k = 0; k < F->n; k++) {
      const int64_t nz = (int64_t)F->block[k].piece.nz;

      GPUCSRMarketPlace(&F->header, first, &F->block[k].piece);
      first += nz;
    }
  A.piece = (GPUCSRPiece *)calloc(F->n + 1, sizeof(*A.piece));
  row     = (int64_t *)calloc((size_t)A.rend + 1, sizeof(*row));
  for (size_t k = 0; k < F->n; k++) A.piece[k] = F->block[k].piece;
  GPUCSRAssemblyCount(&A, row);
  j = (PetscInt *)malloc((size_t)row[A.rend] * sizeof(*j) + 1);
  v = (PetscScalar *)malloc((size_t)row[A.rend] * sizeof(*v) + 1);
  Must(!GPUCSRAssemblyFill(&A, 0, row, j, v, &equal, &F->fault));
  if (equal) GPUCSRAssemblyCompact(A.rend, row, j, v);
  for (int64_t r = 0; r < A.rend; r++)
    for (int64_t k = row[r]; k < row[r + 1]; k++) {
      uint64_t bits;

      Must(k == row[r] || j[k] > j[k - 1]);
      Must(j[k] >= 0 && (F->header.format == GPUCSR_TEXT_LIBSVM || j[k] < F->header.n));
      memcpy(&bits, &v[k], 8);
      sum = (sum ^ bits ^ (uint64_t)j[k] << 32 ^ (uint64_t)r) * 0x9e3779b97f4a7c15u;
      sum ^= sum >> 29;
    }
  free(A.piece);
  free(row);
  free(j);
  free(v);
  return sum;
}

static void Destroy(File *F)
{
  for (size_t k = 0; k < F->n; k++) GPUCSRPieceDestroy(&F->block[k].piece);
  free(F->block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  File   cut, whole;
  size_t block;

  if (size < 2) return 0;
  block = (size_t)(data[0] % 64) + 1;
  Read(&cut, data + 2, size - 2, block, data[1]);
  Read(&whole, data + 2, size - 2, 1 << 22, data[1]);
  /* of a damaged stream either may be told: the damage, or the fault of a line in front of it, by how far a block reaches beyond the line */
  if (cut.failed == whole.failed) {
    if (!cut.failed) {
      Must(cut.entries == whole.entries && cut.skipped == whole.skipped && cut.rows == whole.rows);
      Must(Rows(&cut) == Rows(&whole));
    } else if (!strstr(whole.fault.why, "compressed data") != !strstr(cut.fault.why, "compressed data")) Must(cut.fault.line > 0 || whole.fault.line > 0);
    else Must(cut.fault.line == whole.fault.line && cut.fault.column == whole.fault.column && !strcmp(cut.fault.why, whole.fault.why));
  } else abort();
  Destroy(&cut);
  Destroy(&whole);
  return 0;
}
