#define KOLO_ISA avx512
#include "comm/reduce_kernels_impl.h"
