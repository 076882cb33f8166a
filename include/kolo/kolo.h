// Everything of kolo that needs no libtorch.
#pragma once

#include "kolo/buffer.h"
#include "kolo/communicator.h"
#include "kolo/context.h"
#include "kolo/engine.h"
#include "kolo/error.h"
#include "kolo/topology.h"
#include "kolo/types.h"
#include "kolo/version.h"
