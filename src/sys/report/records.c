/*
  Records of the report: a text, and numbers that are summed over equal texts, first on this rank and then over the ranks.
*/
#include "../gpucsrsys.h"
#include <ctype.h>

/* Are the texts equal, or with numbers false, equal except for their numbers? */
static PetscBool Alike(const char a[], const char b[], PetscBool numbers)
{
  for (;; a++, b++) {
    while (!numbers && isdigit((unsigned char)*a)) a++;
    while (!numbers && isdigit((unsigned char)*b)) b++;
    if (*a != *b) return PETSC_FALSE;
    if (!*a) return PETSC_TRUE;
  }
}

/* numbers: texts with different numbers are different records */
PetscErrorCode GPUCSRRecordsAdd(GPUCSRRecords *records, const char text[], PetscBool numbers, const double n[])
{
  int k = 0;

  PetscFunctionBegin;
  while (k < records->n && !Alike(records->record[k].text, text, numbers)) k++;
  if (k == records->room) {
    records->room = 2 * records->room + 16;
    PetscCall(PetscRealloc(sizeof(GPUCSRRecord) * (size_t)records->room, &records->record));
  }
  if (k == records->n) {
    PetscCall(PetscMemzero(&records->record[k], sizeof(GPUCSRRecord)));
    PetscCall(PetscStrncpy(records->record[k].text, text, sizeof(records->record[k].text)));
    records->n++;
  }
  for (int c = 0; c < GPUCSR_RECORD_NUMBERS; c++) records->record[k].n[c] += n[c];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: afterwards the first rank has the records of all, its own first */
PetscErrorCode GPUCSRRecordsGather(MPI_Comm comm, GPUCSRRecords *records, PetscBool numbers)
{
  PetscMPIInt       bytes, *all, *at;
  GPUCSRRecord     *others = NULL;
  int               n      = 0;
  const PetscMPIInt rank   = GPUCSRRankOf(comm);
  const PetscMPIInt size   = GPUCSRSizeOf(comm);

  PetscFunctionBegin;
  PetscCall(PetscCalloc2(size, &all, size + 1, &at));
  bytes = rank ? (PetscMPIInt)(sizeof(GPUCSRRecord) * (size_t)records->n) : 0;
  PetscCallMPI(MPI_Gather(&bytes, 1, MPI_INT, all, 1, MPI_INT, 0, comm));
  for (PetscMPIInt r = 0; r < size; r++) at[r + 1] = at[r] + all[r];
  if (!rank) {
    n = (int)((size_t)at[size] / sizeof(GPUCSRRecord));
    PetscCall(PetscMalloc1(n, &others));
  }
  PetscCallMPI(MPI_Gatherv(records->record, bytes, MPI_BYTE, others, all, at, MPI_BYTE, 0, comm));
  for (int k = 0; k < n; k++) PetscCall(GPUCSRRecordsAdd(records, others[k].text, numbers, others[k].n));
  PetscCall(PetscFree(others));
  PetscCall(PetscFree2(all, at));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRecordsFree(GPUCSRRecords *records)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(records->record));
  records->n = records->room = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Solves: a record for all solvers of a kind */

typedef struct {
  PetscObjectId id;
  char          why[384];
} Instead;

static GPUCSRRecords solves;
static Instead      *instead;
static int           ninstead;

/* Records that a solver, still of its first type, falls back to PETSc's type, and why */
PetscErrorCode GPUCSRSolvesInstead(PetscObject solver, const char why[])
{
  const char *type;

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.report) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectGetType(solver, &type));
  PetscCall(PetscRealloc(sizeof(*instead) * (size_t)(ninstead + 1), &instead));
  PetscCall(PetscObjectGetId(solver, &instead[ninstead].id));
  PetscCall(PetscSNPrintf(instead[ninstead].why, sizeof(instead[ninstead].why), "in place of %s, because %s", type, why));
  ninstead++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Kept by the first rank of the solver. how: NULL for PETSc's own methods */
PetscErrorCode GPUCSRSolvesAdd(PetscObject solver, const char pc[], const char how[], PetscInt its, double seconds)
{
  double        n[GPUCSR_RECORD_NUMBERS] = {1, (double)its, seconds, how ? 0 : 1}; /* the last: a method of PETSc that the user has chosen */
  const char   *prefix, *type;
  char          text[sizeof(solves.record->text)];
  PetscObjectId id;

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.report || GPUCSRRankOf(PetscObjectComm(solver))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectGetId(solver, &id));
  PetscCall(PetscObjectGetType(solver, &type));
  PetscCall(PetscObjectGetOptionsPrefix(solver, &prefix));
  for (int k = ninstead; k-- > 0 && !how;)
    if (instead[k].id == id) {
      how  = instead[k].why;
      n[3] = 0;
    }
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s%s%s, pc %s|%s", prefix ? prefix : "", prefix ? ": " : "", type, pc ? pc : "none", how ? how : "PETSc's method, an operation at a time"));
  PetscCall(GPUCSRRecordsAdd(&solves, text, PETSC_TRUE, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The records of all ranks, on the first of comm */
PetscErrorCode GPUCSRSolvesGather(MPI_Comm comm, GPUCSRRecords **records)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRRecordsGather(comm, &solves, PETSC_TRUE));
  *records = &solves;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRSolvesForget(void)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRRecordsFree(&solves));
  PetscCall(PetscFree(instead));
  ninstead = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
