// kolo delete, rename, copy: studies as a whole.
#include "tune/study/study_upkeep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "base/errors.h"
#include "base/text_table.h"
#include "commands.h"
#include "kolo/tune.h"
#include "study_store.h"

namespace kolo::app {
namespace {

struct DeleteOptions {
  std::vector<std::string> studies;
  std::string storage;
  bool yes = false;
  void declare(OptionSet& set);
};
constexpr OptionText kDeletedStudies{
    "STUDY", "", "The names of the studies; `kolo studies` lists them.", {.names = study_names}};
constexpr Option<DeleteOptions> kDeleteRows[] = {
    {&DeleteOptions::yes, "yes", "", "Delete without asking.", aliases("-y")},
};
void DeleteOptions::declare(OptionSet& set) {
  set.add("Arguments", kDeletedStudies, &studies);
  set.add("Options", kDeleteRows, *this);
  set.add("Options", kStorage, &storage);
}

std::string size_text(std::uintmax_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1000 && unit + 1 < std::size(kUnits); ++unit) size /= 1000;
  return fmt::format("{:.3g} {}", size, kUnits[unit]);
}

/// Shows what would be lost, and waits for a word.
bool is_confirmed(const std::string& name, const std::string& storage) {
  const OpenStore open(storage);
  const auto study = open.store->at(name);
  const auto files = tune::files_of_study(*open.store, study);
  const std::int64_t trials = open.store->trial_count(study.id);
  const std::string lost =
      fmt::format("study {}: {} trial{}, {} in {}", name, trials, trials == 1 ? "" : "s",
                  size_text(files.bytes()), study.directory);
  if (::isatty(STDIN_FILENO) == 0)
    throw_error(ErrorCode::invalid_argument,
                "deleting cannot be undone ({}); add --yes where nobody can be asked", lost);
  fmt::print("{}\ndelete it with its checkpoints? [y/N] ", lost);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int run_delete(DeleteOptions& options) {
  for (const auto& name : options.studies) {
    if (!options.yes && !is_confirmed(name, options.storage)) {
      fmt::print("study {} stays\n", name);
      continue;
    }
    tune::delete_study(name, options.storage);
    fmt::print("deleted study {}\n", name);
  }
  return 0;
}

struct NewNameOptions {
  std::string study, name, storage;
  void declare(OptionSet& set);
};
constexpr Option<NewNameOptions> kNewNameRows[] = {
    {&NewNameOptions::name, "NAME", "", "The new name of the study, or the name of its copy."},
};
void NewNameOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyArgument, &study);
  set.add("Arguments", kNewNameRows, *this);
  set.add("Options", kStorage, &storage);
}

int run_rename(NewNameOptions& options) {
  tune::rename_study(options.study, options.name, options.storage);
  fmt::print("study {} is now {}\n", options.study, options.name);
  return 0;
}

int run_copy(NewNameOptions& options) {
  tune::copy_study(options.study, options.name, options.storage);
  fmt::print("copied study {} to {}; `kolo resume {}` continues the copy\n", options.study,
             options.name, options.name);
  return 0;
}

}  // namespace

constinit const Command kDelete{
    .name = "delete",
    .summary = "Delete studies with their trials, results and checkpoints",
    .examples = "kolo delete first-try second-try\n",
    .notes =
        "A study that is running is refused; `kolo stop` ends it. Files of yours in the folder of "
        "a "
        "study are kept.",
    .options = declared<DeleteOptions>,
    .run = run_declared<DeleteOptions, run_delete>,
};

constinit const Command kRename{
    .name = "rename",
    .summary = "Give a study another name",
    .examples = "kolo rename mnist mnist-adam\n",
    .notes = "Its folder gets the new name, too; trials keep their ids.",
    .options = declared<NewNameOptions>,
    .run = run_declared<NewNameOptions, run_rename>,
};

constinit const Command kCopy{
    .name = "copy",
    .summary = "Copy a study with its trials, results and checkpoints",
    .examples = "kolo copy mnist mnist-longer\nkolo resume mnist-longer --num-samples 200\n",
    .options = declared<NewNameOptions>,
    .run = run_declared<NewNameOptions, run_copy>,
};

}  // namespace kolo::app
