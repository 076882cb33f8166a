// Search spaces and the algorithms that explore them. docs/search.md is the guide.
#pragma once

#include "kolo/random.h"
#include "kolo/search/analysis.h"
#include "kolo/search/clause.h"
#include "kolo/search/domain.h"
#include "kolo/search/sampler.h"
#include "kolo/search/scheduler.h"
#include "kolo/search/space.h"
#include "kolo/search/stopper.h"
#include "kolo/search/trial.h"
#include "kolo/search/value.h"
