// kolo analytics: what searches found, as tables, files and pictures.
#include <ctime>
#include <limits>

#include "base/errors.h"
#include "base/files.h"
#include "base/registry.h"
#include "commands.h"
#include "hps/analytics/log_events.h"
#include "hps/analytics/searches.h"
#include "hps/analytics/top_rows.h"
#include "hps/analytics/workload.h"
#include "jobs_common.h"
#include "study_settings.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

/// What a file shall be, by its ending. Throws invalid_argument unless it is one of the known.
std::string ending_of(const std::string& file, const std::vector<std::string_view>& known) {
  std::string ending = fs::path(file).extension().string();
  if (ending == ".yml") ending = ".yaml";
  if (std::find(known.begin(), known.end(), ending) == known.end())
    throw_error(ErrorCode::invalid_argument, "-o {}: the name must end in {}", file,
                fmt::join(known, ", "));
  return ending;
}

void write_output(const std::string& file, const std::string& content) {
  write_file_atomically(file, content);
  fmt::print("{}\n", file);
}

void warn_if_torn(const hps::SearchResults& search) {
  if (search.table.torn)
    fmt::print(stderr, "kolo analytics: {}: the last line is not whole and was left out\n",
               search.name);
}

std::string shown(double value) { return fmt::format("{:.6g}", value); }
template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? shown(static_cast<double>(*value)) : "-";
}

int topk(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"k", "-k", "", "N", "10", "how many"},
      {"output", "-o", "", "FILE", "", "FILE.yaml, .csv or .json instead of a table"},
      kHelpSetting};
  constexpr std::string_view kUsage = "kolo analytics topk PATH [-k N] [-o FILE]";
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help(kUsage, "The best evaluations of a search.", kTable);
    return 0;
  }
  options.expect_words(1, 1, kUsage);
  const auto output = options.text("output");
  const std::string ending = output ? ending_of(*output, {".yaml", ".csv", ".json"}) : "";
  const auto search = hps::read_search(options.words()[0]);
  warn_if_torn(search);
  const auto rows =
      hps::top_rows(search.table, static_cast<std::size_t>(options.integer("k", 1).value_or(10)));
  if (output) {
    write_output(*output, ending == ".csv"    ? hps::rows_as_csv(search.table, rows)
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
  print_table(lines);
  return 0;
}

int parse(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"output", "-o", "", "FILE", "", "FILE.json instead of standard output"}, kHelpSetting};
  constexpr std::string_view kUsage = "kolo analytics parse kolo.log [-o FILE.json]";
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help(kUsage, "The log of a search as one JSON document.", kTable);
    return 0;
  }
  options.expect_words(1, 1, kUsage);
  const auto output = options.text("output");
  if (output) (void)ending_of(*output, {".json"});
  fs::path file = options.words()[0];
  if (fs::is_directory(file)) file /= "kolo.log";
  const auto log = hps::read_log(read_file(file), file.string());
  for (const std::size_t line : log.damaged)
    fmt::print(stderr, "kolo analytics: {}:{}: not a whole event, left out\n", file.string(), line);
  const std::string text = hps::log_document(log).dump(2) + "\n";
  if (output)
    write_output(*output, text);
  else
    fmt::print("{}", text);
  return 0;
}

/// --xy takes two words, which other options do not.
Arguments joined_xy(const Arguments& arguments) {
  Arguments joined;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != "--xy") {
      joined.push_back(arguments[i]);
      continue;
    }
    if (i + 2 >= arguments.size())
      throw_error(ErrorCode::invalid_argument, "--xy needs two columns, as --xy time objective");
    joined.push_back("--xy=" + arguments[i + 1] + "\n" + arguments[i + 2]);
    i += 2;
  }
  return joined;
}

int quickplot(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"xy", "", "", "X Y", "evaluations objective",
       "what is drawn: evaluations, time, seconds, objective, or columns (p:NAME, m:NAME)"},
      {"optimum", "", "", "V", "", "draw how far the objective is from V"},
      {"log-x", "", "", "", "", "by logarithm"},
      {"log-y", "", "", "", "", "by logarithm"},
      {"title", "", "", "TEXT", "", "above the picture"},
      {"output", "-o", "", "FILE", "quickplot.svg", "where to"},
      kHelpSetting};
  constexpr std::string_view kUsage = "kolo analytics quickplot PATH... [--xy X Y] [-o FILE.svg]";
  const Options options(kTable, joined_xy(arguments));
  if (options.has("help")) {
    print_options_help(kUsage, "Results of searches as a picture.", kTable);
    return 0;
  }
  options.expect_words(1, kAny, kUsage);
  const std::string output = options.text("output").value_or("quickplot.svg");
  (void)ending_of(output, {".svg"});
  hps::PlotQuestion question;
  if (const auto xy = options.text("xy")) {
    const auto cut = xy->find('\n');
    if (cut == std::string::npos)
      throw_error(ErrorCode::invalid_argument, "--xy needs two columns, as --xy time objective");
    question.x = xy->substr(0, cut);
    question.y = xy->substr(cut + 1);
  }
  question.optimum = options.number("optimum", std::numeric_limits<double>::lowest());
  question.log_x = options.has("log-x");
  question.log_y = options.has("log-y");
  const auto searches = hps::read_searches({options.words().begin(), options.words().end()});
  for (const auto& search : searches) warn_if_torn(search);
  question.title = options.text("title").value_or(
      searches.size() == 1 ? searches[0].name : fmt::format("{} searches", searches.size()));
  write_output(output, svg_plot(hps::plot_searches(searches, question)));
  return 0;
}

