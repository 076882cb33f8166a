// kolo analytics: what searches found, as tables, files and pictures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <limits>

#include "base/errors.h"
#include "base/files.h"
#include "base/text_table.h"
#include "commands.h"
#include "hps/analytics/log_events.h"
#include "hps/analytics/searches.h"
#include "hps/analytics/top_rows.h"
#include "hps/analytics/workload.h"
#include "jobs_database.h"
#include "picture.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPathHelp =
    "A results.csv, the folder of a search, or a study in a database: DATABASE#STUDY.";

/// What a file shall be, by its ending. Throws invalid_argument unless it is one of the known.
std::string ending_of(const std::string& file, const std::vector<std::string_view>& known) {
  std::string ending = fs::path(file).extension().string();
  if (ending == ".yml") ending = ".yaml";
  if (std::find(known.begin(), known.end(), ending) == known.end())
    throw_error(ErrorCode::invalid_argument, "--output {}: the name must end in {}", file,
                fmt::join(known, ", "));
  return ending;
}

void write_output(const std::string& file, const std::string& content) {
  write_output_file(file, content);
  fmt::print("{}\n", file);
}

void draw_output(const std::string& file, const Plot& plot) {
  write_picture(file, svg_plot(plot));
  fmt::print("{}\n", file);
}

void warn_if_torn(const hps::SearchResults& search) {
  if (search.table.torn)
    fmt::print(stderr, "kolo analytics: {}: the last line is incomplete and was left out\n",
               search.name);
}

std::string shown(double value) { return short_number(value); }
template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? shown(static_cast<double>(*value)) : "-";
}

struct TopkOptions {
  std::string path, output;
  int k = 10;
  void declare(OptionSet& set);
};
constexpr Option<TopkOptions> kTopkRows[] = {
    {&TopkOptions::path, "PATH", "", kPathHelp},
    {&TopkOptions::k, "k", "N", "Print the N best evaluations.", aliases("-k"), least(1)},
    {&TopkOptions::output, "output", "FILE",
     "Write FILE.yaml, FILE.csv or FILE.json instead of a table.", aliases("-o")},
};
void TopkOptions::declare(OptionSet& set) { set.add("Options", kTopkRows, *this); }

int run_topk(TopkOptions& options) {
  const auto& output = options.output;
  const std::string ending = output.empty() ? "" : ending_of(output, {".yaml", ".csv", ".json"});
  const auto search = hps::read_search(options.path);
  warn_if_torn(search);
  const auto rows = hps::top_rows(search.table, static_cast<std::size_t>(options.k));
  if (!output.empty()) {
    write_output(output, ending == ".csv"    ? hps::rows_as_csv(search.table, rows)
                         : ending == ".json" ? hps::rows_as_json(search.table, rows)
                                             : hps::rows_as_yaml(search.table, rows));
    return 0;
  }
  if (rows.empty()) {
    fmt::print("no evaluation has succeeded\n");
    return 0;
  }
  std::vector<std::vector<std::string>> lines{{"job_id"}};
  for (std::size_t i = 0; i < search.table.objectives; ++i)
    lines[0].push_back(hps::objective_column(i, search.table.objectives));
  for (const auto& name : search.table.parameters) lines[0].push_back(name);
  for (const auto* row : rows) {
    auto& line = lines.emplace_back(std::vector<std::string>{row->job_id});
    for (const double value : row->objectives) line.push_back(shown(value));
    for (const auto& name : search.table.parameters) {
      const auto& given = row->parameters.as_dict();
      const auto found = given.find(name);
      if (found == given.end())
        line.emplace_back("-");
      else
        line.push_back(found->second.is_number() && !found->second.is_integer()
                           ? shown(found->second.as_number())
                           : hps::field_of_value(found->second));
    }
  }
  fmt::print("{}", text_table(lines));
  return 0;
}

struct ParseOptions {
  fs::path file;
  std::string output;
  void declare(OptionSet& set);
};
constexpr Option<ParseOptions> kParseRows[] = {
    {&ParseOptions::file, "PATH", "", "The kolo.log of a search, or the folder that holds it."},
    {&ParseOptions::output, "output", "FILE", "Write to FILE.json.", aliases("-o"),
     fallback("standard output")},
};
void ParseOptions::declare(OptionSet& set) { set.add("Options", kParseRows, *this); }

