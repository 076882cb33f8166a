// The examples of the pages, in the surroundings that their texts describe. They are compiled and
// not run: doc_examples.py puts each block in the place of its line.
#include <kolo/hps.h>
#include <kolo/kolo.h>
#include <kolo/search.h>
#include <kolo/tune.h>

#include <cmath>
#include <cstdio>
#include <iostream>

namespace readme {
//@ README.md 1
}  // namespace readme

namespace engine_page {
void example(float& loss) {
  //@ docs/engine.md 1
}
}  // namespace engine_page

namespace errors_page {
void train();
void save_checkpoint();
int example() {
  //@ docs/errors.md 1
  return 0;
}
}  // namespace errors_page

namespace hps_page {
double train(double lr, std::int64_t layers);
//@ docs/hps.md 1
}  // namespace hps_page

namespace elastic_page {
void train_one_step(std::vector<double>& weights);
void program() {
  //@ docs/elastic-runs.md 1
}
namespace tune = kolo::tune;
void moving_workers(const tune::Runnable& train) {
  //@ docs/elastic.md 3
}
void own_allocation(tune::Options& options) {
  //@ docs/elastic.md 4
}
double train_one_epoch(std::vector<double>& weights);
void trial(kolo::elastic::State& state, std::vector<double>& weights, int epoch) {
  //@ docs/elastic.md 5
}
}  // namespace elastic_page

namespace rings_tutorial {
namespace tune = kolo::tune;
void training_function(const tune::Config& config);
void grid() {
  //@ docs/tutorials/2-rings-as-trials.md 1
}
}  // namespace rings_tutorial

namespace search_page {
using namespace kolo::search;
void example(double accuracy, TrialId id, const Value& config, double epoch, kolo::Random& random) {
  //@ docs/search.md 1
  //@ docs/search.md 2
  //@ docs/search.md 3
  static_cast<void>(decision);
  static_cast<void>(space->config(*point, random));
}
void own_scheduler(kolo::tune::Options& options) {
  //@ docs/search.md 4
}
}  // namespace search_page

namespace tune_page {
struct Model {
  explicit Model(double rate);
};
//@ docs/tune.md 1
double train(double rate);
//@ docs/tune.md 2
void on_gpus() {
  //@ docs/tune.md 3
}
void searches() {
  //@ docs/tune.md 4
}
double alpha(const kolo::search::ConfigView& config) { return std::pow(100 * config.random(), 2); }
void domains() {
  tune::Options options{
      //@ docs/tune.md 5
  };
}
void populations() {
  tune::Options options{
      //@ docs/tune.md 6
  };
}
void results(const tune::Runnable& trainable, const tune::SearchAlg& algo) {
  //@ docs/tune.md 7
}
}  // namespace tune_page
