// A program outside kolo's tree that makes jobs and sees what became of them.
// Usage: jobs_consumer FOLDER make|look
#include <kolo/error.h>
#include <kolo/jobs.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace jobs = kolo::jobs;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    if (std::strcmp(argv[2], "make") == 0) {
      auto database = jobs::JobDatabase::init(argv[1]);
      database.set_application({.name = "say", .executable = "echo"});
      jobs::Job first;
      first.name = "first", first.application = "say", first.args = "hello";
      jobs::Job second = first;
      second.name = "second";
      second.parents = {database.create(first)};
      database.create(second);
      return EXIT_SUCCESS;
    }
    auto database = jobs::JobDatabase::open(argv[1]);
    const auto all = database.find({});
    int finished = 0;
    for (const auto& job : all)
      if (job.state == jobs::JobState::job_finished) ++finished;
    std::printf("%zu jobs, %d finished\n", all.size(), finished);
    return EXIT_SUCCESS;
  } catch (const kolo::Error& error) {
    std::fprintf(stderr, "jobs_consumer: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
