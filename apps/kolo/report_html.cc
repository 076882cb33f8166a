// kolo report-html: a study as one page.
#include "tune/output/report_html.h"

#include <fmt/format.h>

#include "base/files.h"
#include "commands.h"
#include "study_store.h"

namespace kolo::app {
namespace {

struct ReportHtmlOptions {
  std::string study, storage, output = "report.html";
  void declare(OptionSet& set);
};
constexpr Option<ReportHtmlOptions> kReportHtmlRows[] = {
    {&ReportHtmlOptions::output, "output", "FILE", "Write the page to this file.", aliases("-o")},
};
void ReportHtmlOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyOrNewest, &study);
  set.add("Options", kReportHtmlRows, *this);
  set.add("Options", kStorage, &storage);
}

int run_report_html(ReportHtmlOptions& options) {
  const OpenStore open(options.storage);
  const std::string study = study_or_newest(*open.store, options.study);
  write_output_file(options.output, tune::report_html(*open.store, study));
  fmt::print("{}\n", options.output);
  return 0;
}

}  // namespace

constinit const Command kReportHtml{
    .name = "report-html",
    .summary = "Write a study as one HTML page with charts",
    .examples = "kolo report-html mnist -o mnist.html\n",
    .options = declared<ReportHtmlOptions>,
    .run = run_declared<ReportHtmlOptions, run_report_html>,
};

}  // namespace kolo::app
