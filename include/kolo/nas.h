// Architecture search: spaces of networks and the libtorch models they become. docs/nas-spaces.md is
// the guide to spaces.
#pragma once

#include "kolo/nas/model.h"
#include "kolo/nas/operations.h"
#include "kolo/nas/search_space.h"
#include "kolo/nas/spaces.h"
