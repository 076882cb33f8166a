// kolo report-html: a study as one page.
#include "tune/output/report_html.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/files.h"
#include "commands.h"
#include "study_settings.h"

namespace kolo::app {
namespace {

constexpr Setting kSettings[] = {
    kStorageSetting,
    {"output", "-o", "", "FILE", "report.html", "where to"},
    kHelpSetting,
};

}  // namespace

int run_command_report_html(const Arguments& arguments) {
  const ParsedCommand command(kSettings, arguments, "kolo report-html [OPTIONS] STUDY", 1, 1);
  if (command.help) return 0;
  const OpenStore open(command.settings);
  const std::string file = command.settings.text("output").value_or("report.html");
  write_file_atomically(file, tune::report_html(*open.store, command.words[0]));
  fmt::print("{}\n", file);
  return 0;
}

}  // namespace kolo::app
