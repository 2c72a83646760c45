#pragma once

/* Operations of MATSEQAIJ that read or write the host's values and have no other function in this library, with their arguments */
#define GPUCSR_MAT_READERS_OF_ALL(R) \
  R(setvalues, (Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], const PetscScalar v[], InsertMode mode), (A, m, i, n, j, v, mode)) \
  R(setvaluesrow, (Mat A, PetscInt row, const PetscScalar v[]), (A, row, v)) \
  R(getvalues, (Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], PetscScalar v[]), (A, m, i, n, j, v)) \
  R(getrow, (Mat A, PetscInt row, PetscInt * n, PetscInt * *j, PetscScalar * *v), (A, row, n, j, v)) \
  R(sor, (Mat A, Vec b, PetscReal omega, MatSORType type, PetscReal shift, PetscInt its, PetscInt lits, Vec x), (A, b, omega, type, shift, its, lits, x)) \
  R(transpose, (Mat A, MatReuse reuse, Mat * B), (A, reuse, B)) \
  R(createsubmatrices, (Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *sub[]), (A, n, rows, cols, reuse, sub)) \
  R(createsubmatricesmpi, (Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *sub[]), (A, n, rows, cols, reuse, sub)) \
  R(createsubmatrix, (Mat A, IS rows, IS cols, MatReuse reuse, Mat * sub), (A, rows, cols, reuse, sub)) \
  R(getmultiprocblock, (Mat A, MPI_Comm comm, MatReuse reuse, Mat * sub), (A, comm, reuse, sub)) \
  R(creatempimatconcatenateseqmat, (MPI_Comm comm, Mat A, PetscInt n, MatReuse reuse, Mat * B), (comm, A, n, reuse, B)) \
  R(permute, (Mat A, IS rows, IS cols, Mat * B), (A, rows, cols, B)) \
  R(getrowmax, (Mat A, Vec v, PetscInt at[]), (A, v, at)) \
  R(getrowmin, (Mat A, Vec v, PetscInt at[]), (A, v, at)) \
  R(getrowminabs, (Mat A, Vec v, PetscInt at[]), (A, v, at)) \
  R(invertblockdiagonal, (Mat A, const PetscScalar **v), (A, v)) \
  R(invertvariableblockdiagonal, (Mat A, PetscInt n, const PetscInt *sizes, PetscScalar *v), (A, n, sizes, v)) \
  R(multdiagonalblock, (Mat A, Vec x, Vec y), (A, x, y)) \
  R(findnonzerorows, (Mat A, IS * is), (A, is)) \
  R(findzerodiagonals, (Mat A, IS * is), (A, is)) \
  R(getcolumnreductions, (Mat A, PetscInt type, PetscReal * v), (A, type, v)) \
  R(setrandom, (Mat A, PetscRandom random), (A, random)) \
  R(imaginarypart, (Mat A), (A)) \
  R(load, (Mat A, PetscViewer viewer), (A, viewer)) \
  R(issymmetric, (Mat A, PetscReal tol, PetscBool * yes), (A, tol, yes)) \
  R(ishermitian, (Mat A, PetscReal tol, PetscBool * yes), (A, tol, yes)) \
  R(fdcoloringapply, (Mat A, MatFDColoring coloring, Vec x, void *ctx), (A, coloring, x, ctx))

#if GPUCSR_MAT_HAS_ROWSUMABS
  #define GPUCSR_MAT_READERS(R) GPUCSR_MAT_READERS_OF_ALL(R) R(eliminatezeros, (Mat A, PetscBool keep), (A, keep)) R(getrowsumabs, (Mat A, Vec v), (A, v))
#else
  #define GPUCSR_MAT_READERS(R) GPUCSR_MAT_READERS_OF_ALL(R)
#endif
