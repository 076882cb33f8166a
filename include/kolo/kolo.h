// The core of kolo: who the ranks are, collectives between them, and named operations.
//
// The other parts have headers of their own: kolo/torch.h (training with libtorch), kolo/search.h
// (spaces and samplers), kolo/tune.h (studies), kolo/hps.h (searches over problems), kolo/nas.h
// (architectures; needs libtorch) and kolo/jobs.h (the job database).
#pragma once

#include "kolo/buffer.h"
#include "kolo/communicator.h"
#include "kolo/context.h"
#include "kolo/engine.h"
#include "kolo/error.h"
#include "kolo/topology.h"
#include "kolo/types.h"
#include "kolo/version.h"
#include "kolo/virtual_ranks.h"
