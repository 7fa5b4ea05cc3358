#include "argosy/loss/embedding.h"

#include <ATen/ops/cosine_embedding_loss.h>
#include <ATen/ops/margin_ranking_loss.h>
#include <ATen/ops/triplet_margin_loss.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/loss/checks.h"

namespace argosy::loss {
namespace {

constexpr const char* kCosine = "loss.CosineEmbedding";
constexpr const char* kRanking = "loss.MarginRanking";
constexpr const char* kTriplet = "loss.TripletMargin";

void check_pairs(const at::Tensor& first, const at::Tensor& second, const at::Tensor& target) {
  check_same_shape(kCosine, first, second);
  ARGOSY_CHECK(
      first.dim() == 2 && target.defined() && target.dim() == 1 && target.size(0) == first.size(0),
      kCosine,
      "expected inputs [N, D] and a target [N] of 1 and -1, got {}, {} and {}",
      text::shape(first),
      text::shape(second),
      text::shape(target));
}

void check_triplets(const at::Tensor& anchor,
                    const at::Tensor& positive,
                    const at::Tensor& negative) {
  check_same_shape(kTriplet, anchor, positive);
  check_same_shape(kTriplet, anchor, negative);
  ARGOSY_CHECK(anchor.dim() == 1 || anchor.dim() == 2,
               kTriplet,
               "expected anchor, positive and negative as [N, D] or [D], got {}",
               text::shape(anchor));
}

}  // namespace

CosineEmbedding::CosineEmbedding(const CosineEmbeddingOptions& options) : options_(options) {
  ARGOSY_CHECK(options.margin >= -1 && options.margin <= 1,
               kCosine,
               "margin must be in [-1, 1], got {}",
               options.margin);
}

at::Tensor CosineEmbedding::operator()(const at::Tensor& first,
                                       const at::Tensor& second,
                                       const at::Tensor& target) const {
  check_pairs(first, second, target);
  return guarded(kCosine, [&] {
    return at::cosine_embedding_loss(
        first, second, target, options_.margin, torch_reduction(options_.reduction));
  });
}

double CosineEmbedding::count(const at::Tensor& first,
                              const at::Tensor& second,
                              const at::Tensor& target) const {
  check_pairs(first, second, target);
  return options_.reduction == Reduction::kSum ? 1 : static_cast<double>(target.numel());
}

at::Tensor MarginRanking::operator()(const at::Tensor& first,
                                     const at::Tensor& second,
                                     const at::Tensor& target) const {
  check_same_shape(kRanking, first, second);
  check_same_shape(kRanking, first, target);
  return guarded(kRanking, [&] {
    return at::margin_ranking_loss(
        first, second, target, options_.margin, torch_reduction(options_.reduction));
  });
}

double MarginRanking::count(const at::Tensor& first,
                            const at::Tensor& second,
                            const at::Tensor& target) const {
  check_same_shape(kRanking, first, second);
  check_same_shape(kRanking, first, target);
  return options_.reduction == Reduction::kSum ? 1 : static_cast<double>(target.numel());
}

TripletMargin::TripletMargin(const TripletMarginOptions& options) : options_(options) {
  ARGOSY_CHECK(options.margin > 0, kTriplet, "margin must be positive, got {}", options.margin);
}

at::Tensor TripletMargin::operator()(const at::Tensor& anchor,
                                     const at::Tensor& positive,
                                     const at::Tensor& negative) const {
  check_triplets(anchor, positive, negative);
  return guarded(kTriplet, [&] {
    return at::triplet_margin_loss(anchor,
                                   positive,
                                   negative,
                                   options_.margin,
                                   options_.p,
                                   options_.eps,
                                   options_.swap == TripletMarginOptions::Swap::kSwap,
                                   torch_reduction(options_.reduction));
  });
}

double TripletMargin::count(const at::Tensor& anchor,
                            const at::Tensor& positive,
                            const at::Tensor& negative) const {
  check_triplets(anchor, positive, negative);
  return options_.reduction == Reduction::kSum || anchor.dim() == 1
             ? 1
             : static_cast<double>(anchor.size(0));
}

}  // namespace argosy::loss
