// A pipeline among ranks that a script plays, with a clock that the test sets.
#include "engine/step_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "comm/internals.h"
#include "engine/timeline.h"
#include "scripted_group.h"

namespace kolo::runtime {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Log = std::vector<std::string>;

std::atomic<std::chrono::nanoseconds> given_time{};
StepRunner::Time given_clock() { return StepRunner::Time(given_time.load()); }
void pass(std::chrono::nanoseconds time) { given_time = given_time.load() + time; }

class NoMemory final : public SharedMemory {
  void* allocate(std::size_t) override { throw_error(ErrorCode::internal, "no memory here"); }
  void release(void*) noexcept override {}
};

/// Three allreduces of 10, 20 and 30 elements, and an item that is none.
class Work final : public StepWork {
 public:
  StepPlan plan(Communicator&) override {
    ++plans;
    StepPlan plan{17};
    for (const std::size_t count : {10, 20, 30})
      plan.items.push_back(
          {std::to_string(count), 4 * count, StepAllreduce{data, count, DataType::float32}});
    plan.items.push_back({"end", 0});
    return plan;
  }
  void run(Communicator&, std::size_t item) override {
    ran.push_back(item);
    runners.push_back(std::this_thread::get_id());
    if (on_run) on_run(item);
  }
  bool bring_zeros() override { return true; }

  int plans = 0;
  std::vector<std::size_t> ran;
  std::vector<std::thread::id> runners;
  std::function<void(std::size_t)> on_run;
  float data[30] = {};
};

class StepPipelineTest : public testing::Test {
 protected:
  /// After a first step, in which the plan is made.
  void start(bool can_post = true) {
    group_ = std::make_shared<test::ScriptedGroup>(3, can_post);
    StepPipeline::Environment environment{
        comm::Internals::make(group_, Topology(0, {0, 0, 0}), std::make_shared<NoMemory>()),
        {0, 10, 20},
        std::make_shared<Timeline>()};
    environment.now = &given_clock;
    pipeline_ = std::make_unique<StepPipeline>(std::move(environment), work_);
    group_->on_wait = [this] { group_->come(); };
    pipeline_->finish();
    ASSERT_EQ(work_.plans, 1);
    (void)group_->take_log();
    (void)pipeline_->take_times();
    work_.ran.clear();
    work_.runners.clear();
    group_->on_wait = [] { throw_error(ErrorCode::internal, "this rank waits"); };
  }

  Error error_of_step() {
    try {
      pipeline_->finish();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "the step did not fail";
    return {ErrorCode::internal, ""};
  }

  /// A step in which all come at once works as if nothing had been.
  void expect_whole_step() {
    group_->others = [](auto&, auto*) {};
    work_.on_run = nullptr;
    (void)group_->take_log();
    group_->on_wait = [this] { group_->come(); };
    pipeline_->finish();
    EXPECT_THAT(group_->take_log(), ElementsAre("meet", "show 10", "reduce 10", "show 20",
                                                "reduce 20", "show 30", "reduce 30"));
  }

  Work work_;
  std::shared_ptr<test::ScriptedGroup> group_;
  std::unique_ptr<StepPipeline> pipeline_;
};

TEST_F(StepPipelineTest, ItemsGoInOrderAsTheOthersCome) {
  start();
  pipeline_->mark_ready(1);
  EXPECT_THAT(group_->take_log(), IsEmpty());  // the first is not ready
  pipeline_->mark_ready(0);
  EXPECT_THAT(group_->take_log(), ElementsAre("meet"));
  pipeline_->progress();
  EXPECT_THAT(group_->take_log(), IsEmpty());  // nobody came, and nobody waits
  group_->come();
  pipeline_->progress();
  EXPECT_THAT(group_->take_log(), ElementsAre("show 10"));
  group_->come();
  pipeline_->progress();
  EXPECT_THAT(group_->take_log(), ElementsAre("reduce 10", "show 20"));
  group_->come();
  pipeline_->progress();
  EXPECT_THAT(group_->take_log(), ElementsAre("reduce 20"));
  group_->come_always();
  pipeline_->finish();
  EXPECT_THAT(group_->take_log(), ElementsAre("show 30", "reduce 30"));
  EXPECT_THAT(work_.ran, ElementsAre(3));
  EXPECT_EQ(work_.plans, 1);
}

TEST_F(StepPipelineTest, WhatIsReadyIsReducedWhileTheOwnerWorks) {
  start();
  group_->come_always();
  pipeline_->mark_ready(0);
  pipeline_->mark_ready(1);
  EXPECT_THAT(group_->take_log(),
              ElementsAre("meet", "show 10", "reduce 10", "show 20", "reduce 20"));
  pipeline_->finish();
  EXPECT_THAT(group_->take_log(), ElementsAre("show 30", "reduce 30"));
}

TEST_F(StepPipelineTest, AnItemThatWasShownIsCompletedInFinish) {
  start();
  pipeline_->mark_ready(0);
  group_->come();
  pipeline_->progress();
  EXPECT_THAT(group_->take_log(), ElementsAre("meet", "show 10"));
  group_->come_always();
  pipeline_->finish();
  EXPECT_THAT(group_->take_log(),
              ElementsAre("reduce 10", "show 20", "reduce 20", "show 30", "reduce 30"));
}

TEST_F(StepPipelineTest, AnErrorInTheMiddleEndsTheStepAndIsToldByFinish) {
  start();
  group_->come_always();
  group_->others = [](comm::Card& card, std::byte*) {
    if (card.kind != comm::OpKind::allreduce || card.count != 20) return;
    card.count = 21;
    ++card.signature;
  };
  pipeline_->mark_ready(0);
  pipeline_->mark_ready(1);
  pipeline_->mark_ready(2);
  EXPECT_THAT(group_->take_log(), ElementsAre("meet", "show 10", "reduce 10", "show 20"));
  const Error error = error_of_step();
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("21"));
  EXPECT_THAT(group_->take_log(), IsEmpty());
  EXPECT_THAT(work_.ran, IsEmpty());
  expect_whole_step();
}

TEST_F(StepPipelineTest, RanksWithOtherPlansAreNamed) {
  start();
  group_->come_always();
  group_->others = [](comm::Card& card, std::byte* payload) {
    if (card.kind == comm::OpKind::allgather) *payload = std::byte{99};
  };
  const Error error = error_of_step();
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("ranks 0 and 10"));
  EXPECT_THAT(group_->take_log(), ElementsAre("meet"));
  expect_whole_step();
}

