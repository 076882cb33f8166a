#include "fuzz/targets.h"

#include <algorithm>

#include "base/csv.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/socket.h"
#include "base/utf8.h"
#include "base/words.h"
#include "base/yaml.h"
#include "cluster/cluster_file.h"
#include "cluster/standing.h"
#include "dashboard/access.h"
#include "events/event_reader.h"
#include "fuzz/check.h"
#include "fuzz/file_targets.h"
#include "fuzz/protocol_targets.h"
#include "hps/results/results_csv.h"
#include "jobs/database/fields.h"
#include "jobs/database/name_pattern.h"
#include "kolo/search/space.h"
#include "launch/allocation.h"
#include "launch/batch/batch_system.h"
#include "launch/elastic/discovery.h"
#include "launch/hosts.h"
#include "launch/slurm.h"
#include "train/checkpoint/format.h"
#include "train/data/csv.h"
#include "train/data/gzip.h"
#include "train/data/idx.h"
#include "tune/output/row_filter.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/protocol/value_text.h"
#include "tune/study/program_study.h"
#include "tune/study/study_spec.h"

namespace kolo::fuzz {
namespace {

void utf8(std::string_view input) {
  const std::string plain = plain_utf8(input);
  require(is_plain_utf8(plain));
  require(!is_plain_utf8(input) || plain == input);
}

void json(std::string_view input) {
  each([&] {
    const Json value = parse_json(input, "input");
    require(parse_json(json_text(value), "again") == value || value != value);
  });
  static_cast<void>(try_parse_json(input));
}

void yaml(std::string_view input) {
  each([&] { static_cast<void>(json_text(parse_yaml(input, "input"))); });
}

void values(std::string_view input) {
  each(
      [&] {
        const std::string once = tune::encode(tune::decode(input, "input"));
        require(tune::encode(tune::decode(once, "again")) == once);
      },
      [&] { static_cast<void>(tune::encode_point(tune::decode_point(input))); },
      [&] { static_cast<void>(hps::value_of_field(std::string(input))); });
}

void trial_lines(std::string_view input) {
  each([&] { static_cast<void>(tune::parse_trial_line(input)); },
       [&] { static_cast<void>(tune::parse_study_line(input)); });
  static_cast<void>(tune::parse_last_words(input, "loss"));
}

void studies(std::string_view input) {
  each([&] { static_cast<void>(tune::StudySpec::from_json(input)); },
       [&] { static_cast<void>(tune::ProgramStudy::from_json(parse_json(input, "input"))); });
}

void spaces(std::string_view input) {
  each([&] { static_cast<void>(search::Space::from_json(std::string(input), "input")); });
}

void expressions(std::string_view input) {
  each([&] {
    const Json space{{"y", {{"eval", std::string(input)}}}, {"x", {{"uniform", {0, 1}}}}};
    static_cast<void>(search::Space::from_json(json_text(space), "input"));
  });
}

void event_files(std::string_view input) {
  each([&] {
    events::RunEvents run;
    events::parse_events(input, "input", run);
  });
}

void hosts(std::string_view input) {
  each([&] { static_cast<void>(launch::parse_hosts(input)); },
       [&] { static_cast<void>(launch::parse_hostfile(input, "input")); },
       [&] { static_cast<void>(launch::parse_nodefile(input)); },
       [&] { static_cast<void>(launch::elastic::parse_discovered(input, 1, [](const auto&) {})); },
       [&] { static_cast<void>(launch::parse_slurm_counts(input)); },
       [&] { static_cast<void>(SocketAddress::parse(input)); });
}

void batch_answers(std::string_view input) {
  const auto state_of = [](std::string_view word) {
    return word == "R" ? launch::BatchState::running : launch::BatchState::unknown;
  };
  const CommandResult good{0, std::string(input), ""}, bad{1 << 8, "", std::string(input)};
  const std::vector<std::string> ids{"1", "2.server"};
  for (const auto& answer : {launch::answer_from("squeue", good, false, ids, state_of),
                             launch::answer_from("squeue", bad, false, ids, state_of)})
    for (const auto& id : ids) require(answer.states.contains(id));
}

void filters(std::string_view input) {
  tune::Table table{{"trial", "lr", "status"}, {{"1", "0.1", "RUNNING"}, {"2", "nan", ""}}};
  each([&] { tune::keep_rows(table, std::string(input)); });
  require(table.rows.size() <= 2);
  const auto half = input.size() / 2;
  const jobs::NamePattern pattern{std::string(input.substr(0, half))};
  require(!pattern.selects_all() || pattern.selects(input.substr(half)));
}

/// What a browser, or whoever pretends to be one, says of itself.
void http_access(std::string_view input) {
  static const dashboard::Access access("a-token", "localhost", 8080);
  const std::string text(input);
  const bool has_token = text.find("a-token") != std::string::npos;
  require(!access.knows({.cookie = text}) || has_token);
  require(!access.knows({.authorization = text}) || has_token);
  static_cast<void>(access.objection({.host = text}));
  static_cast<void>(access.objection({.host = "localhost:8080", .origin = text}));
}

/// What a page asks for: the parameters of its address, as the server took them apart.
void http_questions(std::string_view input) {
  static const std::vector<std::string> columns{"trial", "config/lr", "status", "loss"};
  const std::string text(input);
  for (const bool are_numbers : {false, true})
    each([&] {
      for (const auto& condition :
           tune::parse_conditions(text, columns, [&](std::size_t) { return are_numbers; })) {
        require(condition.column() < columns.size());
        static_cast<void>(condition.holds(tune::Value(0.5)));
        static_cast<void>(condition.holds(tune::Value(text)));
      }
    });
  each([&] { require(tune::column_of(columns, text) < columns.size()); },
       [&] {
         const auto state = jobs::parse_state(text);
         require(jobs::parse_state(jobs::to_string(state)) == state);
       });
}

void clusters(std::string_view input) {
  each([&] { static_cast<void>(cluster::parse_cluster_file(parse_yaml(input, "input"), "input")); },
       [&] { cluster::check_cluster_name(input); },
       [&] {
         const std::string once = cluster::encode(cluster::decode_standing_order(input));
         require(cluster::encode(cluster::decode_standing_order(once)) == once);
       },
       [&] { static_cast<void>(cluster::parse_standing_answer(input)); });
}

void words(std::string_view input) {
  each([&] {
    std::string line;
    const auto split = split_words(input, "input");
    for (const auto& word : split) line += shell_quoted(word) + ' ';
    require(split_words(line, "again") == split);
  });
}

void tables(std::string_view input) {
  for (const auto line : csv_lines(input))
    each([&] {
      const auto fields = split_csv_line(line);
      std::string again = csv_line(fields);
      again.pop_back();
      require(split_csv_line(again) == fields);
    });
  each([&] { static_cast<void>(train::parse_csv(input, ',', false, "input")); },
       [&] { static_cast<void>(train::parse_csv(input, ';', true, "input")); });
}

void job_fields(std::string_view input) {
  each(
      [&] {
        jobs::Job job;
        jobs::decode_spec(job, input);
        static_cast<void>(jobs::encode_spec(job));
      },
      [&] {
        jobs::Job job;
        for (const auto& field : jobs::fields())
          each([&] { jobs::set_field(job, field, std::string(input)); });
        jobs::check_job(job);
      });
}

void idx(std::string_view input) {
  each([&] { static_cast<void>(train::parse_idx(input, "input")); });
}

void gzip(std::string_view input) {
  each([&] { static_cast<void>(train::gunzip_if_needed(std::string(input), "input", 1U << 20)); });
}

void checkpoints(std::string_view input) {
  each([&] { static_cast<void>(train::decode_checkpoint(input, "input")); },
       [&] { static_cast<void>(train::decode_head(input)); });
}

constexpr Target kTargets[] = {
    {"batch_answers", batch_answers},
    {"checkpoints", checkpoints},
    {"clusters", clusters},
    {"commits", commits},
    {"custodian", custodian},
    {"deephyper", deephyper},
    {"engine", engine},
    {"events", event_files},
    {"expressions", expressions},
    {"filters", filters},
    {"frames", frames},
    {"gzip", gzip},
    {"hosts", hosts},
    {"http_access", http_access},
    {"http_questions", http_questions},
    {"idx", idx},
    {"job_fields", job_fields},
    {"json", json},
    {"membership", membership},
    {"optuna_journal", optuna_journal},
    {"ppo_files", ppo_files, 100},
    {"ray_folder", ray_folder, 4},
    {"rendezvous", rendezvous},
    {"results", results},
    {"sealed_streams", sealed_streams, 50},
    {"spaces", spaces},
    {"studies", studies},
    {"tables", tables},
    {"trial_lines", trial_lines},
    {"utf8", utf8},
    {"values", values},
    {"words", words},
    {"yaml", yaml},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const Target& target) { return target.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace kolo::fuzz
