// Every trial runs to its end, in the order in which trials were added.
#include "search/scheduler/schedulers.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class Fifo final : public Scheduler {
 public:
  explicit Fifo(SchedulerOptions given) : Scheduler("fifo", std::move(given)) {
    SettingsReader("scheduler fifo", options().settings).done();
  }

 private:
  Decision on_result(Slot, const Result&, std::span<const double>) override {
    return {Action::proceed, {.rule = "fifo"}};
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_fifo(SchedulerOptions options) {
  return std::make_unique<Fifo>(std::move(options));
}

}  // namespace kolo::search
