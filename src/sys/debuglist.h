/*
  Layers that change the table of a backend for tests, one row each, in the order in which they are laid on. No guard: included with
  different meanings of GPUCSR_DEBUG(). A layer is one folder here and one row; what it does it reads from an option -gpucsr_debug_NAME, and without that it
  changes nothing.
*/
GPUCSR_DEBUG(standin)
GPUCSR_DEBUG(defer)
GPUCSR_DEBUG(delay)
GPUCSR_DEBUG(fault)
