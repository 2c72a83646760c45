static char help[] = "Times of vector operations on the vector type of your choice.\n\n";

/*
    vec -vec_type standard
    vec -vec_type gpu -dll_append libpetscgpucsr.so
    vec -vec_type cuda                                     in a PETSc built with CUDA
    vec [-n 1000,125000,...] [-many 8] [-repeats 9] [-seconds 0.004] [-o FILE] [-id TEXT].

  A plain PETSc program without calls of the library. A batch repeats an operation for -seconds. The result is the time of one operation
  in the median batch. Batches end with a norm, which waits for the device. The host waits for each reduction, like a solver;
  all other operations follow each other without waits.

  -o FILE gets one JSON object a line:
    vec   op, n, vec_type, petsc, id, us (microseconds each), gbs (bytes read or written over this time, 1e9/s).
*/
#include <petscvec.h>
#include <petsctime.h>
#include <petscversion.h>
#include <stdlib.h>

#define MOST 64

typedef struct {
  Vec         x, y, z, *many;
  PetscInt    nmany;
  PetscScalar dots[MOST], alpha[MOST];
} Data;

typedef struct {
  const char *name;
  int         arrays, many; /* arrays read or written: these, and so many times the number of the many */
  PetscErrorCode (*run)(Data *, PetscInt);
} Operation;

/* The k-th operation of a batch. Entries keep their magnitude */
#define OPERATION(name, call) \
  static PetscErrorCode name(Data *d, PetscInt k) \
  { \
    PetscReal r; \
    PetscInt  at; \
\
    (void)k; \
    (void)r; \
    (void)at; \
    return call; \
  }
OPERATION(Shift, VecShift(d->z, k % 2 ? 0.5 : -0.5))
OPERATION(Copy, VecCopy(d->x, d->z))
OPERATION(Scale, VecScale(d->z, k % 2 ? 0.5 : 2.0))
OPERATION(AXPY, VecAXPY(d->z, k % 2 ? 0.5 : -0.5, d->x))
OPERATION(AYPX, VecAYPX(d->z, 0.5, d->x))
OPERATION(WAXPY, VecWAXPY(d->z, 0.5, d->x, d->y))
OPERATION(AXPBYPCZ, VecAXPBYPCZ(d->z, 0.25, 0.5, 0.125, d->x, d->y))
OPERATION(Mult, VecPointwiseMult(d->z, d->x, d->y))
OPERATION(Divide, VecPointwiseDivide(d->z, d->x, d->y))
OPERATION(MAXPY, VecMAXPY(d->z, d->nmany, d->alpha, d->many))
OPERATION(Dot, VecDot(d->x, d->y, d->dots))
OPERATION(Norms, VecNorm(d->x, NORM_1_AND_2, (PetscReal *)d->dots))
OPERATION(DotNorm2, VecDotNorm2(d->x, d->y, d->dots, &r))
OPERATION(MDot, VecMDot(d->x, d->nmany, d->many, d->dots))
OPERATION(Max, VecMax(d->x, &at, &r))

static const Operation operations[] = {
  {"VecShift",           2, 0, Shift   },
  {"VecCopy",            2, 0, Copy    },
  {"VecScale",           2, 0, Scale   },
  {"VecAXPY",            3, 0, AXPY    },
  {"VecAYPX",            3, 0, AYPX    },
  {"VecWAXPY",           3, 0, WAXPY   },
  {"VecAXPBYPCZ",        4, 0, AXPBYPCZ},
  {"VecPointwiseMult",   3, 0, Mult    },
  {"VecPointwiseDivide", 3, 0, Divide  },
  {"VecMAXPY",           2, 1, MAXPY   },
  {"VecDot",             2, 0, Dot     },
  {"VecNorm 1 and 2",    1, 0, Norms   },
  {"VecDotNorm2",        2, 0, DotNorm2},
  {"VecMDot",            1, 1, MDot    },
  {"VecMax",             1, 0, Max     },
};

