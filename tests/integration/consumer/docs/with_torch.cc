// The examples of the pages that need libtorch; see plain.cc.
#include <kolo/nas.h>
#include <kolo/torch.h>
#include <torch/torch.h>

#include <fstream>

namespace training_page {
struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& inputs);
};
TORCH_MODULE(Net);
constexpr double kRate = 0.01;
struct Data {
  [[nodiscard]] std::size_t size() const;
};
void eight_steps(Net net, const Data& train, double loss) {
  //@ docs/training.md 1
}
void whole_loop(Net net, const kolo::Dataset& train, const kolo::Dataset& test) {
  //@ docs/training.md 2
}
void checkpoints(Net net, kolo::DistributedOptimizer& optimizer, kolo::RateScheduler& rate,
                 kolo::DistributedSampler& sampler, std::int64_t step, double loss) {
  //@ docs/training.md 3
}
}  // namespace training_page

namespace elastic_page {
using training_page::Net;
kolo::Batch batch_of(int virtual_rank, std::size_t step);
torch::Tensor loss_of(const torch::Tensor& outputs, const torch::Tensor& targets);
void loop(Net net, torch::optim::SGD& sgd, std::size_t steps) {
  //@ docs/elastic.md 1
}
void with_trainer(Net net, torch::optim::SGD& sgd, const kolo::Dataset& train,
                  const kolo::Dataset& test) {
  //@ docs/elastic.md 2
}
void networks(Net net, torch::optim::SGD& sgd, std::size_t step) {
  //@ docs/elastic-runs.md 2
}
int elastic_trainer(Net net, torch::optim::SGD& sgd, const kolo::Dataset& train,
                    const kolo::Dataset& test) {
  //@ docs/elastic-runs.md 3
  return 0;
}
void tutorial(Net net, torch::optim::SGD& sgd, std::size_t step) {
  //@ docs/tutorials/5-ranks-that-come-and-go.md 1
}
}  // namespace elastic_page

namespace nas_page {
kolo::nas::DataSplit load_data();
//@ docs/nas.md 1
}  // namespace nas_page

namespace spaces_page {
void build() {
  //@ docs/nas-spaces.md 1
}
}  // namespace spaces_page

namespace operations_page {
using namespace kolo::nas;
using kolo::search::Value;
//@ docs/nas-spaces.md 2
void add(KSearchSpace& space) {
  //@ docs/nas-spaces.md 3
}
void draw(const KSearchSpace& space, const std::vector<std::int64_t>& arch_seq) {
  //@ docs/nas-spaces.md 4
}
}  // namespace operations_page
