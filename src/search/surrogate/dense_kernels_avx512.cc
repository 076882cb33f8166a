#define KOLO_ISA avx512
#include "search/surrogate/dense_kernels_impl.h"