int run_parse(ParseOptions& options) {
  if (!options.output.empty()) (void)ending_of(options.output, {".json"});
  fs::path file = options.file;
  if (fs::is_directory(file)) file /= "kolo.log";
  const auto log = hps::read_log(read_file(file), file.string());
  for (const std::size_t line : log.damaged)
    fmt::print(stderr, "kolo analytics: {}:{}: this event is incomplete and was left out\n",
               file.string(), line);
  const std::string text = json_text(hps::log_document(log), 2) + "\n";
  if (options.output.empty())
    fmt::print("{}", text);
  else
    write_output(options.output, text);
  return 0;
}

struct QuickplotOptions {
  std::vector<std::string> paths, xy;
  std::optional<double> optimum;
  bool log_x = false, log_y = false;
  std::string title, output = "quickplot.svg";
  void declare(OptionSet& set);
};
constexpr Option<QuickplotOptions> kQuickplotRows[] = {
    {&QuickplotOptions::paths, "PATH", "", kPathHelp},
    {&QuickplotOptions::xy, "xy", "X Y",
     "Draw Y against X: evaluations, time, seconds, objective, or a column of results.csv "
     "(p:NAME, m:NAME).",
     fallback("evaluations objective")},
    {&QuickplotOptions::optimum, "optimum", "VALUE",
     "Draw how far the objective is from this value."},
    {&QuickplotOptions::log_x, "log-x", "", "Use a logarithmic scale for X."},
    {&QuickplotOptions::log_y, "log-y", "", "Use a logarithmic scale for Y."},
    {&QuickplotOptions::title, "title", "TEXT", "Write this title above the picture.",
     fallback("the name of the search")},
    {&QuickplotOptions::output, "output", "FILE", "Write the picture to FILE.svg or FILE.png.",
     aliases("-o")},
};
void QuickplotOptions::declare(OptionSet& set) { set.add("Options", kQuickplotRows, *this); }

int run_quickplot(QuickplotOptions& options) {
  (void)ending_of(options.output, {".svg", ".png"});
  hps::PlotQuestion question;
  if (options.xy.size() >= 2) {
    question.x = *(options.xy.end() - 2);
    question.y = options.xy.back();
  }
  question.optimum = options.optimum;
  question.log_x = options.log_x;
  question.log_y = options.log_y;
  const auto searches = hps::read_searches({options.paths.begin(), options.paths.end()});
  for (const auto& search : searches) warn_if_torn(search);
  question.title = !options.title.empty() ? options.title
                   : searches.size() == 1 ? searches[0].name
                                          : fmt::format("{} searches", searches.size());
  draw_output(options.output, hps::plot_searches(searches, question));
  return 0;
}

struct WorkloadOptions {
  std::string path, workflow, output;
  int num_workers = 0;
  void declare(OptionSet& set);
};
constexpr Option<WorkloadOptions> kWorkloadRows[] = {
    {&WorkloadOptions::path, "PATH", "", kPathHelp, is_optional},
    {&WorkloadOptions::workflow, "workflow", "NAME",
     "Look at jobs of the database of this workflow, or of a pattern, instead of a search.",
     aliases("-w --wf")},
    {&WorkloadOptions::num_workers, "num-workers", "N", "Compare with N workers.",
     fallback("as many as the search had"), least(1)},
    {&WorkloadOptions::output, "output", "FILE",
     "Write the numbers to FILE.json, or a picture to FILE.svg or FILE.png.", aliases("-o")},
};
void WorkloadOptions::declare(OptionSet& set) { set.add("Options", kWorkloadRows, *this); }

int run_workload(WorkloadOptions& options) {
  const std::string &workflow = options.workflow, &output = options.output;
  if (workflow.empty() == options.path.empty())
    throw_error(ErrorCode::invalid_argument, "give either PATH or --workflow");
  const std::string ending = output.empty() ? "" : ending_of(output, {".json", ".svg", ".png"});
  int workers = options.num_workers;
  hps::Workload load;
  std::string name;
  if (!workflow.empty()) {
    auto database = open_jobs();
    load = hps::workload_of(database, workflow, static_cast<double>(std::time(nullptr)));
    name = workflow;
  } else {
    const auto search = hps::read_search(options.path);
    warn_if_torn(search);
    load = hps::workload_of(search.table);
    name = search.name;
    if (workers == 0) workers = search.workers;
  }
  if (!output.empty()) {
    if (ending == ".json")
      write_output(output, json_text(hps::workload_document(load, workers), 2) + "\n");
    else
      draw_output(output, hps::plot_workload(load, workers, name));
    return 0;
  }
  fmt::print("{}: {:.2f} evaluations ran on average over {:.1f} s, at most {}\n", name, load.mean(),
             load.seconds(), load.most());
  if (workers > 0)
    fmt::print("{:.1f} % of {} workers used\n", 100 * load.utilisation(workers), workers);
  return 0;
}

