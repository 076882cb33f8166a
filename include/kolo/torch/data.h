// Data sets that fit into memory, and the files they come from.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kolo {

struct Batch {
  torch::Tensor inputs, targets;
};

/// Inputs and what to answer to them; the first dimension counts the samples. Copies share memory.
struct Dataset {
  torch::Tensor inputs, targets;

  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(inputs.defined() ? inputs.size(0) : 0);
  }
  /// The samples with these numbers, as from a sampler's next(). Throws invalid_argument when one
  /// is out of range.
  [[nodiscard]] Batch batch(std::span<const std::size_t> samples) const;
  /// Samples first … first + count - 1, in the same memory.
  [[nodiscard]] Batch slice(std::size_t first, std::size_t count) const;
  /// The first `count` samples; all if there are fewer.
  [[nodiscard]] Dataset head(std::size_t count) const;
};

enum class Split { train, test };

/// 1,797 handwritten digits of 8x8 pixels (data/README.md says where they come from): inputs n x
/// 64, float32 in 0…1, targets int64. Every fifth digit is for testing: 1,438 and 359 samples. They
/// are part of the library; no file is read.
[[nodiscard]] Dataset load_digits(Split split);

/// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): 60,000 and 10,000 images of 28x28 pixels; inputs
/// n x 1 x 28 x 28, float32 with mean 0 and deviation 1, targets int64 0…9. Reads the four files
/// that Debian's package dataset-fashion-mnist installs, or their like in `directory` (then of any
/// set of the family, MNIST itself for one). Throws not_found, corruption.
[[nodiscard]] Dataset load_fashion_mnist(
    Split split, const std::filesystem::path& directory = "/usr/share/datasets/fashion-mnist");

/// An array in the format of the MNIST family, also gzipped; keeps its type and shape. Throws
/// not_found, io, and corruption for a file that is truncated, too long or something else.
[[nodiscard]] torch::Tensor read_idx(const std::filesystem::path& path);

struct CsvOptions {
  char separator = ',';
  bool header = false;  ///< the first line names the columns
};
struct CsvTable {
  std::vector<std::string> names;  ///< empty without a header
  torch::Tensor values;            ///< rows x columns, float64
};
/// A table of numbers, also gzipped. Errors name line and column (corruption).
[[nodiscard]] CsvTable read_csv(const std::filesystem::path& path, CsvOptions options = {});

}  // namespace kolo
