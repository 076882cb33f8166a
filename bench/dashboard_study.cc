// Makes studies for scripts/bench dashboard, without running a trial.
//
//   dashboard_study --db FILE --trials N --reports R --metrics M --state ended|running
//   dashboard_study --db FILE --metrics M --live SECONDS
//
// With --live, a trial of the study reports a better loss every 200 ms, beside some reports of
// others; each is printed when it is in the database: milliseconds since 1970, and the loss.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include "store/study_store.h"
#include "support/arguments.h"
#include "tune/study/study_spec.h"

namespace {

using namespace kolo;
using store::TrialStatus;

constexpr int kParameters = 20;
constexpr const char* kName = "large";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string outline() {
  std::string text = R"({"parameters": [)";
  for (int i = 0; i < kParameters; ++i)
    text +=
        fmt::format(R"json({}{{"path": "p{:02}", "domain": "uniform(0, 1)", "choices": null}})json",
                    i == 0 ? "" : ", ", i);
  return text + "]}";
}

class Writer {
 public:
  Writer(const std::string& path, int metrics)
      : database_(store::open_database(path)), store_(*database_), metrics_(metrics) {
    if (const auto found = store_.find(kName)) {
      study_ = found->id;
      seq_ = found->seq;
    } else {
      tune::StudySpec spec;
      spec.objectives = {{"loss", search::Direction::minimize}};
      spec.search = "random";
      spec.scheduler = "fifo";
      spec.outline = outline();
      store::StudyRecord study;
      study.name = study.first_name = kName;
      study.directory = "/nonexistent";
      study.spec = spec.to_json();
      study.created = now();
      study_ = store_.create(study);
    }
    store_.claim(study_, store_.lease_date());
  }
  ~Writer() { store_.release(study_); }

  void make(std::int64_t trials, int reports, bool running) {
    for (std::int64_t number = 0; number < trials; ++number) {
      auto& trial = batch_.trials.emplace_back();
      trial.number = number;
      trial.status = running ? TrialStatus::running : TrialStatus::terminated;
      trial.config = "{";
      for (int i = 0; i < kParameters; ++i) {
        const double value = uniform_(random_);
        trial.point += fmt::format("{}{:.6f}", i == 0 ? "" : ",", value);
        trial.config += i == 0 ? fmt::format(R"("p00": "choice{}")", int(value * 5))
                               : fmt::format(R"(, "p{:02}": {:.6f})", i, value);
      }
      trial.config += "}";
      trial.directory = "/nonexistent";
      trial.asked_seq = ++seq_;
      trial.created = now();
      trial.started = trial.created;
      trial.place = fmt::format("{}", number % 8);
      for (int i = 1; i <= reports; ++i) report(number, i, uniform_(random_) + 10.0 / i);
      trial.iteration = reports;
      if (!running) {
        trial.ended_seq = ++seq_;
        trial.ended = trial.created;
      }
      if (number % 1000 == 999 || number + 1 == trials) write();
    }
  }

  void live(double seconds) {
    const auto trials = store_.trial_count(study_);
    const double end = now() + seconds;
    double loss = 1;
    for (int step = 0; now() < end; ++step) {
      loss -= 0.0001;
      report(0, 1000 + step, loss);
      for (int i = 1; i < 20; ++i) report((step * 20 + i) % trials, 1000 + step, 5);
      write();
      fmt::print("{:.0f} {:.4f}\n", now() * 1000, loss);
      std::fflush(stdout);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

 private:
  void report(std::int64_t trial, int iteration, double loss) {
    auto& report = batch_.reports.emplace_back();
    report.seq = ++seq_;
    report.trial = trial;
    report.iteration = iteration;
    report.time = now();
    report.metrics = fmt::format(R"({{"loss": {:.6f})", loss);
    for (int i = 1; i < metrics_; ++i)
      report.metrics += fmt::format(R"(, "m{}": {:.6f})", i, uniform_(random_));
    report.metrics += "}";
  }
  void write() {
    batch_.from_seq = written();
    batch_.to_seq = seq_;
    batch_.now = store_.lease_date();
    store_.write(study_, batch_);
    batch_ = {};
  }
  std::int64_t written() { return store_.at(kName).seq; }

  std::unique_ptr<store::Database> database_;
  store::StudyStore store_;
  store::StudyId study_{};
  store::StudyBatch batch_;
  const int metrics_;
  std::int64_t seq_ = 0;
  std::mt19937_64 random_{1};
  std::uniform_real_distribution<double> uniform_{0, 1};
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv, "dashboard_study",
                                   {"db", "trials", "reports", "metrics", "state", "live"});
  const auto number = [&](const char* option) { return std::stoll("0" + arguments[option]); };
  Writer writer(arguments["db"], static_cast<int>(number("metrics")));
  if (number("live") > 0)
    writer.live(static_cast<double>(number("live")));
  else
    writer.make(number("trials"), static_cast<int>(number("reports")),
                arguments["state"] == "running");
}
