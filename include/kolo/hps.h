// Problems and searches as DeepHyper has them: docs/hps.md is the guide.
#pragma once

#include "kolo/hps/problem.h"
#include "kolo/hps/run.h"
