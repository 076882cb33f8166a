#define KOLO_ISA avx2
#include "search/surrogate/dense_kernels_impl.h"
