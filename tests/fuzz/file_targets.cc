#include "fuzz/file_targets.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/fd.h"
#include "base/files.h"
#include "comm/elastic/commit_files.h"
#include "fuzz/check.h"
#include "hps/results/results_csv.h"
#include "imported_study.h"
#include "support/memory_folder.h"
#include "tune/protocol/value_text.h"

namespace kolo::fuzz {
namespace {

namespace fs = std::filesystem;

void write_all(const Fd& file, std::string_view bytes) {
  require(::ftruncate(file.get(), 0) == 0);
  require(::pwrite(file.get(), bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(bytes.size()));
}

/// A file in memory, for readers that know files only.
fs::path file_with(std::string_view input) {
  static const Fd file(::memfd_create("input", MFD_CLOEXEC));
  write_all(file, input);
  return fmt::format("/proc/self/fd/{}", file.get());
}

/// What was taken in can be stored.
void store(const app::ImportedStudy& study) {
  for (const auto& trial : study.trials) {
    static_cast<void>(tune::encode(trial.config));
    for (const auto& report : trial.reports) static_cast<void>(tune::encode(report));
  }
}

}  // namespace

void commits(std::string_view input) {
  namespace elastic = comm::elastic;
  each([&] {
    const auto commit = elastic::decode_commit(input, "input");
    require(elastic::decode_commit(elastic::encode_commit(commit), "again").parts == commit.parts);
  });
}

void results(std::string_view input) {
  each([&] {
    const auto table = hps::read_results(file_with(input));
    for (const auto& row : table.rows) static_cast<void>(hps::nested_config(row.parameters));
  });
}

void deephyper(std::string_view input) {
  each([&] { store(app::import_deephyper(file_with(input), {})); });
}

void optuna_journal(std::string_view input) {
  const fs::path file = file_with(input);
  each([&] { store(app::import_optuna_journal(file, {})); },
       [&] { store(app::import_optuna_journal(file, {.study = "tpe", .metric = "loss"})); });
}

void ray_folder(std::string_view input) {
  static const TempDir experiment(test::memory_folder("kolo-fuzz"));
  static const Fd params = [] {
    fs::create_directory(experiment.path() / "trial");
    return Fd(::open((experiment.path() / "trial/params.json").c_str(),
                     O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  }();
  static const Fd reports(::open((experiment.path() / "trial/result.json").c_str(),
                                 O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const auto line = std::min(input.find('\n'), input.size());
  write_all(params, input.substr(0, line));
  write_all(reports, input.substr(std::min(line + 1, input.size())));
  each([&] { store(app::import_ray(experiment.path())); });
}

}  // namespace kolo::fuzz
