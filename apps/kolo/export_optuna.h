// A study as Optuna reads it.
#pragma once

#include <string>

#include "store/study_store.h"

namespace kolo::app {

/// The lines of a journal file, which `optuna.storages.JournalFileStorage` opens. Throws
/// failed_precondition for a study without objectives: Optuna knows none.
std::string optuna_journal(store::StudyStore& store, const std::string& study);

}  // namespace kolo::app
