// Who does what: every rank captures its own random state and shows it to rank 0, which captures
// the rest, writes, and tells the others how it went. Reading goes the other way: rank 0 reads the
// file and shows it to all, so that no other host needs the directory.
#include <torch/torch.h>

#include "base/errors.h"
#include "base/frames.h"
#include "kolo/context.h"
#include "kolo/torch/checkpoint.h"
#include "kolo/torch/state.h"
#include "train/checkpoint/format.h"

namespace kolo {
namespace {

bool is_job(const CollectiveOptions& how) { return how.engine != nullptr || is_initialized(); }

/// Rank 0's `work`, and its outcome on every rank: what it returned, or the error it threw.
template <class Work>
std::string share_outcome(bool in_job, int rank, const CollectiveOptions& how, Work work) {
  ByteWriter outcome;
  if (rank == 0) {
    try {
      const std::string result = work();
      outcome.u32(0).raw(result);
    } catch (const Error& error) {
      outcome.u32(static_cast<std::uint32_t>(error.code())).raw(error.message());
    } catch (const std::exception& error) {  // of libtorch's, or for want of memory
      outcome = ByteWriter();
      outcome.u32(static_cast<std::uint32_t>(ErrorCode::internal))
          .raw("checkpoints: ")
          .raw(error.what());
    }
  }
  const std::string bytes = in_job ? broadcast_object(outcome.bytes(), 0, how) : outcome.bytes();
  ByteReader reader(bytes);
  const std::uint32_t code = reader.u32();
  const std::string rest(reader.raw(bytes.size() - 4));
  if (code != 0) throw Error(static_cast<ErrorCode>(code), rest);
  return rest;
}

/// The state without what a DistributedOptimizer speaks for.
TrainingState rest_of(const TrainingState& state) {
  TrainingState rest = state;
  if (state.distributed != nullptr) rest.optimizer = nullptr;
  return rest;
}

std::string part_of_rank(const char* what, std::size_t rank) { return what + std::to_string(rank); }

constexpr const char* kRandom = "random.";
constexpr const char* kResiduals = "residuals.";

}  // namespace

Checkpointer::Checkpointer(CheckpointOptions options, CollectiveOptions how)
    : how_(std::move(how)) {
  how_.name.clear();
  const bool in_job = is_job(how_);
  if (in_job) {
    Engine& ranks = how_.engine != nullptr ? *how_.engine : engine();
    rank_ = ranks.rank();
    ranks_ = ranks.size();
  }
  share_outcome(in_job, rank_, how_, [&] {
    files_.emplace(std::move(options));
    return std::string();
  });
}

void Checkpointer::save(std::uint64_t step, const TrainingState& state, SaveOptions options) {
  const bool in_job = is_job(how_);
  CheckpointParts parts;
  const auto gather = [&](const char* what, const std::string& mine) {
    const auto all = in_job ? allgather_object(mine, how_) : std::vector<std::string>{mine};
    for (std::size_t r = 0; r < all.size(); ++r) parts[part_of_rank(what, r)] = all[r];
  };
  if (state.random && in_job) {
    TrainingState random_only;
    random_only.random = true;
    gather(kRandom, capture(random_only, rank_).begin()->second);
  }
  if (state.distributed != nullptr) {
    parts["optimizer"] = state.distributed->gather_optimizer_state();
    gather(kResiduals, state.distributed->residuals());
  }
  share_outcome(in_job, rank_, how_, [&] {
    parts.merge(capture(rest_of(state), 0));
    files_->write(step, parts, options.metric);
    return std::string();
  });
}

std::optional<Checkpointer::Resumed> Checkpointer::resume(const TrainingState& state) {
  Resumed resumed;
  const std::string bytes = share_outcome(is_job(how_), rank_, how_, [&] {
    ByteWriter answer;
    auto latest = files_->read_latest();
    answer.u8(latest ? 1 : 0);
    if (!latest) return answer.bytes();
    answer.u32(static_cast<std::uint32_t>(latest->damaged.size()));
    for (const std::string& message : latest->damaged) answer.string(message);
    answer.raw(train::encode_checkpoint({latest->info.step, latest->info.metric, latest->parts}));
    return answer.bytes();
  });
  ByteReader reader(bytes);
  if (reader.u8() == 0) return std::nullopt;
  std::size_t taken = 1 + 4;
  for (std::uint32_t left = reader.u32(); left > 0; --left) {
    resumed.damaged.push_back(reader.string());
    taken += 4 + resumed.damaged.back().size();
  }
  const auto content =
      train::decode_checkpoint(std::string_view(bytes).substr(taken), "the checkpoint of rank 0");
  resumed.step = content.step;
  restore(content.parts, rest_of(state), rank_);
  if (state.distributed != nullptr) {
    const auto optimizer = content.parts.find("optimizer");
    if (optimizer == content.parts.end())
      throw_error(ErrorCode::invalid_argument,
                  "the checkpoint has no part 'optimizer'; it was saved without one");
    state.distributed->load_optimizer_state(optimizer->second);
    std::vector<std::string> residuals;
    for (auto found = content.parts.find(part_of_rank(kResiduals, 0)); found != content.parts.end();
         found = content.parts.find(part_of_rank(kResiduals, residuals.size())))
      residuals.push_back(found->second);
    state.distributed->load_residuals(residuals);
  }
  if (state.random &&
      !content.parts.contains(part_of_rank(kRandom, static_cast<std::size_t>(rank_))))
    torch::manual_seed(content.step * 1'000'003 + static_cast<std::uint64_t>(rank_));
  return resumed;
}

}  // namespace kolo
