// A small transformer learns to continue a text, symbol by symbol.
//
//   kolo run -np 2 build/release/bin/kolo_text_transformer                     sums like 17+5=22
//   kolo run -np 2 build/release/bin/kolo_text_transformer --text README.md    any text
//
// Options: --text FILE, --steps N (120), --batch N (8 a rank). Rank 0 prints the loss in bits a
// symbol, which begins at about 6.6 (nothing is known), and at the end a sample of what was
// learned. The exit status is 1 when it has not come below 4.
#include <kolo/torch.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <random>
#include <sstream>
#include <string>

#include "models.h"
#include "options.h"

namespace {

constexpr int64_t kSymbols = 96;  // printable ASCII, and the end of a line

int64_t symbol_of(char c) { return c >= ' ' && c <= '~' ? c - ' ' : kSymbols - 1; }
char char_of(int64_t symbol) {
  return symbol == kSymbols - 1 ? '\n' : static_cast<char>(symbol + ' ');
}

std::string made_up_text() {
  std::mt19937 random(7);
  std::ostringstream text;
  for (int line = 0; line < 4000; ++line) {
    const unsigned a = random() % 50, b = random() % 50;
    text << a << '+' << b << '=' << a + b << '\n';
  }
  return text.str();
}

torch::Tensor read_text(const std::string& path) {
  std::string text;
  if (path.empty()) {
    text = made_up_text();
  } else {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::stringstream content;
    content << file.rdbuf();
    text = content.str();
  }
  std::vector<int64_t> symbols;
  for (char c : text) symbols.push_back(symbol_of(c));
  return torch::tensor(symbols, torch::kLong);
}

std::string beginning(const torch::Tensor& text) {
  std::string first;
  for (int64_t i = 0; i < std::min<int64_t>(text.numel(), 20); ++i)
    first += char_of(text[i].item<int64_t>());
  return first;
}

std::string continuation(models::Transformer& net, std::string text, int length) {
  torch::NoGradGuard no_grad;
  for (int i = 0; i < length; ++i) {
    const std::string end = text.substr(text.size() - std::min<std::size_t>(text.size(), 64));
    std::vector<int64_t> symbols;
    for (char c : end) symbols.push_back(symbol_of(c));
    torch::Tensor scores = net->forward(torch::tensor(symbols, torch::kLong).unsqueeze(0));
    text += char_of(scores[0][-1].argmax().item<int64_t>());
  }
  return text;
}

int run(int argc, char** argv) {
  const int steps = options::number(argc, argv, "--steps", 120);
  const auto batch = static_cast<std::size_t>(options::number(argc, argv, "--batch", 8));
  torch::manual_seed(1);
  const torch::Tensor text = read_text(options::text(argc, argv, "--text", ""));
  const models::TransformerShape shape{
      .symbols = kSymbols, .width = 64, .heads = 4, .layers = 2, .context = 64};
  // Every place where a window of the text can begin is a sample.
  kolo::DistributedSampler places(static_cast<std::size_t>(text.numel() - shape.context - 1));

  models::Transformer net(shape);
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(3e-3));
  kolo::DistributedOptimizer optimizer(adam, net->named_parameters());
  kolo::broadcast_parameters(*net);

  double bits = 0;
  for (int step = 0; step < steps; ++step) {
    auto samples = places.next(batch);
    if (!samples) {
      places.set_epoch(places.epoch() + 1);
      samples = places.next(batch);
    }
    std::vector<torch::Tensor> windows;
    for (std::size_t place : *samples)
      windows.push_back(text.narrow(0, static_cast<int64_t>(place), shape.context + 1));
    torch::Tensor window = torch::stack(windows);
    optimizer.zero_grad();
    torch::Tensor scores = net->forward(window.slice(1, 0, shape.context));
    torch::Tensor loss = torch::nn::functional::cross_entropy(scores.view({-1, kSymbols}),
                                                              window.slice(1, 1).flatten());
    loss.backward();
    optimizer.step();
    if (step % 20 == 19 || step + 1 == steps) {
      bits = kolo::average_metrics({{"loss", loss.item<double>()}}).at("loss") / std::numbers::ln2;
      if (kolo::rank() == 0) std::printf("step %4d  %.3f bits a symbol\n", step + 1, bits);
    }
  }
  if (kolo::rank() == 0)
    std::printf("---\n%s\n---\n", continuation(net, beginning(text), 60).c_str());
  return bits < 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  options::check(argc, argv,
                 {{"--text FILE", "learn this text (sums like 17+5=22)"},
                  {"--steps N", "train for N steps (120)"},
                  {"--batch N", "pieces of text a step and rank (8)"}});
  try {
    kolo::init();
    const int status = run(argc, argv);
    kolo::shutdown();
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "text_transformer: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
