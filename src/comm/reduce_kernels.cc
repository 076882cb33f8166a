#include "comm/reduce_kernels.h"

#include <cstring>

#include "base/cpu.h"
#include "base/errors.h"
#include "comm/reduce_kernels_table.h"

namespace kolo::comm {

const ReduceTable& reduce_table(InstructionSet set) {
#ifdef KOLO_X86_KERNELS
  if (set == InstructionSet::avx512) return avx512::kReduceTable;
  if (set == InstructionSet::avx2) return avx2::kReduceTable;
#endif
  (void)set;
  return baseline::kReduceTable;
}

namespace {

const ReduceOps& ops_of(DataType in_type, DataType out_type) {
  static const ReduceTable& table = reduce_table(best_instruction_set());
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
