/*
  Decoders: gzip, xz, bzip2, zstd, each compiled in if its library is found; and copying, for an uncompressed pipe.
*/
#include "decode.h"
#include <stdlib.h>
#include <string.h>
#if defined(GPUCSR_HAVE_ZLIB)
  #include <zlib.h>
#endif
#if defined(GPUCSR_HAVE_LZMA)
  #include <lzma.h>
#endif
#if defined(GPUCSR_HAVE_BZ2)
  #include <bzlib.h>
#endif
#if defined(GPUCSR_HAVE_ZSTD)
  #include <zstd.h>
#endif

enum {
  GIVE = 1 << 30 /* most bytes for a library at once: some libraries count in int */
};

/* Results of a decoder, besides 1: a fault */
enum {
  GOES_ON = 0,
  ENDED   = 2 /* this stream: another may follow */
};

static inline size_t Left(const Flow *w)
{
  return (size_t)(w->in_end - w->in);
}

static inline size_t Room(const Flow *w)
{
  return (size_t)(w->out_end - w->out);
}

static int Damaged(GPUCSRFault *f, const char library[], const char message[], int code)
{
  if (message) return GPUCSRFaultSet(f, 0, 0, "the compressed data are damaged: %s says: %s", library, message);
  return GPUCSRFaultSet(f, 0, 0, "the compressed data are damaged: %s says %d", library, code);
}

static int NoMemory(GPUCSRFault *f)
{
  return GPUCSRFaultSet(f, 0, 0, "no memory to decompress");
}

static int OpenCopy(void **state)
{
  *state = NULL;
  return 0;
}

static int DecodeCopy(void *state, Flow *w, GPUCSRFault *f)
{
  const size_t n = PetscMin(Left(w), Room(w));

  if (n) memcpy(w->out, w->in, n);
  w->in += n;
  w->out += n;
  return w->last && w->in == w->in_end ? ENDED : GOES_ON;
}

static void CloseCopy(void *state)
{
}

/*
  A decoder of a library whose stream has the members of zlib's, as those of liblzma and libbz2. begin: the library accepts the zeroed stream z. step: a call that decodes; Result##Name() judges its result.
  finish: the function that frees the library's memory
*/
#define STREAM_DECODER(Name, Stream, begin, step, finish) \
  static int Open##Name(void **state) \
  { \
    Stream *z = (Stream *)calloc(1, sizeof(*z)); \
\
    *state = z; \
    return !z || !(begin); \
  } \
\
  static int Decode##Name(void *state, Flow *w, GPUCSRFault *f) \
  { \
    Stream *z = (Stream *)state; \
    int     status; \
\
    z->next_in   = (void *)w->in; \
    z->avail_in  = (unsigned int)PetscMin(Left(w), (size_t)GIVE); \
    z->next_out  = (void *)w->out; \
    z->avail_out = (unsigned int)PetscMin(Room(w), (size_t)GIVE); \
    status       = (int)(step); \
    w->in        = (const unsigned char *)z->next_in; \
    w->out       = (unsigned char *)z->next_out; \
    return Result##Name(z, status, f); \
  } \
\
  static void Close##Name(void *state) \
  { \
    if (state) finish((Stream *)state); \
    free(state); \
  }

#if defined(GPUCSR_HAVE_ZLIB)
static int ResultGzip(const z_stream *z, int status, GPUCSRFault *f)
{
  if (status == Z_STREAM_END) return ENDED;
  return status == Z_OK || status == Z_BUF_ERROR ? GOES_ON : Damaged(f, "zlib", z->msg, status);
}
STREAM_DECODER(Gzip, z_stream, inflateInit2(z, 15 + 16) == Z_OK /* 16: gzip's header */, inflate(z, Z_NO_FLUSH), inflateEnd)
#else
  #define OpenGzip   NULL
  #define DecodeGzip NULL
  #define CloseGzip  NULL
#endif

#if defined(GPUCSR_HAVE_LZMA)
static int ResultXz(const lzma_stream *z, int status, GPUCSRFault *f)
{
  if (status == LZMA_STREAM_END) return ENDED;
  if (status == LZMA_MEM_ERROR) return NoMemory(f);
  return status == LZMA_OK || status == LZMA_BUF_ERROR ? GOES_ON : Damaged(f, "liblzma", NULL, status);
}
STREAM_DECODER(Xz, lzma_stream, lzma_stream_decoder(z, UINT64_MAX, 0) == LZMA_OK, lzma_code(z, LZMA_RUN), lzma_end)
#else
  #define OpenXz   NULL
  #define DecodeXz NULL
  #define CloseXz  NULL
#endif

#if defined(GPUCSR_HAVE_BZ2)
static int ResultBzip2(const bz_stream *z, int status, GPUCSRFault *f)
{
  if (status == BZ_STREAM_END) return ENDED;
  if (status == BZ_MEM_ERROR) return NoMemory(f);
  return status == BZ_OK ? GOES_ON : Damaged(f, "libbz2", NULL, status);
}
STREAM_DECODER(Bzip2, bz_stream, BZ2_bzDecompressInit(z, 0, 0) == BZ_OK, BZ2_bzDecompress(z), BZ2_bzDecompressEnd)
#else
  #define OpenBzip2   NULL
  #define DecodeBzip2 NULL
  #define CloseBzip2  NULL
