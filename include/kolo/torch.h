// Everything of kolo that needs libtorch: data-parallel training. docs/training.md is the tutorial.
#pragma once

#include <torch/torch.h>

#include "kolo/kolo.h"
#include "kolo/torch/distributed_optimizer.h"
#include "kolo/torch/threads.h"
