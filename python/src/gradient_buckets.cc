#include "gradient_buckets.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>

#include "base/env.h"
#include "base/errors.h"
#include "blocking.h"
#include "errors.h"
#include "module.h"
#include "runtime.h"

namespace kolo::python {
namespace {

namespace py = pybind11;

constexpr long long kBucketBytes = 4LL << 20;

}  // namespace

GradientBuckets::GradientBuckets(std::vector<runtime::ParameterInfo> parameters, Options options)
    : parameters_(std::move(parameters)),
      options_(options),
      places_(parameters_.size()),
      used_(parameters_.size()) {
  if (options_.bucket_bytes == 0)
    options_.bucket_bytes = static_cast<std::size_t>(
        std::max<long long>(1, setting_integer("BUCKET_BYTES").value_or(kBucketBytes)));
  pipeline_ =
      std::make_unique<runtime::StepPipeline>(*running_engine(), options_.process_set, *this);
}

GradientBuckets::~GradientBuckets() = default;

void GradientBuckets::arrived(std::size_t parameter, const void* data) {
  Place& place = places_.at(parameter);
  if (!has_plan()) {
    if (!place.has_arrived) order_.push_back(static_cast<std::uint32_t>(parameter));
    place.has_arrived = true;
    return;
  }
  if (place.has_arrived || parameters_[parameter].is_sparse) return;
  put(parameter, data == nullptr ? place.data : data);
  place.has_arrived = true;
  if (--missing_[place.bucket] == 0)
    pipeline_->mark_ready(place.bucket);
  else
    pipeline_->progress();
}

void GradientBuckets::put(std::size_t parameter, const void* data) {
  const Place& place = places_[parameter];
  const bool is_zero = data == nullptr || brings_zeros_;
  used_[parameter] = is_zero ? 0 : 1;
  if (is_zero)
    std::memset(place.data, 0, place.bytes);
  else if (data != place.data)
    std::copy_n(static_cast<const std::byte*>(data), place.bytes, place.data);
}

void GradientBuckets::set_first(std::vector<const void*> gradients,
                                const std::vector<bool>& is_sparse) {
  if (gradients.size() != size() || is_sparse.size() != size())
    throw_error(ErrorCode::invalid_argument, "there are {} parameters and {} gradients", size(),
                gradients.size());
  first_ = std::move(gradients);
  for (std::size_t i = 0; i < size(); ++i) parameters_[i].is_sparse = is_sparse[i];
}

void GradientBuckets::finish() {
  brings_zeros_ = false;
  if (has_plan())
    for (std::size_t i = 0; i < size(); ++i)
      if (!parameters_[i].is_sparse && !places_[i].has_arrived) put(i, nullptr);
  try {
    pipeline_->finish();
  } catch (...) {
    begin_step();
    throw;
  }
  begin_step();
}

void GradientBuckets::begin_step() {
  for (Place& place : places_) place.has_arrived = false;
  for (std::size_t b = 0; b < memories_.size(); ++b) missing_[b] = plan_.buckets[b].members.size();
}

std::pair<std::size_t, std::size_t> GradientBuckets::place_of(std::size_t parameter) const {
  const Place& place = places_.at(parameter);
  return {place.bucket, static_cast<std::size_t>(place.data - memories_.at(place.bucket).data)};
}

// --- the plan ------------------------------------------------------------------------------------

// One that fails, because there is no memory for it, leaves none.
runtime::StepPlan GradientBuckets::plan(Communicator& communicator) {
  try {
    return make_plan(communicator);
  } catch (...) {
    plan_ = {};
    memories_.clear();
    missing_.clear();
    first_.clear();
    throw;
  }
}

runtime::StepPlan GradientBuckets::make_plan(Communicator& communicator) {
  runtime::check_same_parameters(communicator, parameters_);
  std::vector<std::uint8_t> sparse(size());
  for (std::size_t i = 0; i < size(); ++i) sparse[i] = parameters_[i].is_sparse ? 1 : 0;
  communicator.allreduce(std::span(sparse), ReduceOp::max);
  for (std::size_t i = 0; i < size(); ++i) parameters_[i].is_sparse = sparse[i] != 0;

  order_ = runtime::agree_on_order(communicator, size(), std::move(order_));
  plan_ = runtime::make_bucket_plan(parameters_, order_, {options_.bucket_bytes, 0});
  runtime::StepPlan steps{plan_.fingerprint};
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b) {
    const auto& bucket = plan_.buckets[b];
    memories_.push_back(Memory::shared(communicator, bucket.count * size_of(bucket.type)));
    missing_.push_back(bucket.members.size());
    const Memory& memory = memories_.back();
    for (const auto& [index, offset] : bucket.members)
      places_[index] = {b, memory.data + offset * size_of(bucket.type),
                        parameters_[index].count * size_of(bucket.type), false};
    steps.items.push_back(
        {fmt::format("bucket {} ({} …)", b, parameters_[bucket.members.front().parameter].name),
         memory.size,
         runtime::StepAllreduce{memory.data, bucket.count, bucket.type, options_.op,
                                options_.scaling}});
  }
  steps.items.push_back({"end of step", used_.size()});
  for (std::size_t i = 0; i < size(); ++i)
    if (!parameters_[i].is_sparse) put(i, first_.empty() ? nullptr : first_[i]);
  first_.clear();
  return steps;
}

