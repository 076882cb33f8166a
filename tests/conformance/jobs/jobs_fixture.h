// A database of jobs in every kind of store.
#pragma once

#include <gmock/gmock.h>

#include <memory>

#include "base/errors.h"
#include "conformance/store/database_fixture.h"
#include "kolo/jobs.h"

namespace kolo::test {

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::internal, ""};
}

class JobsTest : public DatabaseTest {
 protected:
  void SetUp() override {
    DatabaseTest::SetUp();
    if (IsSkipped()) return;
    jobs_ = std::make_unique<jobs::JobDatabase>(
        jobs::JobDatabase::init(folder(), GetParam() == "sqlite" ? "" : url()));
    jobs_->set_application({.name = "true", .executable = "/bin/true"});
  }

  [[nodiscard]] std::filesystem::path folder() const { return scratch_.path() / "testdb"; }

  static jobs::Job plain_job(const std::string& name, const std::string& workflow = "TEST") {
    jobs::Job job;
    job.name = name;
    job.workflow = workflow;
    job.application = "true";
    return job;
  }

  jobs::JobId add(const std::string& name, std::vector<jobs::JobId> parents = {}) {
    auto job = plain_job(name);
    job.parents = std::move(parents);
    return jobs_->create(job);
  }

  jobs::JobState state(jobs::JobId id) { return jobs_->job(id).state; }

  std::string path_of(jobs::JobId id) {
    std::string path;
    for (const auto& entry : jobs_->history(id))
      path += (path.empty() ? "" : " ") + std::string(to_string(entry.state));
    return path;
  }

  TempDir scratch_;
  std::unique_ptr<jobs::JobDatabase> jobs_;
};

}  // namespace kolo::test