#endif

#if defined(GPUCSR_HAVE_ZSTD)
static int OpenZstd(void **state)
{
  ZSTD_DStream *z = ZSTD_createDStream();

  *state = z;
  if (!z) return 1;
  ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, sizeof(size_t) == 8 ? 31 : 30); /* what zstd --long=31 makes */
  return 0;
}

static int DecodeZstd(void *state, Flow *w, GPUCSRFault *f)
{
  ZSTD_inBuffer  in     = {w->in, Left(w), 0};
  ZSTD_outBuffer out    = {w->out, Room(w), 0};
  const size_t   status = ZSTD_decompressStream((ZSTD_DStream *)state, &out, &in);

  w->in += in.pos;
  w->out += out.pos;
  if (ZSTD_isError(status)) return Damaged(f, "libzstd", ZSTD_getErrorName(status), 0);
  return status == 0 ? ENDED : GOES_ON;
}

static void CloseZstd(void *state)
{
  if (state) ZSTD_freeDStream((ZSTD_DStream *)state);
}
#else
  #define OpenZstd   NULL
  #define DecodeZstd NULL
  #define CloseZstd  NULL
#endif

const Decoder GPUCSRDecoderCopy = {"nothing", NULL, {0}, 0, OpenCopy, DecodeCopy, CloseCopy};

static const Decoder decoders[] = {
  {"gzip",  "zlib",    {0x1f, 0x8b},                  2, OpenGzip,  DecodeGzip,  CloseGzip },
  {"xz",    "liblzma", {0xfd, '7', 'z', 'X', 'Z', 0}, 6, OpenXz,    DecodeXz,    CloseXz   },
  {"bzip2", "libbz2",  {'B', 'Z', 'h'},               3, OpenBzip2, DecodeBzip2, CloseBzip2},
  {"zstd",  "libzstd", {0x28, 0xb5, 0x2f, 0xfd},      4, OpenZstd,  DecodeZstd,  CloseZstd },
};

/* A file may have several streams, one after the other. Zeros between streams fill a block of tape */
int GPUCSRDecode(const Decoder *d, void **state, Flow *w, GPUCSRFault *f)
{
  const unsigned char *in = w->in, *out = w->out;
  int                  result;

  if (w->between) {
    while (w->in < w->in_end && !*w->in) w->in++;
    if (w->in == w->in_end) {
      w->done = w->last;
      return 0;
    }
    d->close(*state);
    if (d->open(state)) return NoMemory(f);
    w->between = 0;
  }
  result = d->decode(*state, w, f);
  if (result == ENDED) w->between = 1;
  else if (!result && w->last && w->in == in && w->out == out) return GPUCSRFaultSet(f, 0, 0, "the compressed data end early: the file is cut off");
  return result == 1;
}

#define BY_PYTHON(load) "convert it: python3 -c \"import sys, numpy, scipy.io as m, scipy.sparse as s; m.mmwrite('new.mtx', s.coo_matrix(" load "))\" FILE"

/* Files of other programs, with a command for the conversion */
static const struct {
  const char *magic, *name, *how;
} foreign[] = {
  {"7z\xbc\xaf\x27\x1c", "a 7-Zip archive",                       "decompress it first"                                              },
  {"PK\3\4",             "a zip archive, as NumPy's .npz",        "decompress it; or, SciPy's, " BY_PYTHON("s.load_npz(sys.argv[1])")},
  {"\x93NUMPY",          "NumPy's .npy",                          BY_PYTHON("numpy.load(sys.argv[1])")                               },
  {"MATLAB",             "MATLAB's .mat",                         BY_PYTHON("m.loadmat(sys.argv[1])['A']") ", A its name"            },
  {"\x89HDF",            "HDF5, as MATLAB's .mat of version 7.3", "write it in another format first"                                 }
};

int GPUCSRDecoderFind(const void *head, size_t bytes, const Decoder **decoder, GPUCSRFault *f)
{
  *decoder = NULL;
  for (size_t k = 0; k < sizeof(decoders) / sizeof(decoders[0]); k++) {
    const Decoder *d = &decoders[k];

    if (bytes < d->nmagic || memcmp(head, d->magic, d->nmagic)) continue;
    if (!d->open) return GPUCSRFaultSet(f, 0, 0, "is compressed by %s, which needs a gpucsr that was built with %s: decompress it first", d->name, d->library);
    *decoder = d;
    return 0;
  }
  for (size_t k = 0; k < sizeof(foreign) / sizeof(foreign[0]); k++)
    if (bytes >= strlen(foreign[k].magic) && !memcmp(head, foreign[k].magic, strlen(foreign[k].magic))) return GPUCSRFaultSet(f, 0, 0, "is %s, which is not supported: %s", foreign[k].name, foreign[k].how);
  return 0;
}
