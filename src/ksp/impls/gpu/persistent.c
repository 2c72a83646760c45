/* The list of formats that a persistent kernel can multiply with, as the choice and the kernels' host side see it */
#include "persistent.h"
#include "../../../mat/impls/gpucsr/format/dia.h"
#include "../../../mat/impls/gpucsr/format/sell.h"
#include "../../../mat/impls/gpucsr/format/stencil.h"

#define NONE                                                        -1
#define GPUKSP_FORMAT(name, sharing, before, moved, offsets, needs) {#name, &GPUCSRFormat_##name, GPUKSP_BY_##sharing, before, moved, offsets, GPUKSP_NEEDS_##needs},
const GPUKSPFormat GPUKSPFormats[] = {
#include "persistentlist.h"
  {NULL}};
#undef GPUKSP_FORMAT

/* NULL where a persistent kernel cannot multiply with it */
const GPUKSPFormat *GPUKSPFormatOf(const GPUCSRFormat *format)
{
  for (const GPUKSPFormat *f = GPUKSPFormats; f->name; f++)
    if (f->family == format->ops) return f;
  return NULL;
}

/* Are its rows those of a table of a few stencils? No values are stored beyond that */
PetscBool GPUKSPFormatIsTable(const GPUCSRFormat *format)
{
  const GPUKSPFormat *f = GPUKSPFormatOf(format);

  return (PetscBool)(f && f->needs == GPUKSP_NEEDS_STENCILS);
}

/* Rows that are sorted in windows stay in their block, which begins where a window does; in larger windows blocks would be uneven */
#define WINDOW 256

PetscBool GPUKSPPersistentTakes(const GPUCSRStorage *A)
{
  const GPUKSPFormat *f = GPUKSPFormatOf(A->format);

  return (PetscBool)(f && (f->moved < 0 || !A->array[f->moved].count || A->format->variant <= WINDOW));
}