struct CompareOptions {
  std::vector<std::string> paths;
  std::optional<int> after;
  int objective = 0;
  std::string output;
  void declare(OptionSet& set);
};
constexpr Option<CompareOptions> kCompareRows[] = {
    {&CompareOptions::paths, "PATH", "", kPathHelp},
    {&CompareOptions::after, "after", "N", "Also compare the best of the first N evaluations.",
     fallback("as many as all searches have"), least(1)},
    {&CompareOptions::objective, "objective", "I",
     "Compare objective number I, counted from 0, of several.", least(0)},
    {&CompareOptions::output, "output", "FILE", "Write FILE.json instead of a table.",
     aliases("-o")},
};
void CompareOptions::declare(OptionSet& set) { set.add("Options", kCompareRows, *this); }

int run_compare(CompareOptions& options) {
  if (!options.output.empty()) (void)ending_of(options.output, {".json"});
  const auto objective = static_cast<std::size_t>(options.objective);
  const auto searches = hps::read_searches({options.paths.begin(), options.paths.end()});
  std::size_t after = std::numeric_limits<std::size_t>::max();
  for (const auto& search : searches) {
    warn_if_torn(search);
    after = std::min(after, hps::summarize(search, 0, objective).evaluations);
  }
  if (options.after) after = static_cast<std::size_t>(*options.after);
  Json json = Json::array();
  std::vector<std::vector<std::string>> lines{{"search", "evaluations", "failed", "best", "at",
                                               fmt::format("best of {}", after), "mean", "seconds",
                                               "used"}};
  for (const auto& search : searches) {
    const auto row = hps::summarize(search, after, objective);
    json.push_back(hps::summary_json(row, after));
    lines.push_back({row.name, std::to_string(row.evaluations), std::to_string(row.failures),
                     shown(row.best), shown(row.best_at), shown(row.best_after), shown(row.mean),
                     fmt::format("{:.1f}", row.seconds),
                     row.utilisation ? fmt::format("{:.1f} %", 100 * *row.utilisation) : "-"});
  }
  if (options.output.empty())
    fmt::print("{}", text_table(lines));
  else
    write_output(options.output, json_text(json, 2) + "\n");
  return 0;
}

constexpr Command kTopk{
    .name = "topk",
    .summary = "Print the best evaluations of a search",
    .examples = "kolo analytics topk log -k 3\n",
    .options = declared<TopkOptions>,
    .run = run_declared<TopkOptions, run_topk>,
};
constexpr Command kParse{
    .name = "parse",
    .summary = "Print the log of a search as one JSON document",
    .examples = "kolo analytics parse log/kolo.log -o log.json\n",
    .options = declared<ParseOptions>,
    .run = run_declared<ParseOptions, run_parse>,
};
constexpr Command kQuickplot{
    .name = "quickplot",
    .summary = "Draw the objective of one search or several against evaluations or time",
    .examples = "kolo analytics quickplot tpe random --optimum 0 --log-y -o ackley.svg\n",
    .options = declared<QuickplotOptions>,
    .run = run_declared<QuickplotOptions, run_quickplot>,
};
constexpr Command kWorkload{
    .name = "workload",
    .summary = "Show how many evaluations ran at each moment, and how busy the workers were",
    .examples = "kolo analytics workload log -o load.svg\n",
    .options = declared<WorkloadOptions>,
    .run = run_declared<WorkloadOptions, run_workload>,
};
constexpr Command kCompare{
    .name = "compare",
    .summary = "Compare several searches in one table",
    .examples = "kolo analytics compare tpe random\n",
    .options = declared<CompareOptions>,
    .run = run_declared<CompareOptions, run_compare>,
};

constexpr const Command* kParts[] = {&kTopk, &kParse, &kQuickplot, &kWorkload, &kCompare};

}  // namespace

constinit const Command kAnalytics{
    .name = "analytics",
    .summary = "Show what searches found: the best points, tables and pictures",
    .examples = "kolo analytics topk log -k 3\n",
    .subcommands = kParts,
};

}  // namespace kolo::app
