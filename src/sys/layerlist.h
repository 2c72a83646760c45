/*
  Layers that change a backend's table, one row each, in the order of wrapping. The file has no guard, because each inclusion defines GPUCSR_LAYER() anew. `locked` (memory.c) serves all runs. The
  other layers are for tests: a layer is one folder of debug/ and one row, reads an option -gpucsr_debug_NAME, and has no effect without the option.
*/
GPUCSR_LAYER(standin)
GPUCSR_LAYER(defer)
GPUCSR_LAYER(delay)
GPUCSR_LAYER(locked)
GPUCSR_LAYER(fault)
