#include "comm/reduce_kernels.h"

#ifdef KOLO_X86_KERNELS
#include <cpuid.h>
#endif

#include <cstring>

#include "base/errors.h"
#include "comm/reduce_kernels_table.h"

namespace kolo::comm {
namespace {

#ifdef KOLO_X86_KERNELS
/// Not by __builtin_cpu_supports: Clang 14 does not know the name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

const ReduceTable& pick_table() {
#ifdef KOLO_X86_KERNELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return avx512::kReduceTable;
  if (__builtin_cpu_supports("avx2") && has_f16c()) return avx2::kReduceTable;
#endif
  return baseline::kReduceTable;
}

const ReduceOps& ops_of(DataType in_type, DataType out_type) {
  static const ReduceTable& table = pick_table();
  if (in_type == out_type) return table.same[static_cast<int>(in_type)];
  if (in_type == DataType::float16 && out_type == DataType::float32) return table.half_to_float;
  if (in_type == DataType::bfloat16 && out_type == DataType::float32) return table.brain_to_float;
  if (in_type == DataType::float32 && out_type == DataType::float16) return table.float_to_half;
  if (in_type == DataType::float32 && out_type == DataType::bfloat16) return table.float_to_brain;
  throw_error(ErrorCode::internal, "reduce: no kernel from {} to {}", to_string(in_type),
              to_string(out_type));
}

ReduceLoop loop_of(const ReduceOps& ops, ReduceOp op) {
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum: return ops.sum;
    case ReduceOp::min: return ops.min;
    case ReduceOp::max: return ops.max;
    case ReduceOp::product: return ops.product;
    case ReduceOp::adasum: break;
  }
  throw_error(ErrorCode::internal, "reduce: {} is not a plain reduction", to_string(op));
}

}  // namespace

void reduce(std::span<const void* const> inputs, DataType in_type, std::span<void* const> outputs,
            DataType out_type, std::size_t count, const Reduction& how) {
  KOLO_CHECK(!inputs.empty());
  if (count == 0 || outputs.empty()) return;
  ReduceCall call;
  call.inputs = inputs.data();
  call.input_count = inputs.size();
  call.outputs = outputs.data();
  call.output_count = outputs.size();
  call.count = count;
  call.scaled = how.prescale != 1.0 || how.postscale != 1.0 || how.divisor != 1;
  call.scale = {how.prescale, how.postscale / static_cast<double>(how.divisor), how.postscale,
                how.divisor};
  loop_of(ops_of(in_type, out_type), how.op)(call);
}

void reduce(std::span<const void* const> inputs, std::span<void* const> outputs, std::size_t count,
            const Reduction& how) {
  reduce(inputs, how.type, outputs, how.type, count, how);
}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace kolo::comm