int workload(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"workflow", "-w --wf", "", "PART", "", "jobs of the database (KOLO_DB) instead of a search"},
      {"num-workers", "", "", "N", "as the search knows", "how many could have run"},
      {"output", "-o", "", "FILE", "", "FILE.json or FILE.svg"},
      kHelpSetting};
  constexpr std::string_view kUsage = "kolo analytics workload {PATH | -w WORKFLOW} [-o FILE]";
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help(kUsage, "How many evaluations ran at each moment.", kTable);
    return 0;
  }
  const auto workflow = options.text("workflow");
  options.expect_words(workflow ? 0 : 1, workflow ? 0 : 1, kUsage);
  const auto output = options.text("output");
  const std::string ending = output ? ending_of(*output, {".json", ".svg"}) : "";
  int workers = static_cast<int>(options.integer("num-workers", 1).value_or(0));
  hps::Workload load;
  std::string name;
  if (workflow) {
    auto database = open_jobs();
    load = hps::workload_of(database, *workflow, static_cast<double>(std::time(nullptr)));
    name = *workflow;
  } else {
    const auto search = hps::read_search(options.words()[0]);
    warn_if_torn(search);
    load = hps::workload_of(search.table);
    name = search.name;
    if (workers == 0) workers = search.workers;
  }
  if (output) {
    write_output(*output, ending == ".json" ? hps::workload_document(load, workers).dump(2) + "\n"
                                            : svg_plot(hps::plot_workload(load, workers, name)));
    return 0;
  }
  fmt::print("{}: {:.2f} running on average over {:.1f} s, at most {}\n", name, load.mean(),
             load.seconds(), load.most());
  if (workers > 0)
    fmt::print("{:.1f} % of {} workers used\n", 100 * load.utilisation(workers), workers);
  return 0;
}

int compare(const Arguments& arguments) {
  constexpr Setting kTable[] = {
      {"after", "", "", "N", "as many as all have", "also the best after N evaluations"},
      {"objective", "", "", "I", "0", "which of several objectives"},
      {"output", "-o", "", "FILE", "", "FILE.json instead of a table"},
      kHelpSetting};
  constexpr std::string_view kUsage = "kolo analytics compare PATH... [--after N] [-o FILE.json]";
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help(kUsage, "Several searches side by side.", kTable);
    return 0;
  }
  options.expect_words(1, kAny, kUsage);
  const auto output = options.text("output");
  if (output) (void)ending_of(*output, {".json"});
  const auto objective = static_cast<std::size_t>(options.integer("objective", 0).value_or(0));
  const auto searches = hps::read_searches({options.words().begin(), options.words().end()});
  std::size_t after = kAny;
  for (const auto& search : searches) {
    warn_if_torn(search);
    after = std::min(after, hps::summarize(search, 0, objective).evaluations);
  }
  if (const auto given = options.integer("after", 1)) after = static_cast<std::size_t>(*given);
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
  if (output)
    write_output(*output, json.dump(2) + "\n");
  else
    print_table(lines);
  return 0;
}

constexpr Command kParts[] = {
    {"topk", "the best evaluations, as a table, YAML, CSV or JSON", topk},
    {"parse", "the log of a search as one JSON document", parse},
    {"quickplot", "objective against evaluations or time, of one search or several", quickplot},
    {"workload", "how many evaluations ran at each moment; how well workers were used", workload},
    {"compare", "several searches side by side", compare},
};

}  // namespace

int run_command_analytics(const Arguments& arguments) {
  const bool help = !arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h");
  if (arguments.empty() || help) {
    fmt::print("What searches found.\n\nUsage: kolo analytics COMMAND [OPTIONS]\n\n");
    for (const Command& part : kParts) fmt::print("  {:<10} {}\n", part.name, part.summary);
    fmt::print("\nA PATH is a results.csv or the folder with it.\n");
    return help ? 0 : 2;
  }
  std::vector<std::string_view> known;
  for (const Command& part : kParts) {
    if (part.name == arguments[0]) return part.run({arguments.begin() + 1, arguments.end()});
    known.push_back(part.name);
  }
  throw_unknown_name("command", arguments[0], known, ErrorCode::invalid_argument);
}

}  // namespace kolo::app
