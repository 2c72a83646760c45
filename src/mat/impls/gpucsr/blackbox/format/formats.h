#pragma once

/* All formats, by the names of their families */
#include "format.h"

#define GPUCSR_FORMAT(name, family, variant, build) GPUCSR_INTERN const GPUCSRFormatFamily GPUCSRFormat_##family;
#include "formatlist.h"
#undef GPUCSR_FORMAT
