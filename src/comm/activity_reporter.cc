#include "comm/activity_reporter.h"

#include <chrono>

#include "base/env.h"
#include "base/errors.h"
#include "base/frames.h"
#include "base/signals_blocked.h"
#include "comm/activity.h"

namespace kolo::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kSampleEvery = 100ms;
constexpr std::size_t kSamplesInReport = 10;
constexpr std::string_view kSampleLetters = "w.";

}  // namespace

std::string encode(const ActivityReport& report) {
  return ByteWriter().u64(report.steps).u64(report.operations).string(report.samples).bytes();
}

ActivityReport decode_activity(std::string_view payload) {
  ByteReader reader(payload);
  ActivityReport report;
  report.steps = reader.u64();
  report.operations = reader.u64();
  report.samples = reader.string();
  reader.finish();
  if (report.samples.size() > kSamplesInReport ||
      report.samples.find_first_not_of(kSampleLetters) != std::string::npos)
    throw_error(ErrorCode::corruption, "the report of a rank has samples that are none");
  return report;
}

ActivityReporter::ActivityReporter(std::shared_ptr<Bootstrap> bootstrap)
    : bootstrap_(std::move(bootstrap)) {
  // Signals are for the threads of the program.
  const SignalsBlocked signals_blocked;
  thread_ = std::thread([this] { run(); });
}

ActivityReporter::~ActivityReporter() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void ActivityReporter::run() {
  ActivityReport report;
  MutexLock lock(mutex_);
  while (!ended_.wait_for(lock, kSampleEvery, [this]() KOLO_REQUIRES(mutex_) { return over_; })) {
    report.samples += activity.waits() ? 'w' : '.';
    if (report.samples.size() < kSamplesInReport) continue;
    report.steps = activity.steps();
    report.operations = activity.operations();
    bootstrap_->report(encode(report));
    report.samples.clear();
  }
}

std::unique_ptr<ActivityReporter> make_activity_reporter(std::shared_ptr<Bootstrap> bootstrap) {
  if (!setting_flag("ACTIVITY").value_or(false)) return nullptr;
  return std::make_unique<ActivityReporter>(std::move(bootstrap));
}

}  // namespace kolo::comm
