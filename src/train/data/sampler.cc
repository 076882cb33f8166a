// The place in an epoch is one number, the samples visited by all ranks together. From it, seed and
// epoch follow the samples that are left, which are dealt out to the ranks again; so the number of
// ranks may change in the middle of an epoch.
#include "kolo/torch/sampler.h"

#include <algorithm>

#include "base/errors.h"
#include "base/json.h"
#include "kolo/context.h"
#include "train/data/epoch_order.h"

namespace kolo {
namespace {

constexpr const char* kWhere = "a sampler's state";

struct Place {
  std::size_t samples = 0, visited = 0;
  std::uint64_t epoch = 0, seed = 0;
};

std::string to_json(const Place& place) {
  return json_text(Json{{"version", 1},
                        {"samples", place.samples},
                        {"seed", place.seed},
                        {"epoch", place.epoch},
                        {"visited", place.visited}});
}

Place to_place(const std::string& text) {
  const Json json = parse_json(text, kWhere);
  if (auto version = json_field<int>(json, "version", kWhere); version != 1)
    throw_error(ErrorCode::unsupported, "{}: version {} is not known", kWhere, version);
  return {json_field<std::size_t>(json, "samples", kWhere),
          json_field<std::size_t>(json, "visited", kWhere),
          json_field<std::uint64_t>(json, "epoch", kWhere),
          json_field<std::uint64_t>(json, "seed", kWhere)};
}

SamplerOptions with_ranks(SamplerOptions options) {
  if (options.rank < 0) {
    options.rank = is_initialized() ? kolo::rank() : 0;
    options.ranks = is_initialized() ? kolo::size() : 1;
  }
  if (options.rank >= options.ranks)
    throw_error(ErrorCode::invalid_argument, "sampler: rank {} does not exist among {} ranks",
                options.rank, options.ranks);
  return options;
}

}  // namespace

DistributedSampler::DistributedSampler(std::size_t samples, SamplerOptions options)
    : options_(with_ranks(options)), samples_(samples) {
  partition(0);
}

void DistributedSampler::partition(std::size_t visited) {
  partitioned_at_ = visited;
  position_ = 0;
  mine_ = train::samples_of_rank({samples_, options_.shuffle, options_.seed, options_.tail}, epoch_,
                                 visited, options_.rank, options_.ranks);
}

void DistributedSampler::set_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  partition(0);
}

void DistributedSampler::skip(std::size_t samples) {
  position_ += std::min(samples, mine_.size() - position_);
}

torch::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  if (batch_size == 0)
    throw_error(ErrorCode::invalid_argument,
                "sampler: the batch size is 0, but must be at least 1");
  const std::size_t count = std::min(batch_size, mine_.size() - position_);
  if (count == 0 || (count < batch_size && options_.drop_partial_batch)) return torch::nullopt;
  auto first = mine_.begin() + static_cast<std::ptrdiff_t>(position_);
  position_ += count;
  return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::reset(torch::optional<std::size_t> samples) {
  if (samples) samples_ = *samples;
  partition(0);
}

std::size_t DistributedSampler::visited() const noexcept {
  return std::min(samples_, partitioned_at_ + position_ * static_cast<std::size_t>(options_.ranks));
}

std::string DistributedSampler::state() const {
  return to_json({samples_, visited(), epoch_, options_.seed});
}

void DistributedSampler::load_state(const std::string& json) {
  const Place place = to_place(json);
  if (place.samples != samples_)
    throw_error(ErrorCode::invalid_argument, "{} belongs to {} samples, but this sampler has {}",
                kWhere, place.samples, samples_);
  epoch_ = place.epoch;
  options_.seed = place.seed;
  partition(place.visited);
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("state", torch::IValue(state()));
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  torch::IValue state;
  archive.read("state", state);
  load_state(state.toStringRef());
}

ElasticSampler::ElasticSampler(std::size_t samples, SamplerOptions options)
    : DistributedSampler(samples, options) {}

void ElasticSampler::record_batch(std::size_t batch_size) {
  recorded_ += batch_size * static_cast<std::size_t>(options_.ranks);
}

void ElasticSampler::repartition(int rank, int ranks) {
  if (rank < 0 || rank >= ranks)
    throw_error(ErrorCode::invalid_argument, "repartition: rank {} does not exist among {} ranks",
                rank, ranks);
  options_.rank = rank;
  options_.ranks = ranks;
  partition(recorded_);
}

void ElasticSampler::set_epoch(std::uint64_t epoch) {
  recorded_ = 0;
  DistributedSampler::set_epoch(epoch);
}

std::string ElasticSampler::state() const {
  Place place = to_place(DistributedSampler::state());
  place.visited = std::min(recorded_, place.samples);
  return to_json(place);
}

void ElasticSampler::load_state(const std::string& json) {
  DistributedSampler::load_state(json);
  recorded_ = visited();
}

}  // namespace kolo
