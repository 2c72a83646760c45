/*
  The backends, one row each, in the order in which `auto` tries them. Without a guard, because the file is included with different meanings of GPUCSR_BACKEND(). A backend is one folder here and
  one row.
*/
GPUCSR_BACKEND(cuda)
GPUCSR_BACKEND(host)
