/// Collectives that leave the tensor where it is: all_reduce, reduce, broadcast, barrier; memory in
/// which they do; and what runs between them.
#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "argosy/comm/call.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/json.h"
#include "argosy/transport/reduction.h"

namespace argosy::comm {
namespace {

using transport::Transport;

Call all_reduce_call(const at::Tensor& tensor,
                     const Group& group,
                     const AllReduceOptions& options) {
  static constexpr std::string_view kOp = "all_reduce";
  GroupState& state = usable(group, kOp);
  const Route route = route_of(state, tensor);
  const Buffer buffer = Buffer::to_update(kOp, tensor, route.medium);
  check_reducible(kOp, tensor, options.op);
  OperationInfo info = describe(state, kOp, tensor, buffer, "{}", transport::to_string(options.op));
  info.place = options.place;
  info.exact = options.exact;
  return {state,
          options.timeout,
          std::move(info),
          [buffer, op = options.op](Transport& transport, const Deadline& deadline) {
            transport.all_reduce(
                buffer.data(), buffer.count(), buffer.dtype(), op, deadline.remaining());
            buffer.finish();
          },
          route};
}

void check_leaves(std::string_view op, const LeafTensors& leaves, const GroupState& state) {
  ARGOSY_CHECK(leaves.deal != nullptr, place(op), "leaves.deal is empty");
  ARGOSY_CHECK(leaves.deal->ranks() == state.size(),
               place(op),
               "the leaves are dealt to {} ranks, and the group has {}",
               leaves.deal->ranks(),
               state.size());
  const size_t brings = leaves.deal->nodes(state.rank()).size();
  ARGOSY_CHECK(leaves.nodes.size() == brings,
               place(op),
               "rank {} brings {} nodes of the tree, got {} tensors",
               state.rank(),
               brings,
               leaves.nodes.size());
  ARGOSY_CHECK(leaves.deal->is_whole(),
               place(op),
               "the ranks hold a part of the {} leaves only",
               leaves.deal->leaves());
  check_readable(op, leaves.result);
  for (const at::Tensor& node : leaves.nodes) {
    ARGOSY_CHECK(node.defined() && node.sizes() == leaves.result.sizes() &&
                     node.scalar_type() == leaves.result.scalar_type(),
                 place(op),
                 "a node must be like the result, {} {}, got {}",
                 dtype_name(leaves.result),
                 shape_text(leaves.result),
                 node.defined() ? fmt::format("{} {}", dtype_name(node), shape_text(node))
                                : "an undefined tensor");
  }
}

Call all_reduce_call(const LeafTensors& leaves,
                     const Group& group,
                     const AllReduceOptions& options) {
  static constexpr std::string_view kOp = "all_reduce";
  GroupState& state = usable(group, kOp);
  check_leaves(kOp, leaves, state);
  check_reducible(kOp, leaves.result, options.op);
  const auto is_result = [&](const at::Tensor& node) { return node.is_same(leaves.result); };
  const bool in_place = std::ranges::any_of(leaves.nodes, is_result);
  const Route route = route_of(state, leaves.result);
  const Buffer result = in_place ? Buffer::to_update(kOp, leaves.result, route.medium)
                                 : Buffer::to_write(kOp, leaves.result, route.medium);
  std::vector<Buffer> nodes;
  for (const at::Tensor& node : leaves.nodes) {
    nodes.push_back(is_result(node) ? result : Buffer::to_read(kOp, node, route.medium));
  }
  OperationInfo info = describe(state,
                                kOp,
                                leaves.result,
                                result,
                                "{} of {} leaves",
                                transport::to_string(options.op),
                                leaves.deal->leaves());
  info.place = options.place;
  info.exact = options.exact;
  return {state,
          options.timeout,
          std::move(info),
          [deal = leaves.deal, nodes = std::move(nodes), result, op = options.op](
              Transport& transport, const Deadline& deadline) {
            std::vector<const void*> terms;
            for (const Buffer& node : nodes) {
              terms.push_back(node.data());
            }
            void* const sum = result.data();
            transport.all_reduce({.deal = *deal, .nodes = terms, .sums = {&sum, 1}},
                                 result.count(),
                                 result.dtype(),
                                 op,
                                 deadline.remaining());
            result.finish();
          },
          route};
}

Call reduce_call(const at::Tensor& tensor, const Group& group, const ReduceOptions& options) {
  static constexpr std::string_view kOp = "reduce";
  GroupState& state = usable(group, kOp);
  check_root(kOp, state, options.root);
  const bool is_root = state.rank() == options.root;
  const Route route = route_of(state, tensor);
  const Buffer buffer = is_root ? Buffer::to_update(kOp, tensor, route.medium)
                                : Buffer::to_read(kOp, tensor, route.medium);
  check_reducible(kOp, tensor, options.op);
  return {
      state,
      options.timeout,
      describe(
          state, kOp, tensor, buffer, "{} root {}", transport::to_string(options.op), options.root),
      [buffer, op = options.op, root = options.root](Transport& transport,
                                                     const Deadline& deadline) {
        transport.reduce(
            buffer.data(), buffer.count(), buffer.dtype(), op, root, deadline.remaining());
        buffer.finish();
      },
      route};
}

Call broadcast_call(const at::Tensor& tensor, const Group& group, const RootOptions& options) {
  static constexpr std::string_view kOp = "broadcast";
  GroupState& state = usable(group, kOp);
  check_root(kOp, state, options.root);
  const bool is_root = state.rank() == options.root;
  const Route route = route_of(state, tensor);
  const Buffer buffer = is_root ? Buffer::to_read(kOp, tensor, route.medium)
                                : Buffer::to_write(kOp, tensor, route.medium);
  return {state,
          options.timeout,
          describe(state, kOp, tensor, buffer, "root {}", options.root),
          [buffer, root = options.root](Transport& transport, const Deadline& deadline) {
            transport.broadcast(
                buffer.data(), buffer.count(), buffer.dtype(), root, deadline.remaining());
            buffer.finish();
          },
          route};
}

Call barrier_call(const Group& group, const TimeoutOptions& options) {
  GroupState& state = usable(group, "barrier");
  return {state,
          options.timeout,
          describe(state, "barrier"),
          [](Transport& transport, const Deadline& deadline) {
            transport.barrier(deadline.remaining());
          }};
}

}  // namespace

void all_reduce(const at::Tensor& tensor, const Group& group, const AllReduceOptions& options) {
  all_reduce_call(tensor, group, options).run();
}
Work all_reduce_async(const at::Tensor& tensor,
                      const Group& group,
                      const AllReduceOptions& options) {
  return all_reduce_call(tensor, group, options).submit();
}

void all_reduce(const LeafTensors& leaves, const Group& group, const AllReduceOptions& options) {
  all_reduce_call(leaves, group, options).run();
}
Work all_reduce_async(const LeafTensors& leaves,
                      const Group& group,
                      const AllReduceOptions& options) {
  return all_reduce_call(leaves, group, options).submit();
}

namespace {

/// Nodes of several leaves are not rounded, and averages of small integers do not wrap, as in the
/// transport's own sums.
at::ScalarType type_of_nodes(at::ScalarType type, ReduceOp op) {
  if (type == at::kHalf || type == at::kBFloat16) {
    return at::kFloat;
  }
  const bool averages = op == ReduceOp::kAvg && type != at::kBool;
  return averages && at::isIntegralType(type, /*includeBool=*/false) ? at::kLong : type;
}

/// A tensor like the leaves, on a rank that has none too. Collective if there is such a rank.
at::Tensor model_of(const std::vector<at::Tensor>& leaves,
                    const LeafDeal& deal,
                    const Group& group,
                    const TimeoutOptions& options) {
  bool all_have_some = true;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    all_have_some = all_have_some && !deal.nodes(rank).empty();
  }
  if (all_have_some) {
    return leaves.front();
  }
  nlohmann::json like;
  if (!leaves.empty()) {
    like = {leaves.front().sizes().vec(),
            static_cast<int>(leaves.front().scalar_type()),
            static_cast<int>(leaves.front().device().type())};
  }
  const int root = deal.sums().front().terms.front().rank;
  like = broadcast_object(like, group, {.root = root, .timeout = options.timeout});
  if (!leaves.empty()) {
    return leaves.front();
  }
  const at::Device device(static_cast<at::DeviceType>(like[2].get<int>()));
  return at::empty(like[0].get<std::vector<int64_t>>(),
                   at::device(device).dtype(static_cast<at::ScalarType>(like[1].get<int>())));
}

}  // namespace

