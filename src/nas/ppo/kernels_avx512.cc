#define KOLO_ISA avx512
#include "nas/ppo/kernels_impl.h"
