#define KOLO_ISA baseline
#include "search/surrogate/dense_kernels_impl.h"
