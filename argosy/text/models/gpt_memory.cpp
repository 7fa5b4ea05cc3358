// R tokens of a step, C values of a token. Names say what a tensor holds, values are its bytes.
#include "argosy/text/models/gpt_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/engine/cpu.h"
#include "argosy/text/ops/causal_attention.h"
#include "argosy/text/ops/token_loss.h"

namespace argosy::text {
namespace {

using engine::PartMemory;
using engine::StepMoment;

constexpr int64_t kF32 = 4;
constexpr int64_t kBf16 = 2;
constexpr int64_t kRowsOfSums = 32;  // whose gradients of a norm's weight are summed together

/// The tensors of a block.
struct BlockTensors {
  BlockTensors(const GptOptions& options, const StepShape& shape) {
    const int64_t rows = shape.sequences * shape.tokens;
    narrow = shape.bf16 || shape.pure_bf16;
    const int64_t item = narrow ? kBf16 : kF32;
    weight_item = shape.pure_bf16 ? kBf16 : kF32;
    const int64_t hidden = options.hidden_or_default();
    const int64_t heads_width =
        (options.heads + 2 * options.kv_heads_or_default()) * options.head_width();
    const int64_t up_width = (options.activation == ActivationKind::kSwiglu ? 2 : 1) * hidden;
    stream = rows * options.width * weight_item;
    normed = out = branch = rows * options.width * item;
    moments = 2 * rows * kF32;
    qkv = rows * heads_width * item;
    log_sums = rows * options.heads * kF32;
    up = rows * up_width * item;
    inner = rows * hidden * item;
    scores = ops::bytes_of_scores(options.heads, shape.tokens, item);
    repeated = options.kv_heads_or_default() == options.heads
                   ? 0
                   : shape.tokens * options.width * item;  // keys or values of a sequence
    sums = (stream / rows * ((rows + kRowsOfSums - 1) / kRowsOfSums)) *
           (options.norm == NormKind::kLayerNorm && options.bias ? 2 : 1);
    for_norm = stream;
    if (shape.pure_bf16) {  // libtorch's operators
      const bool centered = options.norm == NormKind::kLayerNorm;
      const int64_t wide = rows * options.width * kF32;
      for_norm = centered ? stream : 3 * wide;  // RMSNorm's, one by one, in f32
      sums = centered ? 0 : 3 * wide;
    }
    rotates = options.positions == PositionKind::kRotary;
    of_qkv = heads_width * options.width;
    of_out = options.width * options.width;
    of_up = up_width * options.width;
    of_down = options.width * hidden;
    others = options.width * weight_item *
             (options.norm == NormKind::kLayerNorm && options.bias ? 4 : 2);
    biases = options.bias ? (heads_width + 2 * options.width + up_width) * weight_item : 0;
    copies = shape.bf16 ? 2 : 0;
    kept_copies = shape.divided ? 0 : copies;
  }

  /// What a product needs while it is computed, beside its result of so many 16-bit bytes.
  [[nodiscard]] int64_t room_of(int64_t result) const {
    return narrow && engine::bf16_products_need_room() ? result / kBf16 * kF32 : 0;
  }

  [[nodiscard]] int64_t kept() const {
    return for_norm + moments + normed + qkv + out + log_sums + for_norm + moments + normed + up +
           inner + kept_copies * (of_qkv + of_out + of_up + of_down);
  }