void GradientBuckets::run(Communicator& communicator, std::size_t item) {
  if (item < memories_.size()) {
    const auto& bucket = plan_.buckets[item];
    communicator.allreduce(memories_[item].data, memories_[item].data, bucket.count, bucket.type,
                           options_.op, options_.scaling);
    return;
  }
  if (brings_zeros_) std::fill(used_.begin(), used_.end(), std::uint8_t{0});
  communicator.allreduce(std::span(used_), ReduceOp::max);
}

bool GradientBuckets::bring_zeros() {
  brings_zeros_ = true;
  for (const Memory& memory : memories_) std::memset(memory.data, 0, memory.size);
  return true;
}

// --- Python --------------------------------------------------------------------------------------

namespace {

using Row = std::tuple<std::string, std::vector<std::int64_t>, int, int, int>;

std::vector<runtime::ParameterInfo> parameter_infos(const std::vector<Row>& rows) {
  std::vector<runtime::ParameterInfo> infos;
  for (const auto& [name, shape, type, optimizer_group, user_group] : rows)
    infos.push_back({name, shape, static_cast<DataType>(type), element_count(shape),
                     optimizer_group, user_group});
  return infos;
}

std::unique_ptr<GradientBuckets> make_buckets(const std::vector<Row>& rows, int op, double prescale,
                                              double postscale, int set, std::size_t bucket_bytes) {
  const Inside inside;
  return as_operation([&] {
    return blocking([&] {
      return std::make_unique<GradientBuckets>(
          parameter_infos(rows),
          GradientBuckets::Options{
              static_cast<ReduceOp>(op), {prescale, postscale}, ProcessSetId{set}, bucket_bytes});
    });
  });
}

const void* address(std::uintptr_t number) { return reinterpret_cast<const void*>(number); }

}  // namespace

void bind_gradient_buckets(py::module_& m) {
  using Self = GradientBuckets;
  py::class_<Self>(m, "GradientBuckets", "Gradients in shared memory, reduced while backward runs.")
      .def(py::init(&make_buckets))
      .def("arrived",
           [](Self& self, std::size_t parameter, std::uintptr_t data) {
             const Inside inside;
             blocking([&] { self.arrived(parameter, address(data)); });
           })
      .def("set_first",
           [](Self& self, const std::vector<std::uintptr_t>& gradients,
              const std::vector<bool>& is_sparse) {
             std::vector<const void*> addresses;
             for (const std::uintptr_t number : gradients) addresses.push_back(address(number));
             self.set_first(std::move(addresses), is_sparse);
           })
      .def("finish",
           [](Self& self) {
             const Inside inside;
             as_operation([&] { blocking([&] { self.finish(); }); });
           })
      .def_property_readonly("has_plan", &Self::has_plan)
      .def("used",
           [](const Self& self) {
             std::vector<bool> used;
             for (std::size_t i = 0; i < self.size(); ++i) used.push_back(self.is_used(i));
             return used;
           })
      .def("is_sparse", &Self::is_sparse)
      .def("buckets", &Self::buckets)
      .def("place_of", &Self::place_of);
}

}  // namespace kolo::python