TEST_F(StepPipelineTest, ALostPeerIsToldInThisStepAndInTheNext) {
  start();
  group_->come(2);  // to the meeting and to the first item
  pipeline_->mark_ready(0);
  group_->on_wait = [] { throw_error(ErrorCode::peer_lost, "rank 20 is gone"); };
  EXPECT_EQ(error_of_step().code(), ErrorCode::peer_lost);
  EXPECT_THAT(group_->take_log(), ElementsAre("meet", "show 10", "reduce 10", "show 20"));
  EXPECT_EQ(error_of_step().code(), ErrorCode::peer_lost);
}

TEST_F(StepPipelineTest, ARankThatNeverComesIsATimeoutByTheClock) {
  start();
  const auto deadline = given_clock() + 300s;
  group_->on_wait = [&] {
    pass(1s);
    if (given_clock() > deadline)
      throw_error(ErrorCode::timeout, "rank 20 did not come within 300 s");
  };
  EXPECT_EQ(error_of_step().code(), ErrorCode::timeout);
  const auto times = pipeline_->take_times();
  EXPECT_EQ(times.in_finish, 301s);
  EXPECT_EQ(times.total, 0s);
  EXPECT_EQ(times.steps, 1);
}

TEST_F(StepPipelineTest, WaitingForOthersIsNotTheTimeOfTheItems) {
  start();
  group_->on_wait = [this] {
    pass(5s);
    group_->come();
  };
  group_->on_reduce = [](std::size_t count) { pass(std::chrono::seconds(count)); };
  pipeline_->finish();
  const auto times = pipeline_->take_times();
  EXPECT_EQ(times.total, 60s);
  EXPECT_EQ(times.in_finish, 4 * 5s + 60s);
  EXPECT_EQ(pipeline_->take_times().steps, 0);
}

TEST_F(StepPipelineTest, TheHelperRunsItemsWhileTheOwnerWorks) {
  start();
  EXPECT_TRUE(pipeline_->can_choose_helper());
  pipeline_->use_helper(true);
  group_->come_always();
  std::atomic<std::thread::id> reducer;
  group_->on_reduce = [&](std::size_t) { reducer = std::this_thread::get_id(); };
  pipeline_->mark_ready(0);
  group_->await_logged("reduce 10");
  EXPECT_NE(reducer.load(), std::this_thread::get_id());
  pipeline_->finish();
  EXPECT_EQ(reducer.load(), std::this_thread::get_id());  // the rest is the owner's
  EXPECT_THAT(group_->take_log(), ElementsAre("meet", "show 10", "reduce 10", "show 20",
                                              "reduce 20", "show 30", "reduce 30"));
}

TEST_F(StepPipelineTest, AnErrorOfTheHelperIsToldByFinish) {
  start();
  pipeline_->use_helper(true);
  group_->on_wait = [] { throw_error(ErrorCode::peer_lost, "rank 10 is gone"); };
  pipeline_->mark_ready(0);
  group_->await_logged("meet");
  EXPECT_EQ(error_of_step().code(), ErrorCode::peer_lost);
  EXPECT_THAT(work_.ran, IsEmpty());
}

TEST_F(StepPipelineTest, WithoutPostedMeetingsTheWorkRunsEveryItem) {
  start(false);
  EXPECT_FALSE(pipeline_->can_choose_helper());
  group_->come_always();
  pipeline_->mark_ready(0);  // the helper's
  pipeline_->mark_ready(1);
  pipeline_->finish();
  EXPECT_THAT(work_.ran, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(work_.runners.back(), std::this_thread::get_id());
  EXPECT_THAT(group_->take_log(), ElementsAre("exchange"));  // the greeting

  work_.on_run = [](std::size_t item) {
    if (item == 2) throw_error(ErrorCode::io, "no room");
  };
  work_.ran.clear();
  EXPECT_EQ(error_of_step().code(), ErrorCode::io);
  EXPECT_THAT(work_.ran, ElementsAre(0, 1, 2));
}

TEST_F(StepPipelineTest, AnotherPlanHoldsFromTheNextStep) {
  start();
  StepPlan plan{23};
  plan.items.push_back({"all", 240, StepAllreduce{work_.data, 25, DataType::float32}});
  plan.items.push_back({"end", 0});
  pipeline_->set_plan(std::move(plan));
  group_->come_always();
  pipeline_->mark_ready(0);
  pipeline_->finish();
  EXPECT_THAT(group_->take_log(), ElementsAre("meet", "show 25", "reduce 25"));
  EXPECT_THAT(work_.ran, ElementsAre(1));
}

}  // namespace
}  // namespace kolo::runtime
