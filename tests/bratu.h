#pragma once

/* -laplace(u) = 6 exp(u) on the unit square, u = 0 on its rim: the problem of Bratu */
#include <petscdmda.h>

static PetscErrorCode Bratu(DMDALocalInfo *info, PetscScalar **u, PetscScalar **f, void *ctx)
{
  const PetscReal h2 = 1.0 / (PetscReal)((info->mx - 1) * (info->mx - 1));

  PetscFunctionBegin;
  (void)ctx;
  for (PetscInt j = info->ys; j < info->ys + info->ym; j++) {
    for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
      if (!i || !j || i == info->mx - 1 || j == info->my - 1) f[j][i] = 4.0 * u[j][i];
      else f[j][i] = 4.0 * u[j][i] - u[j][i - 1] - u[j][i + 1] - u[j - 1][i] - u[j + 1][i] - 6.0 * h2 * PetscExpScalar(u[j][i]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
