// For shared libraries that bring architecture problems of their own:
//
//   #include <kolo/nas/sdk.h>
//
//   KOLO_NAS_PROBLEM(Problem) {
//     kolo::nas::NaProblem problem;
//     problem.load_data(…).search_space("dense_skip_co").loss("mse").metrics({"r2"}).objective("val_r2");
//     return problem;
//   }
//
//   g++ -std=c++20 -shared -fPIC my.cc -o libmy.so   (with the headers of libtorch)
//   kolo nas regevo --problem ./libmy.so:Problem --run alpha --max-evals 100
//
// Nothing of kolo is linked: see kolo/hps/sdk.h, whose rules hold here, too. KOLO_HPS_RUN makes run
// functions for these problems as well: --run ./libmy.so:NAME.
#pragma once

#include "kolo/hps/sdk.h"
#include "kolo/nas/problem.h"
#include "kolo/nas/run.h"

namespace kolo::nas::sdk {

/// Functions of kind "nas_problem".
using MakeProblem = void (*)(NaProblem& problem);

}  // namespace kolo::nas::sdk

// kolo reads this from the file before it loads it (hps/problem/plugin.cc): two versions of
// libtorch in one process crash.
extern "C" {
__attribute__((weak, used, visibility("default"))) extern const char kolo_built_with_libtorch[] =
    "kolo: built with libtorch " TORCH_VERSION;
}

/// The body makes and returns an NaProblem.
#define KOLO_NAS_PROBLEM(name)                                                    \
  static ::kolo::nas::NaProblem kolo_nas_make_##name();                           \
  extern "C" __attribute__((visibility("default"))) void kolo_nas_problem_##name( \
      ::kolo::nas::NaProblem& problem) {                                          \
    problem = kolo_nas_make_##name();                                             \
  }                                                                               \
  KOLO_SDK_EXPORT("nas_problem", name, kolo_nas_problem_##name)                   \
  static ::kolo::nas::NaProblem kolo_nas_make_##name()
