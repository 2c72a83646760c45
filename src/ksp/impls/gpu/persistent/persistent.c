/* The list of formats with a product in a persistent kernel, for the choice and for the host side of the kernels */
#include "persistent.h"
#include "../../../../mat/impls/gpucsr/blackbox/format/formats.h"
#include "../../../../mat/impls/gpucsr/blackbox/format/dia.h"
#include "../../../../mat/impls/gpucsr/blackbox/format/sell.h"
#include "../../../../mat/impls/gpucsr/blackbox/format/stencil.h"

#define NONE                                                        -1
#define GPUKSP_FORMAT(name, sharing, before, moved, offsets, needs) {#name, &GPUCSRFormat_##name, GPUKSP_BY_##sharing, before, moved, offsets, GPUKSP_NEEDS_##needs},
const GPUKSPFormat GPUKSPFormats[] = {
#include "persistentlist.h"
  {NULL}};
#undef GPUKSP_FORMAT

/* NULL: no persistent kernel multiplies with this format */
const GPUKSPFormat *GPUKSPFormatOf(const GPUCSRFormat *format)
{
  for (const GPUKSPFormat *f = GPUKSPFormats; f->name; f++)
    if (f->family == format->ops) return f;
  return NULL;
}

/* Does the format store a table of a few stencils, and no other values? */
GPUCSRBool GPUKSPFormatIsTable(const GPUCSRFormat *format)
{
  const GPUKSPFormat *f = GPUKSPFormatOf(format);

  return (GPUCSRBool)(f && f->needs == GPUKSP_NEEDS_STENCILS);
}

/* Blocks begin at windows of sorted rows, so that sorting moves no row out of its block. Larger windows would make blocks uneven */
#define WINDOW 256

GPUCSRBool GPUKSPPersistentTakes(const GPUCSRStorage *A)
{
  const GPUKSPFormat *f = GPUKSPFormatOf(A->format);

  return (GPUCSRBool)(f && (f->moved < 0 || !A->array[f->moved].count || A->format->variant <= WINDOW));
}
