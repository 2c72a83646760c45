/* A random walk over vectors of all types, of t501-access.c */
/* A random walk: the same steps with three vectors of each type */
static PetscErrorCode Walk(PetscInt seed, PetscInt steps)
{
  Vec          v[2][3], sub[2], local[2];
  IS           is;
  PetscRandom  r;
  PetscInt     rs, insub = 0, inlocal = 0, placed = 0;
  PetscScalar *spare[2];

  PetscFunctionBegin;
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &r)); /* the same on all ranks */
  PetscCall(PetscRandomSetSeed(r, (unsigned long)seed));
  PetscCall(PetscRandomSeed(r));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscCalloc1(33, &spare[k]));
    for (int i = 0; i < 3; i++) PetscCall(Create(k ? VECSTANDARD : VECGPU, 33, 1, &v[k][i]));
    PetscCall(VecCreate(PETSC_COMM_SELF, &local[k]));
    PetscCall(VecSetSizes(local[k], 33, 33));
    PetscCall(VecSetType(local[k], k ? VECSEQ : VECSEQGPU));
  }
  PetscCall(VecGetOwnershipRange(v[0][0], &rs, NULL));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, 20, rs + 7, 1, &is));
  for (PetscInt step = 0; step < steps; step++) {
    PetscReal value[4];
    int       a, b, op;
    char      what[64];

    for (int k = 0; k < 4; k++) PetscCall(PetscRandomGetValueReal(r, &value[k]));
    op = (int)(value[0] * 15);
    a  = (int)(value[1] * 3);
    b  = (a + 1 + (int)(value[2] * 2)) % 3;
    /* while part of vector 0 is out, it is left alone */
    if (insub || inlocal) a = 1, b = 2;
    if (placed && a != 2 && b != 2) b = 2;
    if (a == b) a = (a + 1) % 3;
    for (int k = 0; k < 2; k++) {
      Vec                x = v[k][a], y = v[k][b];
      PetscScalar       *p;
      const PetscScalar *q;

      switch (op) {
      case 0:
        PetscCall(VecAXPY(x, 0.5 - value[3], y));
        break;
      case 1:
        PetscCall(VecGetArray(x, &p));
        for (int i = 0; i < 33; i += 2) p[i] = 0.5 * p[i] + value[3];
        PetscCall(VecRestoreArray(x, &p));
        break;
      case 2:
        PetscCall(VecGetArrayRead(x, &q));
        PetscCall(VecRestoreArrayRead(x, &q));
        break;
      case 3:
        PetscCall(VecGetArrayWrite(x, &p));
        for (int i = 0; i < 33; i++) p[i] = value[3] - 0.01 * i;
        PetscCall(VecRestoreArrayWrite(x, &p));
        break;
      case 4:
        PetscCall(VecPointwiseMult(x, x, y));
        break;
      case 5:
        PetscCall(VecSwap(x, y));
        break;
      case 6:
        PetscCall(VecCopy(y, x));
        break;
      case 7:
        PetscCall(VecScale(x, 1.0 - value[3]));
        break;
      case 8:
        PetscCall(VecSetValue(x, rs + (PetscInt)(value[3] * 33), 0.75, INSERT_VALUES));
        PetscCall(VecAssemblyBegin(x));
        PetscCall(VecAssemblyEnd(x));
        break;
      case 9:
        PetscCall(VecSet(x, value[3]));
        break;
      case 10: /* a part of vector 0 */
        if (inlocal) break;
        if (!insub) PetscCall(VecGetSubVector(v[k][0], is, &sub[k]));
        else {
          if (value[3] > 0.3) PetscCall(VecShift(sub[k], value[3]));
          PetscCall(VecRestoreSubVector(v[k][0], is, &sub[k]));
        }
        if (k) insub = !insub;
        break;
      case 11:
        if (!insub) break;
        PetscCall(VecGetArray(sub[k], &p));
        for (int i = 0; i < 20; i++) p[i] -= value[3];
        PetscCall(VecRestoreArray(sub[k], &p));
        break;
      case 12: /* the local entries of vector 0 */
        if (insub) break;
        if (!inlocal) PetscCall(VecGetLocalVector(v[k][0], local[k]));
        else PetscCall(VecRestoreLocalVector(v[k][0], local[k]));
        if (k) inlocal = !inlocal;
        break;
      case 13:
        if (inlocal) PetscCall(VecShift(local[k], value[3]));
        else if (insub) PetscCall(VecScale(sub[k], 1.5 - value[3]));
        break;
      default: /* an array in place of vector 2's */
        if (placed) PetscCall(VecResetArray(v[k][2]));
        else PetscCall(VecPlaceArray(v[k][2], spare[k]));
        if (k) placed = !placed;
      }
    }
    PetscCall(PetscSNPrintf(what, sizeof(what), "Step %" PetscInt_FMT " of walk %" PetscInt_FMT, step, seed));
    /* comparing all of them each time would keep both copies the same */
    if (value[3] < 0.2)
      for (int i = insub || inlocal ? 1 : 0; i < 3; i++) PetscCall(Same(v[0][i], v[1][i], what));
    if (!placed)
      for (int i = 0; i < 33; i++) PetscCheck(TestSame(spare[0][i], spare[1][i], 1e-12 * (1 + PetscAbsScalar(spare[1][i]))), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the array that was placed", what);
  }
  for (int k = 0; k < 2; k++) {
    if (insub) PetscCall(VecRestoreSubVector(v[k][0], is, &sub[k]));
    if (inlocal) PetscCall(VecRestoreLocalVector(v[k][0], local[k]));
    if (placed) PetscCall(VecResetArray(v[k][2]));
  }
  for (int i = 0; i < 3; i++) PetscCall(Same(v[0][i], v[1][i], "The end of a walk"));
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < 3; i++) PetscCall(VecDestroy(&v[k][i]));
    PetscCall(VecDestroy(&local[k]));
    PetscCall(PetscFree(spare[k]));
  }
  PetscCall(ISDestroy(&is));
  PetscCall(PetscRandomDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}
