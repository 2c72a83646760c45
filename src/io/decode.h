#pragma once

/*
  Decoders: what turns the bytes of a file into text, each a row of the table in decode.c. A file that is not compressed has a decoder too, which copies.
*/
#include "gpucsrio.h"

/* decode() takes from in and puts to out, and moves both on */
typedef struct {
  const unsigned char *in, *in_end;
  unsigned char       *out, *out_end;
  int                  last; /* no input follows what is between in and in_end */
  int                  done; /* set by decode(): all text is out */
} Flow;

typedef struct {
  const char   *name, *library; /* library: what has to be there when gpucsr is built */
  unsigned char magic[6];
  size_t        nmagic;
  int (*open)(void **); /* NULL: recognized, and refused */
  int (*decode)(void *, Flow *, GPUCSRFault *);
  void (*close)(void *);
} Decoder;

enum {
  MAGIC = 8 /* bytes that tell a decoder, and whether the text is PETSc binary */
};

GPUCSR_IO_INTERN int            GPUCSRDecoderFind(const void *head, size_t bytes, const Decoder **, GPUCSRFault *); /* NULL where the file is not compressed */
GPUCSR_IO_INTERN const Decoder *GPUCSRDecoderCopy(void);
GPUCSR_IO_INTERN const char    *GPUCSRDecoderName(int k); /* of those that are built in, then NULL */