  bool narrow;          // products have 16 bits
  int64_t weight_item;  // bytes of a number of a parameter, and of the stream
  int64_t stream, normed, out, branch, moments, qkv, log_sums, up, inner, scores, repeated, sums;
  int64_t for_norm;  // what a norm keeps for its backward
  bool rotates;
  int64_t of_qkv, of_out, of_up, of_down;  // numbers of a matrix
  int64_t others, biases;                  // bytes of the other parameters
  int64_t copies, kept_copies;             // bytes of a number of a 16-bit copy of a matrix
};

/// Moments of a block's forward that keeps what its backward needs.
std::vector<StepMoment> forward_of(const BlockTensors& t) {
  const int64_t attended = t.for_norm + t.moments + t.normed + t.qkv + t.kept_copies * t.of_qkv;
  const int64_t copy_while_multiplied = t.copies - t.kept_copies;
  return {{attended + (t.rotates ? t.qkv : 0)},
          {attended + t.out + t.log_sums + t.scores + 2 * t.repeated},
          {t.kept() - t.inner + t.room_of(t.up)},
          {t.kept() + t.branch + copy_while_multiplied * t.of_down},
          {t.kept() + t.branch + t.stream}};
}

/// The same without a graph, before it is computed again.
std::vector<StepMoment> forward_without_graph(const BlockTensors& t) {
  const int64_t attended = t.stream + t.moments + t.normed + t.qkv;
  const int64_t between = t.stream + t.moments + t.normed + t.stream + t.moments + t.normed;
  return {{attended + (t.rotates ? t.qkv : 0)},
          {attended + t.out + t.log_sums + t.scores + 2 * t.repeated},
          {between + t.up + t.inner + t.branch},
          {between + t.branch + t.stream}};
}

/// Follows a backward through a block, from its last operator on.
class BlockBackward final {
 public:
  explicit BlockBackward(const BlockTensors& tensors) : t_(tensors), kept_(tensors.kept()) {}

  /// `always`: beside everything. Tensors of the gradient that comes in are its.
  std::vector<StepMoment> moments() {
    const int64_t wide = t_.stream;  // the gradient of what goes on beside the branches
    const int64_t narrow = t_.copies > 0 ? t_.branch : 0;  // the branch's, of 16 bits
    matrix(wide + narrow, t_.inner, t_.of_down);
    drop(t_.inner + t_.kept_copies * t_.of_down);
    at(wide + t_.inner + t_.up);  // the activation
    drop(t_.up);
    matrix(wide + t_.up, t_.normed, t_.of_up);
    drop(t_.normed + t_.kept_copies * t_.of_up);
    at(wide + t_.normed + t_.stream + narrow + t_.sums);  // the second norm
    drop(t_.for_norm + t_.moments);
    matrix(wide + narrow, t_.out, t_.of_out);
    drop(t_.kept_copies * t_.of_out);
    at(wide + t_.out + t_.qkv + 2 * t_.log_sums + 2 * t_.scores + 4 * t_.repeated);
    drop(t_.out + t_.log_sums + t_.qkv);
    if (t_.rotates) {
      at(wide + 2 * t_.qkv);
    }
    matrix(wide + t_.qkv, t_.normed, t_.of_qkv);
    drop(t_.normed + t_.kept_copies * t_.of_qkv);
    done_ += t_.others + t_.biases;
    at(wide + t_.normed + t_.stream + t_.sums);  // the first norm
    return std::move(moments_);
  }

 private:
  void at(int64_t bytes) { moments_.push_back({kept_ + bytes, done_}); }
  void drop(int64_t bytes) { kept_ -= bytes; }
  /// A product with a matrix of so many numbers: the gradient of its inputs, its own gradient, and
  /// copies of 16 bits.
  void matrix(int64_t bytes, int64_t of_inputs, int64_t numbers) {
    const int64_t both = bytes + of_inputs + (t_.copies - t_.kept_copies) * numbers;
    at(both + t_.room_of(of_inputs));
    const int64_t result = (t_.narrow ? kBf16 : kF32) * numbers;
    const int64_t widened = t_.copies > 0 ? kF32 * numbers : 0;
    at(both + result + std::max(widened, t_.room_of(result)));
    done_ += t_.weight_item * numbers;
  }

