// For shared libraries that bring problems and run functions of their own:
//
//   #include <kolo/hps/sdk.h>
//
//   KOLO_HPS_PROBLEM(Problem) {
//     kolo::hps::HpProblem problem;
//     problem.add_hyperparameter({-10.0, 10.0}, "x");
//     return problem;
//   }
//
//   KOLO_HPS_RUN(run) {  // job is a kolo::hps::RunningJob&
//     return -job["x"].as_number() * job["x"].as_number();
//   }
//
//   g++ -std=c++20 -shared -fPIC my.cc -o libmy.so
//   kolo hps ambs --problem ./libmy.so:Problem --run ./libmy.so:run --max-evals 100
//
// Nothing of kolo is linked: what the library uses is in the program that loads it. So the two must
// be of one version, which is checked before anything else of the library is used.
#pragma once

#include "kolo/hps/problem.h"
#include "kolo/hps/run.h"
#include "kolo/version.h"

namespace kolo::hps::sdk {

/// The version of the interface between library and program.
inline constexpr int kSdk = 2;

/// One thing that a library offers. `function` is a MakeProblem, a CallRun or, for kinds of other
/// modules, what those define.
struct Export {
  const char* kind;  ///< "problem", "run" …
  const char* name;
  void (*function)();
  const Export* next;
};

/// The first two members never move, so that any kolo can read them from any library.
struct Library {
  int sdk;
  const char* version;
  const Export* first;
};

/// Functions of kind "problem" and "run".
using MakeProblem = void (*)(HpProblem& problem);
using CallRun = void (*)(RunningJob& job, RunResult& result);

/// The library's own list: hidden, or the lists of all loaded libraries would be one.
__attribute__((visibility("hidden"))) inline Library& this_library() {
  static Library library{kSdk, KOLO_VERSION, nullptr};
  return library;
}

struct __attribute__((visibility("hidden"))) Registration {
  Registration(const char* kind, const char* name, void (*function)())
      : entry{kind, name, function, this_library().first} {
    this_library().first = &entry;
  }
  Export entry;
};

}  // namespace kolo::hps::sdk

#ifndef KOLO_HPS_SDK_TYPES_ONLY
// In every file that includes this; the linker keeps one.
extern "C" __attribute__((weak, used, visibility("default"))) const kolo::hps::sdk::Library*
kolo_hps_library() {
  return &kolo::hps::sdk::this_library();
}
#endif

/// Makes the symbol `symbol` known under `name`.
#define KOLO_SDK_EXPORT(kind, name, symbol)                        \
  static const ::kolo::hps::sdk::Registration symbol##_registered( \
      kind, #name, reinterpret_cast<void (*)()>(symbol));

/// The body makes and returns an HpProblem.
#define KOLO_HPS_PROBLEM(name)                                                    \
  static ::kolo::hps::HpProblem kolo_hps_make_##name();                           \
  extern "C" __attribute__((visibility("default"))) void kolo_hps_problem_##name( \
      ::kolo::hps::HpProblem& problem) {                                          \
    problem = kolo_hps_make_##name();                                             \
  }                                                                               \
  KOLO_SDK_EXPORT("problem", name, kolo_hps_problem_##name)                       \
  static ::kolo::hps::HpProblem kolo_hps_make_##name()

/// The body evaluates `job` and returns what a RunResult can be made of.
#define KOLO_HPS_RUN(name)                                                      \
  static ::kolo::hps::RunResult kolo_hps_call_##name(::kolo::hps::RunningJob&); \
  extern "C" __attribute__((visibility("default"))) void kolo_hps_run_##name(   \
      ::kolo::hps::RunningJob& job, ::kolo::hps::RunResult& result) {           \
    result = kolo_hps_call_##name(job);                                         \
  }                                                                             \
  KOLO_SDK_EXPORT("run", name, kolo_hps_run_##name)                             \
  static ::kolo::hps::RunResult kolo_hps_call_##name([[maybe_unused]] ::kolo::hps::RunningJob& job)
