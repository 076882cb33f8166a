#define KOLO_ISA baseline
#include "comm/reduce_kernels_impl.h"