at::Tensor all_reduce_leaves(const std::vector<at::Tensor>& leaves,
                             const std::shared_ptr<const LeafDeal>& deal,
                             const Group& group,
                             const AllReduceOptions& options) {
  static constexpr std::string_view kOp = "all_reduce_leaves";
  ARGOSY_CHECK(deal != nullptr, place(kOp), "leaves are dealt to nobody");
  const LeafDeal mine = deal->leaves_of(group.rank());
  ARGOSY_CHECK(mine.nodes(0).size() == leaves.size(),
               place(kOp),
               "expected {} leaves, one for each of this rank's, got {}",
               mine.nodes(0).size(),
               leaves.size());
  const at::Tensor model = model_of(leaves, *deal, group, {.timeout = options.timeout});
  for (const at::Tensor& leaf : leaves) {
    check_readable(kOp, leaf);
    ARGOSY_CHECK(leaf.sizes() == model.sizes() && leaf.scalar_type() == model.scalar_type(),
                 place(kOp),
                 "a leaf must be like the first, {} {}, got {} {}",
                 dtype_name(model),
                 shape_text(model),
                 dtype_name(leaf),
                 shape_text(leaf));
  }
  const at::ScalarType type = type_of_nodes(model.scalar_type(), options.op);
  LeafTensors brought{.deal = deal, .nodes = {}, .result = at::empty_like(model, type)};
  std::vector<Buffer> terms;
  std::vector<const void*> nodes;
  for (const at::Tensor& leaf : leaves) {
    terms.push_back(Buffer::to_read(kOp, leaf.to(type)));
    nodes.push_back(terms.back().data());
  }
  std::vector<Buffer> made;
  std::vector<void*> sums;
  for (size_t i = 0; i < mine.sums().size(); ++i) {
    brought.nodes.push_back(at::empty_like(model, type));
    made.push_back(Buffer::to_write(kOp, brought.nodes.back()));
    sums.push_back(made.back().data());
  }
  if (!terms.empty()) {
    transport::reduce_alone({.deal = mine, .nodes = nodes, .sums = sums},
                            terms.front().count(),
                            terms.front().dtype(),
                            options.op == ReduceOp::kAvg ? ReduceOp::kSum : options.op);
  }
  for (const Buffer& sum : made) {
    sum.finish();
  }
  all_reduce(brought, group, options);
  return brought.result.to(model.scalar_type());
}

