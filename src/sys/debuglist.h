/*
  Layers that change a backend's table for tests, one row each, in the order of wrapping. The file has no guard, because each inclusion defines GPUCSR_DEBUG() anew. A layer is one folder here and one
  row. It reads an option -gpucsr_debug_NAME, and has no effect without the option.
*/
GPUCSR_DEBUG(standin)
GPUCSR_DEBUG(defer)
GPUCSR_DEBUG(delay)
GPUCSR_DEBUG(fault)
