/*
  Layers that change a backend's table for tests, one row each, in the order of wrapping. Without a guard, because the file is included with different meanings of GPUCSR_DEBUG(). A layer is one
  folder here and one row. It reads an option -gpucsr_debug_NAME, and changes nothing without the option.
*/
GPUCSR_DEBUG(standin)
GPUCSR_DEBUG(defer)
GPUCSR_DEBUG(delay)
GPUCSR_DEBUG(fault)
