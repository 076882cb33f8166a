// Conversion between the element types of kolo and of libtorch.
#pragma once

#include <torch/torch.h>

#include "base/errors.h"
#include "kolo/types.h"

namespace kolo::train {

inline DataType data_type(torch::ScalarType type) {
  switch (type) {
    case torch::kBool: return DataType::boolean;
    case torch::kUInt8: return DataType::uint8;
    case torch::kInt8: return DataType::int8;
    case torch::kInt16: return DataType::int16;
    case torch::kInt32: return DataType::int32;
    case torch::kInt64: return DataType::int64;
    case torch::kFloat16: return DataType::float16;
    case torch::kBFloat16: return DataType::bfloat16;
    case torch::kFloat32: return DataType::float32;
    case torch::kFloat64: return DataType::float64;
    default: break;
  }
  throw_error(ErrorCode::unsupported, "tensors of type {} cannot be sent between ranks",
              c10::toString(type));
}

inline torch::ScalarType scalar_type(DataType type) {
  switch (type) {
    case DataType::boolean: return torch::kBool;
    case DataType::uint8: return torch::kUInt8;
    case DataType::int8: return torch::kInt8;
    case DataType::int16: return torch::kInt16;
    case DataType::int32: return torch::kInt32;
    case DataType::int64: return torch::kInt64;
    case DataType::float16: return torch::kFloat16;
    case DataType::bfloat16: return torch::kBFloat16;
    case DataType::float32: return torch::kFloat32;
    case DataType::float64: break;
  }
  return torch::kFloat64;
}

}  // namespace kolo::train
