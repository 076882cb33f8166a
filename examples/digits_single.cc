// Learns to read handwritten digits, in one process.
//
//   build/release/bin/kolo_digits_single     prints, among others:  test accuracy 0.98…
//
// digits_distributed.cc is the same program on any number of ranks; `diff` of the two is the
// tutorial (docs/training.md).
#include <kolo/torch.h>

#include <cstdio>
#include <cstdlib>

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x.view({-1, 1, 8, 8})));
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 16, 3).padding(1)};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(16, 16, 3).padding(1)};
  torch::nn::Linear fc1{256, 64}, fc2{64, 10};
};
TORCH_MODULE(Net);

int main() {
  constexpr int kEpochs = 12;
  constexpr int kBatch = 16;
  constexpr double kRate = 0.02;
  torch::manual_seed(1);
  torch::Device device = torch::kCPU;

  const kolo::Dataset train = kolo::load_digits(kolo::Split::train);
  const kolo::Dataset test = kolo::load_digits(kolo::Split::test);

  Net net;
  net->to(device);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(kRate).momentum(0.9));

  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    double loss_sum = 0;
    int steps = 0;
    const torch::Tensor order = torch::randperm(train.inputs.size(0));
    for (const torch::Tensor& samples : order.split(kBatch)) {
      const kolo::Batch batch{train.inputs.index({samples}), train.targets.index({samples})};
      optimizer.zero_grad();
      torch::Tensor output = net->forward(batch.inputs.to(device));
      torch::Tensor loss = torch::nll_loss(output.log_softmax(1), batch.targets.to(device));
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>();
      ++steps;
    }
    std::printf("epoch %2d  loss %.4f\n", epoch + 1, loss_sum / steps);
  }
  torch::save(net, "digits.pt");

  torch::NoGradGuard no_grad;
  torch::Tensor answers = net->forward(test.inputs.to(device)).argmax(1).cpu();
  const double accuracy = answers.eq(test.targets).to(torch::kFloat64).mean().item<double>();
  std::printf("test accuracy %.4f\n", accuracy);
  return accuracy > 0.97 ? EXIT_SUCCESS : EXIT_FAILURE;
}
