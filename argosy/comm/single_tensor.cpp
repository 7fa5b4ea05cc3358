#include "argosy/comm/single_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <string_view>

#include <ATen/ATen.h>

#include "argosy/base/text.h"
#include "argosy/comm/call.h"

namespace argosy::comm {
namespace {

/// The ranks' parts of `whole`, each shaped like `part`.
std::vector<at::Tensor> parts_of(std::string_view op,
                                 const at::Tensor& whole,
                                 const at::Tensor& part,
                                 const Group& group) {
  ARGOSY_CHECK(whole.defined() && part.defined(), place(op), "a tensor is undefined");
  const int64_t n = group.size();
  std::vector<int64_t> stacked = part.sizes().vec();
  stacked.insert(stacked.begin(), n);
  if (whole.sizes() == at::IntArrayRef(stacked)) {
    return whole.unbind();
  }
  std::vector<int64_t> chained = part.sizes().vec();
  if (!chained.empty()) {
    chained.front() *= n;
  }
  ARGOSY_CHECK(!chained.empty() && whole.sizes() == at::IntArrayRef(chained),
               place(op),
               "the tensor of all {} parts of {}: expected {} or {}, got {}",
               n,
               shape_text(part),
               text::shape(chained),
               text::shape(stacked),
               shape_text(whole));
  std::vector<at::Tensor> parts;
  for (int64_t rank = 0; rank < n; ++rank) {
    parts.push_back(whole.narrow(0, rank * part.size(0), part.size(0)));
  }
  return parts;
}

std::vector<at::Tensor> cut(const char* which,
                            const at::Tensor& tensor,
                            std::vector<int64_t> sizes,
                            const Group& group) {
  const std::string where = place("all_to_all_single");
  ARGOSY_CHECK(tensor.defined() && tensor.dim() > 0, where, "{}: expected a dim 0 to cut", which);
  const int64_t n = group.size(), length = tensor.size(0);
  if (sizes.empty()) {
    ARGOSY_CHECK(length % n == 0,
                 where,
                 "{} has {} along dim 0, which {} ranks cannot share equally. Give split sizes.",
                 which,
                 length,
                 n);
    sizes.assign(static_cast<size_t>(n), length / n);
  }
  ARGOSY_CHECK(
      std::ssize(sizes) == n && std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == length,
      where,
      "split sizes of {}: expected {} with the sum {}, got [{}]",
      which,
      n,
      length,
      fmt::join(sizes, ", "));
  return tensor.split_with_sizes(sizes);
}

}  // namespace

void all_gather_into_tensor(const at::Tensor& output,
                            const at::Tensor& input,
                            const Group& group,
                            const TimeoutOptions& options) {
  all_gather_into_tensor_async(output, input, group, options).wait();
}
Work all_gather_into_tensor_async(const at::Tensor& output,
                                  const at::Tensor& input,
                                  const Group& group,
                                  const TimeoutOptions& options) {
  return all_gather_async(parts_of("all_gather_into_tensor", output, input, group),
                          input,
                          group,
                          {.timeout = options.timeout});
}

void reduce_scatter_tensor(const at::Tensor& output,
                           const at::Tensor& input,
                           const Group& group,
                           const ReduceScatterOptions& options) {
  reduce_scatter(output, parts_of("reduce_scatter_tensor", input, output, group), group, options);
}
Work reduce_scatter_tensor_async(const at::Tensor& output,
                                 const at::Tensor& input,
                                 const Group& group,
                                 const ReduceScatterOptions& options) {
  return reduce_scatter_async(
      output, parts_of("reduce_scatter_tensor", input, output, group), group, options);
}

void all_to_all_single(const at::Tensor& output,
                       const at::Tensor& input,
                       const Group& group,
                       const AllToAllSingleOptions& options) {
  all_to_all_single_async(output, input, group, options).wait();
}
Work all_to_all_single_async(const at::Tensor& output,
                             const at::Tensor& input,
                             const Group& group,
                             const AllToAllSingleOptions& options) {
  return all_to_all_async(cut("output", output, options.output_split_sizes, group),
                          cut("input", input, options.input_split_sizes, group),
                          group,
                          {.timeout = options.timeout});
}

std::vector<Work> batch_isend_irecv(const std::vector<P2POp>& messages, const Group& group) {
  ARGOSY_CHECK(!messages.empty(), place("batch_isend_irecv"), "there are no messages");
  std::vector<Work> works;
  works.reserve(messages.size());
  for (const P2POp& message : messages) {
    works.push_back(message.kind == P2POp::Kind::kSend
                        ? send_async(message.tensor, message.peer, group, message.options)
                        : recv_async(message.tensor, message.peer, group, message.options));
  }
  return works;
}

}  // namespace argosy::comm
