// Everything of kolo that needs libtorch: data-parallel training. docs/training.md is the tutorial.
#pragma once

#include <torch/torch.h>

#include "kolo/engine.h"
#include "kolo/kolo.h"
#include "kolo/torch/callbacks.h"
#include "kolo/torch/checkpoint.h"
#include "kolo/torch/collectives.h"
#include "kolo/torch/data.h"
#include "kolo/torch/device.h"
#include "kolo/torch/distributed_optimizer.h"
#include "kolo/torch/elastic.h"
#include "kolo/torch/epochs.h"
#include "kolo/torch/lamb.h"
#include "kolo/torch/lars.h"
#include "kolo/torch/noise_scale.h"
#include "kolo/torch/rate_scheduler.h"
#include "kolo/torch/sampler.h"
#include "kolo/torch/schedule.h"
#include "kolo/torch/state.h"
#include "kolo/torch/sync_batch_norm.h"
#include "kolo/torch/threads.h"
#include "kolo/torch/trainer.h"
