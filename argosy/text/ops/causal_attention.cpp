// N sequences, T tokens of queries, L of keys; H heads of queries, K of keys, G = H / K of queries
// for each of keys; D values of a head.
#include "argosy/text/ops/causal_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/engine/attention.h"
#include "argosy/engine/autocast.h"
#include "argosy/text/ops/attention_kernels.h"
#include "argosy/text/ops/fused.h"

namespace argosy::text::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Queries of a block. Smaller blocks compute fewer scores that no query sees; larger ones are
/// faster products. bf16: its products cost so little that a call counts.
constexpr int64_t kQueriesF32 = 64;
constexpr int64_t kQueriesBf16 = 256;

/// The heads of one sequence as views [H, T, D] of [T, (H + 2K) D].
struct SequenceHeads {
  at::Tensor queries{};
  at::Tensor keys{};    // [K, T, D]
  at::Tensor values{};  // [K, T, D]
};

SequenceHeads heads_of(const at::Tensor& qkv, int64_t sequence, const HeadShape& shape) {
  const at::Tensor all =
      qkv.select(0, sequence)
          .view({qkv.size(1), shape.heads + 2 * shape.kv_heads, shape.head_width})
          .transpose(0, 1);
  return {all.narrow(0, 0, shape.heads),
          all.narrow(0, shape.heads, shape.kv_heads),
          all.narrow(0, shape.heads + shape.kv_heads, shape.kv_heads)};
}

/// Keys or values for each head of queries.
at::Tensor repeated(const at::Tensor& heads, const HeadShape& shape) {
  return shape.heads == shape.kv_heads ? heads
                                       : heads.repeat_interleave(shape.heads / shape.kv_heads, 0);
}

/// The rows of one sequence as [H, T, D].
at::Tensor rows_of(const at::Tensor& rows, int64_t sequence, const HeadShape& shape) {
  return rows.select(0, sequence)
      .view({rows.size(1), shape.heads, shape.head_width})
      .transpose(0, 1);
}

/// A block of queries and the keys that they see.
struct Block {
  int64_t first = 0;
  int64_t queries = 0;
  [[nodiscard]] int64_t keys() const { return first + queries; }
};

/// For numbers of `item` bytes.
std::vector<Block> blocks_of(int64_t tokens, int64_t item) {
  const int64_t most = item == sizeof(float) ? kQueriesF32 : kQueriesBf16;
  std::vector<Block> blocks;
  for (int64_t first = 0; first < tokens; first += most) {
    blocks.push_back({first, std::min(most, tokens - first)});
  }
  return blocks;
}

std::vector<Block> blocks_of(const at::Tensor& qkv) {
  return blocks_of(qkv.size(1), static_cast<int64_t>(qkv.element_size()));
}

/// Scores of a head that are in memory at a time.
int64_t most_scores(const std::vector<Block>& blocks) {
  int64_t most = 0;
  for (const Block& block : blocks) {
    most = std::max(most, block.queries * block.keys());
  }
  return most;
}

float scale_of(const HeadShape& shape) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_width)));
}

/// Memory for the scores of one block of all heads.
class Scores final {
 public:
  Scores(const at::Tensor& qkv, const HeadShape& shape)
      : heads_(shape.heads),
        flat_(at::empty({shape.heads * most_scores(blocks_of(qkv))}, qkv.options())) {}

  [[nodiscard]] at::Tensor of(const Block& block) const {
    return flat_.narrow(0, 0, heads_ * block.queries * block.keys())
        .view({heads_, block.queries, block.keys()});
  }

 private:
  int64_t heads_;
  at::Tensor flat_;
};

/// Calls body(head) for all heads, in parallel.
template <typename Body>
void for_heads(int64_t heads, const Body& body) {
  at::parallel_for(0, heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      body(head);
    }
  });
}

kernels::ScoreShape shape_of(const Block& block, const HeadShape& shape) {
  return {block.queries, block.keys(), block.first, scale_of(shape)};
}

