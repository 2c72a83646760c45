#pragma once

/*
  Private headers of PETSc, for preconditioners of PETSc's types: no public function gives these members.
*/
#include <petsc/private/pcmgimpl.h>   /* levels, smoothers and the cycle of PCMG; the operations of a PC */
#include <petsc/private/pcgamgimpl.h> /* the functions and settings of PCGAMG */
#include <petsc/private/pcasmimpl.h>  /* the scatters and the local solvers of PCASM */
#include <petsc/private/kspimpl.h>    /* operations, tolerances and bounds of the solvers of levels and blocks */
#include <petsc/private/matimpl.h>    /* operations and composed objects of matrices */
#include <petsc/private/vecimpl.h>    /* operations of vectors, to tell types apart */
