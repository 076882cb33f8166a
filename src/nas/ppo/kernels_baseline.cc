#define KOLO_ISA baseline
#include "nas/ppo/kernels_impl.h"
