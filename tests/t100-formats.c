/*
  The formats on a matrix that can be checked by hand: arrays as their head comments say, product, diagonal, new values.

      | 1 . 2 . |        x = (1, 2, 3, 4)    A x = (7, 0, 16, 12, 38)
      | . . . . |
      | . 8 . . |
      | . . . 3 |
      | 4 5 . 6 |

  //TEST
*/
static char help[] = "Tests the storage formats by hand.\n";

#include "../src/mat/impls/gpucsr/blackbox/format/formats.h"
#include "../src/mat/impls/gpucsr/blackbox/format/bcsr.h"
#include "../src/mat/impls/gpucsr/blackbox/format/papers/block4x64.h"
#include "../src/mat/impls/gpucsr/blackbox/format/sell.h"
#include "../src/mat/impls/gpucsr/blackbox/format/dia.h"
#include "../src/mat/impls/gpucsr/blackbox/format/papers/hyb.h"
#include "../src/mat/impls/gpucsr/blackbox/format/papers/jad.h"
#include "testing.h"

static const int32_t     rowptr[] = {0, 2, 2, 3, 4, 7};
static const PetscInt    col[]    = {0, 2, 1, 3, 0, 1, 3};
static const PetscScalar val[] = {1, 2, 8, 3, 4, 5, 6}, twice[] = {2, 4, 16, 6, 8, 10, 12};

static const int32_t unsorted[] = {0, 1, 2, 3, 4}, sorted[] = {4, 0, 2, 3, 1}; /* rows by falling length */
static const int32_t offset[] = {-4, -3, -1, 0, 2}, jagged[] = {0, 4, 6, 7};

static const char *current = ""; /* format under test */

