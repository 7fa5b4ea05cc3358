#include "argosy/engine/attention.h"

#include <ATen/Functions.h>
#include <torch/version.h>

#include "argosy/base/check.h"
#include "argosy/engine/version.h"

namespace argosy::engine {

#if ARGOSY_TORCH_AT_LEAST(2, 0)

bool has_fused_attention() {
  return true;
}

at::Tensor fused_causal_attention(const at::Tensor& queries,
                                  const at::Tensor& keys,
                                  const at::Tensor& values,
                                  double dropout) {
  return at::scaled_dot_product_attention(
      queries, keys, values, /*attn_mask=*/{}, dropout, /*is_causal=*/true);
}

#else

bool has_fused_attention() {
  return false;
}

at::Tensor fused_causal_attention(const at::Tensor& /*queries*/,
                                  const at::Tensor& /*keys*/,
                                  const at::Tensor& /*values*/,
                                  double /*dropout*/) {
  throw UsageError(
      "engine.fused_causal_attention",
      "libtorch " + torch_version() + " has no fused attention: expected 2.0 or newer");
}

#endif

}  // namespace argosy::engine
