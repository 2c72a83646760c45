#pragma once

/* Layout of jagged diagonals, shared by its host file and its kernels */
#include "../../inspect/order.h"

enum {
  JAD_START,  /* of each jagged diagonal */
  JAD_ROWPTR, /* of CSR, for new values */
  JAD_PERM,   /* the row at each place, the longest first */
  JAD_COL,    /* entry k of the row at place q is at start[k] + q */
  JAD_VAL
};