static PetscErrorCode Expect(const char what[], double is, double should)
{
  PetscFunctionBegin;
  PetscCheck(is == should, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Format %s: %s is %g, should be %g", current, what, is, should);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(const GPUCSRStorage *A, double scale)
{
  static const double expect[] = {7, 0, 16, 12, 38}, diagonal[] = {1, 0, 0, 3};
  double              x[] = {1, 2, 3, 4}, y[] = {1, 1, 1, 1, 1}, z[5], d[4];
  GPUCSRProduct       p = {.alpha = 1, .x = x, .z = z, .last = 5};

  PetscFunctionBegin;
  PetscCall((*A->format->ops->mult)(A, &p));
  for (int r = 0; r < 5; r++) PetscCall(Expect("A x", z[r], scale * expect[r]));
  p.alpha = 2;
  p.beta  = -1;
  p.y     = y;
  p.first = 2;
  z[0]    = 99;
  PetscCall((*A->format->ops->mult)(A, &p));
  PetscCall(Expect("a row outside the range", z[0], 99));
  for (int r = 2; r < 5; r++) PetscCall(Expect("2 A x - y", z[r], 2 * scale * expect[r] - 1));
  PetscCall((*A->format->ops->diagonal)(A, d));
  for (int r = 0; r < 4; r++) PetscCall(Expect("diagonal", d[r], scale * diagonal[r]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const GPUCSRFormat *format;
  GPUCSRDevice        d;
  GPUCSRFeatures      f;
  GPUCSRSource        s = {5, 4, 7, rowptr, col, val, NULL};
  char                why[256];
  GPUCSRBool          yes;
  double              rounding = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(64)); /* the library makes nothing of other kinds */
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen("host", &d, why, sizeof(why)));
  PetscCall(GPUCSRFeaturesOfRows(5, 4, rowptr, 1, &f));
  PetscCall(Expect("rows", f.m, 5));
  PetscCall(Expect("columns", f.n, 4));
  PetscCall(Expect("nonzeros", (double)f.nnz, 7));
  PetscCall(Expect("shortest row", f.min, 0));
  PetscCall(Expect("longest row", f.max, 3));
  PetscCall(Expect("empty rows", f.rows[0], 1));
  PetscCall(Expect("mean", f.mean, 7. / 5));
  PetscCall(Expect("squared deviation", (double)(float)(f.deviation * f.deviation), (double)(float)(15. / 5 - 49. / 25)));
  PetscCall(Expect("sliced ELL entries", (double)f.sell_stored, 3 * GPUCSR_SLICE));
  for (int q = 0; (format = GPUCSRFormatGet(q)); q++) {
    current = format->name;
    for (int p = 0; p < 1; p++) {
      GPUCSRStorage A;
      GPUCSRExtent  e = {0};

      yes = GPUCSRFormatHolds(format, &f, why, sizeof(why));
      PetscCheck(yes, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s", why);
      if (format->ops->measure) PetscCall((*format->ops->measure)(&s, format->variant, &e));
      PetscCall(GPUCSRStorageCreate(d, format, &f, format->ops->measure ? &e : NULL, (GPUCSRPrecision)p, &A));
      PetscCall(GPUCSRStorageAllocate(&A, PETSC_FALSE));
      s.a = val;
      PetscCall((*format->ops->fill)(&s, &A, PETSC_FALSE, &rounding));
      PetscCall(Product(&A, 1));
      if (GPUCSRIsCSR(format)) {
        for (int k = 0; k < 7; k++) PetscCall(Expect("csr column", ((int32_t *)A.array[CSR_COL].data)[k], (double)col[k]));
        PetscCall(Expect("csr bytes", GPUCSRStorageBytes(&A), GPUCSRCSRBytes(&f, GPUCSR_PRECISION_DOUBLE)));
      }
      if (format->ops == &GPUCSRFormat_sell) {
        const int32_t *c = (int32_t *)A.array[SELL_COL].data, *perm = A.array[SELL_PERM].count ? (int32_t *)A.array[SELL_PERM].data : unsorted;

        if (perm != unsorted)
          for (int r = 0; r < 5; r++) PetscCall(Expect("sell's order of rows", perm[r], sorted[r]));
        if (A.array[SELL_SLICE].count) PetscCall(Expect("sell width", ((int32_t *)A.array[SELL_SLICE].data)[1], 3));
        for (int r = 0; r < 5; r++) { /* places */
          if (perm[r] == 0) PetscCall(Expect("sell column of entry 1 of row 0", c[GPUCSR_SLICE + r], 2));
          if (perm[r] == 4) PetscCall(Expect("sell column of entry 2 of row 4", c[2 * GPUCSR_SLICE + r], 3));
          if (perm[r] == 3) PetscCall(Expect("sell padding of row 3", c[GPUCSR_SLICE + r], -1));
        }
      }
      if (format->ops == &GPUCSRFormat_dia) {
        PetscCall(Expect("diagonals", (double)A.extent.units, 5));
        for (int k = 0; k < 5; k++) PetscCall(Expect("dia offset", ((int32_t *)A.array[DIA_OFFSET].data)[k], offset[k]));
        PetscCall(Expect("dia entry of row 4 in column 1", ((double *)A.array[DIA_VAL].data)[DIAEntry(5, 4, 1)], 5));
      }
      if (format->ops == &GPUCSRFormat_jad)
        for (int k = 0; k < 4; k++) PetscCall(Expect("start of a jagged diagonal", ((int32_t *)A.array[JAD_START].data)[k], jagged[k]));
      if (format->ops == &GPUCSRFormat_hyb) { /* fewer than 4096 rows: the width that all rows reach, and one row is empty */
        PetscCall(Expect("hyb width", A.extent.width, 0));
        PetscCall(Expect("hyb entries beyond", (double)A.extent.units, 7));
      }
      if (format->ops == &GPUCSRFormat_bcsr && format->variant == GPUCSR_BLOCK(2, 2)) {
        const int32_t *rp = (int32_t *)A.array[BCSR_ROWPTR].data, *c = (int32_t *)A.array[BCSR_COL].data;
        const double  *v = (double *)A.array[BCSR_VAL].data;

        PetscCall(Expect("bcsr2x2 blocks", (double)e.units, 6));
        PetscCall(Expect("bcsr2x2 stored", (double)A.stored, BCSR_WARP * 4));
        for (int R = 0; R < 4; R++) PetscCall(Expect("bcsr2x2 block row", rp[R], 2 * R));
        for (int b = 0; b < 6; b++) PetscCall(Expect("bcsr2x2 column", c[b], b % 2 ? 2 : 0));
        PetscCall(Expect("bcsr2x2 first row of block 4", v[2 * 4], 4));
        PetscCall(Expect("bcsr2x2 first row of block 4", v[2 * 4 + 1], 5));
        PetscCall(Expect("bcsr2x2 second row of block 3", v[2 * BCSR_WARP + 2 * 3 + 1], 3));
        PetscCheck(PetscIsNanReal(v[2 * 5]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "bcsr2x2 has %g where the matrix has nothing", v[2 * 5]);
      }
      if (format->ops == &GPUCSRFormat_block4x64) {
        static const int32_t units[] = {0, 1, 1, 2, 3, 4, 4, 4, 4};
        const uint8_t       *c       = (uint8_t *)A.array[BLOCK4X64_COL].data;

        PetscCall(Expect("block4x64 blocks", (double)e.units, 2));
        PetscCall(Expect("block4x64 stored", (double)A.stored, 4 * BLOCK4X64_UNIT));
        for (int k = 0; k < 9; k++) PetscCall(Expect("block4x64 unit", ((int32_t *)A.array[BLOCK4X64_UNIT4].data)[k], units[k]));
        PetscCall(Expect("block4x64 column of entry 1 of row 0", c[1], 2));
        PetscCall(Expect("block4x64 padding of row 0", c[2], BLOCK4X64_COLS));
        PetscCall(Expect("block4x64 column of entry 2 of row 4", c[3 * BLOCK4X64_UNIT + 2], 3));
      }
      s.a = twice;
      PetscCall((*format->ops->fill)(&s, &A, PETSC_TRUE, &rounding));
      PetscCall(Product(&A, 2));
      PetscCall(GPUCSRStorageDestroy(&A));
    }
  }
  PetscCall(Expect("rounding", rounding, 0));
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}