  const BlockTensors& t_;
  int64_t kept_;
  int64_t done_ = 0;
  std::vector<StepMoment> moments_{};
};

void add_to(std::vector<StepMoment>& moments, int64_t bytes) {
  for (StepMoment& each : moments) {
    each.bytes += bytes;
  }
}

PartMemory block_memory(const BlockTensors& t, const StepShape& shape, int64_t number) {
  const std::string name = fmt::format("blocks.{}", number);
  PartMemory part{.name = name,
                  .parameters = {name + "."},
                  .used_again = {name + "."},
                  .learning = {name + "."},
                  .kept = t.kept()};
  part.backward = BlockBackward(t).moments();
  if (!shape.recompute) {
    part.forward = forward_of(t);
    return part;
  }
  part.kept = t.stream;
  part.forward = forward_without_graph(t);
  std::vector<StepMoment> again = forward_of(t);
  again.pop_back();  // the sum and the last product are not computed
  again.back().bytes -= t.branch;
  add_to(again, t.stream);  // the gradient that waits
  part.backward.insert(part.backward.begin(), again.begin(), again.end());
  return part;
}

PartMemory embedding_memory(const GptOptions& options, const BlockTensors& t) {
  const int64_t stream = t.stream;
  const int64_t table = options.vocab_size * options.width * t.weight_item;
  const bool learned = options.positions == PositionKind::kLearned;
  const int64_t positions = learned ? options.context * options.width * t.weight_item : 0;
  PartMemory part{.name = "embed", .parameters = {"embed."}};
  if (learned) {
    part.parameters.emplace_back("positions.");
  }
  part.learning = part.parameters;
  part.kept = learned ? 0 : options.context * options.head_width() * kF32;  // tables of angles
  part.forward = {{(learned ? 2 : 1) * stream}};
  // Of a tied table: its two gradients are here, and their sum.
  part.backward = {{stream + 2 * positions}, {stream + (options.tied ? 2 : 1) * table, positions}};
  return part;
}

PartMemory head_memory(const GptOptions& options, const StepShape& shape, const BlockTensors& t) {
  const int64_t rows = shape.sequences * shape.tokens;
  const int64_t item = t.narrow ? kBf16 : kF32;
  const int64_t numbers = options.vocab_size * options.width;
  const int64_t table = numbers * t.weight_item;
  const int64_t at_once = ops::rows_of_logits(rows, options.vocab_size);
  const int64_t logits = at_once * options.vocab_size * item;
  const int64_t copy = shape.bf16 ? numbers * kBf16 : 0;
  const int64_t product = std::max(at_once * options.width * item, t.narrow ? numbers * kBf16 : 0);
  PartMemory part{.name = "head",
                  .parameters = {"norm.", options.tied ? "embed." : "head."},
                  .used_again = {"norm."},
                  .learning = {"norm.", options.tied ? "norm." : "head."}};
  part.kept = t.for_norm + t.moments + t.normed + table;  // gradients that are there already
  const int64_t sums = kF32 * numbers - table;            // where blocks are added in f32
  const int64_t in_head = part.kept + sums + t.normed + logits + copy;
  part.forward = {{in_head + t.room_of(logits)}, {in_head + product + t.room_of(product)}};
  part.backward = {
      {part.kept},
      {t.for_norm + t.moments + t.normed + t.stream + t.sums, options.tied ? 0 : table}};
  return part;
}

}  // namespace

engine::StepMemory step_memory(const GptOptions& options, const StepShape& shape) {
  options.validate();
  StepShape all = shape;
  all.tokens = shape.tokens == 0 ? options.context : shape.tokens;
  ARGOSY_CHECK(all.sequences > 0 && all.tokens > 0 && all.tokens <= options.context,
               "text.step_memory",
               "expected one sequence or more, of 1 to {} tokens, got {} of {}",
               options.context,
               all.sequences,
               all.tokens);
  ARGOSY_CHECK(options.dropout == 0,
               "text.step_memory",
               "there is a formula for dropout = 0 only, got {}",
               options.dropout);
  ARGOSY_CHECK(!all.bf16 || !all.pure_bf16,
               "text.step_memory",
               "bf16 and pure_bf16 exclude each other: the one keeps f32 parameters");
  const BlockTensors tensors(options, all);
  engine::StepMemory parts{embedding_memory(options, tensors)};
  for (int64_t i = 0; i < options.layers; ++i) {
    parts.push_back(block_memory(tensors, all, i));
  }
  parts.push_back(head_memory(options, all, tensors));
  if (options.tied) {  // the head's gradient of the table waits for the embedding's
    const int64_t table = options.vocab_size * options.width * tensors.weight_item;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      add_to(parts[i].backward, table);
    }
    parts.back().backward.back().bytes += table;
  }
  return parts;
}

}  // namespace argosy::text
