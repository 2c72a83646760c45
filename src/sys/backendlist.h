/*
  The backends, one row each, in the order of trial by `auto`. The file has no guard, because each inclusion defines GPUCSR_BACKEND() anew. A backend is one folder here and one row.
*/
GPUCSR_BACKEND(cuda)
GPUCSR_BACKEND(host)