/// a b, into `out` or added to it.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
  at::Tensor into = out;
  if (adds) {
    into.baddbmm_(a, b);
  } else {
    at::bmm_out(into, a, b);
  }
}

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& qkv,
                            const HeadShape& shape) {
    const engine::Autocast off({.enabled = false});  // products are of qkv's type anyway
    const int64_t sequences = qkv.size(0), tokens = qkv.size(1);
    at::Tensor out = at::empty({sequences, tokens, shape.heads * shape.head_width}, qkv.options());
    const at::Tensor log_sums =
        at::empty({sequences, shape.heads, tokens}, qkv.options().dtype(at::kFloat));
    const Scores scores(qkv, shape);
    for (int64_t n = 0; n < sequences; ++n) {
      const SequenceHeads heads = heads_of(qkv, n, shape);
      const at::Tensor keys = repeated(heads.keys, shape).transpose(1, 2);
      const at::Tensor values = repeated(heads.values, shape);
      const at::Tensor result = rows_of(out, n, shape);
      for (const Block& block : blocks_of(qkv)) {
        const at::Tensor weights = scores.of(block);
        multiply(weights,
                 heads.queries.narrow(1, block.first, block.queries),
                 keys.narrow(2, 0, block.keys()),
                 false);
        for_heads(shape.heads, [&](int64_t head) {
          kernels::causal_softmax(
              target_of(weights, head * block.queries * block.keys()),
              shape_of(block, shape),
              log_sums.data_ptr<float>() + (n * shape.heads + head) * tokens + block.first);
        });
        multiply(result.narrow(1, block.first, block.queries),
                 weights,
                 values.narrow(1, 0, block.keys()),
                 false);
      }
    }
    context->save_for_backward({qkv, out, log_sums});
    context->saved_data["shape"] =
        std::vector<int64_t>{shape.heads, shape.kv_heads, shape.head_width};
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("causal_attention");
    const engine::Autocast off({.enabled = false});
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const std::vector<int64_t> numbers = context->saved_data["shape"].toIntVector();
    const HeadShape shape{numbers[0], numbers[1], numbers[2]};
    const at::Tensor of_out = gradients[0].contiguous();
    const int64_t tokens = qkv.size(1);
    at::Tensor products = at::empty({qkv.size(0), tokens, shape.heads}, saved[2].options());
    for_rows(qkv.size(0) * tokens, of_out.size(2), [&](int64_t begin, int64_t end) {
      kernels::head_products(source_of(saved[1], begin * of_out.size(2)),
                             source_of(of_out, begin * of_out.size(2)),
                             end - begin,
                             shape.heads,
                             shape.head_width,
                             products.data_ptr<float>() + begin * shape.heads);
    });
    products = products.transpose(1, 2).contiguous();  // [N, H, T]
    at::Tensor of_qkv = at::empty_like(qkv);
    const Scores weights(qkv, shape), changes(qkv, shape);
    for (int64_t n = 0; n < qkv.size(0); ++n) {
      through_sequence(
          {heads_of(qkv, n, shape), heads_of(of_qkv, n, shape), rows_of(of_out, n, shape)},
          shape,
          saved[2].data_ptr<float>() + n * shape.heads * tokens,
          products.data_ptr<float>() + n * shape.heads * tokens,
          blocks_of(qkv),
          weights,
          changes);
    }
    return {of_qkv, at::Tensor()};
  }

 private:
  struct Sequence {
    SequenceHeads heads{};
    SequenceHeads gradients{};  // to be written
    at::Tensor of_out{};
  };

  static void through_sequence(const Sequence& sequence,
                               const HeadShape& shape,
                               const float* log_sums,
                               const float* products,
                               const std::vector<Block>& blocks,
                               const Scores& scores,
                               const Scores& changes) {
    const SequenceHeads& heads = sequence.heads;
    const int64_t tokens = heads.queries.size(1);
    const bool grouped = shape.heads != shape.kv_heads;
    const at::Tensor keys = repeated(heads.keys, shape);
    const at::Tensor values = repeated(heads.values, shape);
    const at::Tensor of_keys = grouped ? at::empty_like(keys) : sequence.gradients.keys;
    const at::Tensor of_values = grouped ? at::empty_like(values) : sequence.gradients.values;
    // From the last block on: it sees all keys and writes what the others add to.
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      const bool adds = block != blocks.rbegin();
      const int64_t seen = block->keys();
      const at::Tensor queries = heads.queries.narrow(1, block->first, block->queries);
      const at::Tensor of_out = sequence.of_out.narrow(1, block->first, block->queries);
      const at::Tensor weights = scores.of(*block), change = changes.of(*block);
      multiply(weights, queries, keys.narrow(1, 0, seen).transpose(1, 2), false);
      multiply(change, of_out, values.narrow(1, 0, seen).transpose(1, 2), false);
      for_heads(shape.heads, [&](int64_t head) {
        const int64_t at = head * block->queries * seen;
        kernels::causal_softmax_gradient(target_of(weights, at),
                                         target_of(change, at),
                                         shape_of(*block, shape),
                                         log_sums + head * tokens + block->first,
                                         products + head * tokens + block->first);
      });
      multiply(of_values.narrow(1, 0, seen), weights.transpose(1, 2), of_out, adds);
      multiply(of_keys.narrow(1, 0, seen), change.transpose(1, 2), queries, adds);
      multiply(sequence.gradients.queries.narrow(1, block->first, block->queries),
               change,
               keys.narrow(1, 0, seen),
               false);
    }
    if (grouped) {
      const auto sum_of_group = [&](const at::Tensor& all) {
        return all.unflatten(0, {shape.kv_heads, shape.heads / shape.kv_heads}).sum(1);
      };
      at::Tensor(sequence.gradients.keys).copy_(sum_of_group(of_keys));
      at::Tensor(sequence.gradients.values).copy_(sum_of_group(of_values));
    }
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& queries,
                            const at::Tensor& keys,
                            const at::Tensor& values,
                            double dropout) {
  const int64_t sequences = queries.size(0), heads = queries.size(1), tokens = queries.size(2);
  const int64_t kv_heads = keys.size(1), length = keys.size(2), head_width = queries.size(3);
  const int64_t group = heads / kv_heads;
  if (engine::has_fused_attention() && tokens == length) {
    const auto each = [&](const at::Tensor& x) {
      return group == 1 ? x : x.repeat_interleave(group, 1);
    };
    return engine::fused_causal_attention(queries, each(keys), each(values), dropout);
  }
  const at::Tensor q_nkgtd = (queries / std::sqrt(static_cast<double>(head_width)))
                                 .reshape({sequences, kv_heads, group * tokens, head_width});
  at::Tensor scores = at::matmul(q_nkgtd, keys.transpose(-1, -2))
                          .view({sequences, kv_heads, group, tokens, length});
  if (tokens > 1) {
    const at::Tensor later =
        at::ones({tokens, length}, scores.options().dtype(at::kBool)).triu(length - tokens + 1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  at::Tensor weights = at::softmax(scores, -1);
  if (dropout > 0) {
    weights = at::dropout(weights, dropout, /*train=*/true);
  }
  return at::matmul(weights.view({sequences, kv_heads, group * tokens, length}), values)
      .view({sequences, heads, tokens, head_width});
}

at::Tensor causal_attention(const at::Tensor& qkv, const HeadShape& shape, double dropout) {
  if (dropout == 0 && can_fuse(qkv)) {
    return Attention::apply(qkv, shape);
  }
  const std::vector<at::Tensor> parts =
      qkv.unflatten(-1, {shape.heads + 2 * shape.kv_heads, shape.head_width})
          .transpose(1, 2)
          .split_with_sizes({shape.heads, shape.kv_heads, shape.kv_heads}, 1);
  return causal_attention(parts[0], parts[1], parts[2], dropout).transpose(1, 2).flatten(2);
}

int64_t bytes_of_scores(int64_t heads, int64_t tokens, int64_t item) {
  return heads * most_scores(blocks_of(tokens, item)) * item;
}

}  // namespace argosy::text::ops
