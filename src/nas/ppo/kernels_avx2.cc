#define KOLO_ISA avx2
#include "nas/ppo/kernels_impl.h"
