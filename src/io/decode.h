#pragma once

/*
  Decoders turn the bytes of a file into text; each is a row of the table in decode.c. An uncompressed file has a decoder that copies.
*/
#include "gpucsrio.h"

/* GPUCSRDecode() reads from in and writes to out, and advances both */
typedef struct {
  const unsigned char *in, *in_end;
  unsigned char       *out, *out_end;
  int                  last;    /* no input follows in_end */
  int                  between; /* a stream has ended; another may follow */
  int                  done;    /* the text is complete */
} Flow;

typedef struct {
  const char   *name, *library; /* library: needed to build gpucsr with this decoder */
  unsigned char magic[6];
  size_t        nmagic;
  int (*open)(void **); /* NULL: recognized, and refused */
  int (*decode)(void *, Flow *, GPUCSRFault *);
  void (*close)(void *);
} Decoder;

enum {
  MAGIC = 8 /* first bytes that identify a decoder, and tell if the text is PETSc binary */
};

GPUCSR_IO_INTERN int           GPUCSRDecoderFind(const void *head, size_t bytes, const Decoder **, GPUCSRFault *); /* NULL for an uncompressed file */
GPUCSR_IO_INTERN int           GPUCSRDecode(const Decoder *, void **state, Flow *, GPUCSRFault *);
GPUCSR_IO_INTERN const Decoder GPUCSRDecoderCopy; /* of uncompressed bytes */