static int Less(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* Seconds of a batch of n */
static PetscErrorCode Batch(const Operation *op, Data *d, PetscInt n, double *seconds)
{
  PetscLogDouble t0, t1;
  PetscScalar    dot;

  PetscFunctionBeginUser;
  PetscCall(VecDot(d->y, d->y, &dot));
  PetscCall(PetscTime(&t0));
  for (PetscInt k = 0; k < n; k++) PetscCall((*op->run)(d, k));
  PetscCall(VecDot(d->y, d->y, &dot));
  PetscCall(PetscTime(&t1));
  *seconds = t1 - t0;
  PetscFunctionReturn(0);
}

static PetscErrorCode Run(PetscInt n, PetscInt nmany, PetscInt repeats, PetscReal seconds, FILE *out, const char id[])
{
  Data        d = {.nmany = nmany};
  VecType     type;
  PetscRandom random;
  char        version[128];
  double      none, t[64];

  PetscFunctionBeginUser;
  PetscCall(PetscGetVersion(version, sizeof(version)));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(VecCreate(PETSC_COMM_SELF, &d.x));
  PetscCall(VecSetSizes(d.x, n, n));
  PetscCall(VecSetFromOptions(d.x));
  PetscCall(VecGetType(d.x, &type));
  PetscCall(VecDuplicate(d.x, &d.y));
  PetscCall(VecDuplicate(d.x, &d.z));
  PetscCall(VecDuplicateVecs(d.x, nmany, &d.many));
  PetscCall(VecSetRandom(d.x, random));
  PetscCall(VecSetRandom(d.y, random));
  for (PetscInt k = 0; k < nmany; k++) {
    PetscCall(VecCopy(k % 2 ? d.x : d.y, d.many[k]));
    d.alpha[k] = k % 2 ? 0.5 : -0.5;
  }
  PetscCall(PetscRandomDestroy(&random));
  for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
    const Operation *op    = &operations[o];
    const double     bytes = 8.0 * (double)n * (op->arrays + (double)(op->many * nmany));
    PetscInt         batch = 1;
    double           us;

    PetscCall(Batch(op, &d, 1, &t[0]));
    do {
      PetscCall(Batch(op, &d, batch, &t[0]));
      if (t[0] < seconds) batch *= 2;
    } while (t[0] < seconds && batch < 1 << 20);
    for (PetscInt k = 0; k < repeats; k++) {
      PetscCall(Batch(op, &d, 0, &none));
      PetscCall(Batch(op, &d, batch, &t[k]));
      t[k] = PetscMax(t[k] - none, 0.0);
    }
    qsort(t, (size_t)repeats, sizeof(*t), Less);
    us = 1e6 * t[repeats / 2] / (double)batch;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-19s %10" PetscInt_FMT " %-8s %10.2f us %8.1f GB/s\n", op->name, n, type, us, 1e-3 * bytes / us));
    if (out) fprintf(out, "{\"record\": \"vec\", \"op\": \"%s\", \"n\": %d, \"vec_type\": \"%s\", \"petsc\": \"%.60s\", \"id\": \"%s\", \"us\": %.10g, \"gbs\": %.10g}\n", op->name, (int)n, type, version, id, us, 1e-3 * bytes / us);
  }
  PetscCall(VecDestroy(&d.x));
  PetscCall(VecDestroy(&d.y));
  PetscCall(VecDestroy(&d.z));
  PetscCall(VecDestroyVecs(nmany, &d.many));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  PetscInt  sizes[32] = {1000, 125000, 2097152, 8000000}, n = 32, many = 8, repeats = 9;
  PetscReal seconds = 0.004;
  PetscBool set;
  char      name[PETSC_MAX_PATH_LEN] = "", id[64] = "unknown";
  FILE     *out = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-n", sizes, &n, &set));
  if (!set) n = 4;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-many", &many, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-seconds", &seconds, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-id", id, sizeof(id), NULL));
  PetscCheck(many >= 1 && many <= MOST && repeats >= 1 && repeats <= 64, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-many and -repeats must be from 1 to 64");
  if (name[0]) {
    out = fopen(name, "a");
    PetscCheck(out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", name);
  }
  for (PetscInt k = 0; k < n; k++) PetscCall(Run(sizes[k], many, repeats, seconds, out, id));
  if (out) fclose(out);
  PetscCall(PetscFinalize());
  return 0;
}
