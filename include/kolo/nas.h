// Architecture search: spaces of networks, the libtorch models they become, problems, the functions
// that train them, and PPO. docs/nas.md and docs/nas-spaces.md are the guides.
#pragma once

#include "kolo/nas/history.h"
#include "kolo/nas/model.h"
#include "kolo/nas/operations.h"
#include "kolo/nas/ppo.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"
#include "kolo/nas/search_space.h"
#include "kolo/nas/spaces.h"