void reduce(const at::Tensor& tensor, const Group& group, const ReduceOptions& options) {
  reduce_call(tensor, group, options).run();
}
Work reduce_async(const at::Tensor& tensor, const Group& group, const ReduceOptions& options) {
  return reduce_call(tensor, group, options).submit();
}

void broadcast(const at::Tensor& tensor, const Group& group, const RootOptions& options) {
  broadcast_call(tensor, group, options).run();
}
Work broadcast_async(const at::Tensor& tensor, const Group& group, const RootOptions& options) {
  return broadcast_call(tensor, group, options).submit();
}

std::shared_ptr<SharedBlock> share_memory(size_t bytes,
                                          const Group& group,
                                          const TimeoutOptions& options) {
  GroupState& state = usable(group, "share_memory");
  std::shared_ptr<SharedBlock> block;
  state.run(describe(state, "share_memory"),
            options.timeout,
            [&](Transport& transport, const Deadline& deadline) {
              block = transport.share(bytes, deadline.remaining());
            });
  return block;
}

void barrier(const Group& group, const TimeoutOptions& options) {
  barrier_call(group, options).run();
}
Work barrier_async(const Group& group, const TimeoutOptions& options) {
  return barrier_call(group, options).submit();
}

Work run_in_order(std::function<void()> action, const Group& group) {
  static constexpr std::string_view kOp = "run_in_order";
  GroupState& state = usable(group, kOp);
  ARGOSY_CHECK(action != nullptr, place(kOp), "the action is empty");
  OperationInfo info{.op = kOp};
  if (state.options().checked) {
    info.signature = kOp;
  }
  return state.submit(
      std::move(info),
      {},
      [run = std::move(action)](Transport& /*transport*/, const Deadline& /*deadline*/) { run(); });
}

}  // namespace argosy::comm
