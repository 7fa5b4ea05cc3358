#include "argosy/transport/reduce.h"

#include "argosy/base/check.h"
#include "argosy/transport/float16.h"
#include "argosy/transport/reduce_dispatch.h"

namespace argosy::transport {
namespace {

struct InstructionSet {
  const char* name;
  Kernel (*select)(DType, ReduceOp);
};

InstructionSet best_instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0) {
    return {"avx512", avx512::select};
  }
  if (__builtin_cpu_supports("avx2") != 0) {
    return {"avx2", avx2::select};
  }
#endif
  return {"baseline", baseline::select};
}

const InstructionSet& instruction_set() {
  static const InstructionSet chosen = best_instruction_set();
  return chosen;
}

}  // namespace

void reduce(const Terms& terms, void* destination, int64_t count, DType dtype, ReduceOp op) {
  ARGOSY_CHECK(terms.count > 0, "transport.reduce", "expected at least one term");
  ARGOSY_CHECK(is_defined(op, dtype),
               "transport.reduce",
               "{} is not defined for {}",
               to_string(op),
               to_string(dtype));
  instruction_set().select(dtype, op)(terms, destination, count);
}

float f16_to_f32(uint16_t bits) {
  return f16_value(bits);
}
uint16_t f32_to_f16(float value) {
  return f16_bits(value);
}
float bf16_to_f32(uint16_t bits) {
  return bf16_value(bits);
}
uint16_t f32_to_bf16(float value) {
  return bf16_bits(value);
}

const char* reduce_instruction_set() {
  return instruction_set().name;
}

}  // namespace argosy::transport
