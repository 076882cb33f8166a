#define KOLO_ISA avx2
#include "comm/reduce_kernels_impl.h"
