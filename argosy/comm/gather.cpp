/// Collectives between one tensor and one per rank: all_gather, gather, scatter, reduce_scatter,
/// all_to_all.
#include <cstring>
#include <functional>

#include <ATen/ATen.h>

#include "argosy/comm/call.h"
#include "argosy/comm/collectives.h"

namespace argosy::comm {
namespace {

using transport::Transport;
using Tensors = std::vector<at::Tensor>;

/// One tensor per rank, each like `model`.
void check_list(std::string_view op,
                const Tensors& tensors,
                const GroupState& state,
                const at::Tensor& model) {
  ARGOSY_CHECK(static_cast<int>(tensors.size()) == state.size(),
               place(op),
               "expected {} tensors, one for each rank, got {}",
               state.size(),
               tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    ARGOSY_CHECK(tensors[i].defined() && tensors[i].sizes() == model.sizes() &&
                     tensors[i].scalar_type() == model.scalar_type(),
                 place(op),
                 "tensor {} of the list: expected {} {}, got {}",
                 i,
                 dtype_name(model),
                 shape_text(model),
                 tensors[i].defined()
                     ? fmt::format("{} {}", dtype_name(tensors[i]), shape_text(tensors[i]))
                     : "an undefined one");
  }
}

/// A list, called `what`, that the root gives and no other rank.
void check_list_of_root(std::string_view op,
                        const Tensors& tensors,
                        const GroupState& state,
                        const at::Tensor& model,
                        std::string_view what,
                        int root) {
  check_root(op, state, root);
  if (state.rank() == root) {
    check_list(op, tensors, state, model);
    return;
  }
  ARGOSY_CHECK(tensors.empty(),
               place(op),
               "only the root, rank {}, gives {}; this rank gave {} tensors. Pass {{}}.",
               root,
               what,
               tensors.size());
}

/// Tensors like `input`, one for each rank, in one block of memory.
Tensors new_tensors(std::string_view op, const at::Tensor& input, const Group& group) {
  const int size = usable(group, op).size();
  check_readable(op, input);
  std::vector<int64_t> sizes = {size};
  sizes.insert(sizes.end(), input.sizes().begin(), input.sizes().end());
  const at::Tensor block = at::empty(sizes, input.options());
  Tensors tensors;
  for (int i = 0; i < size; ++i) {
    tensors.push_back(block.select(0, i));
  }
  return tensors;
}

Call all_gather_call(const Tensors& outputs,
                     const at::Tensor& input,
                     const Group& group,
                     const AllGatherOptions& options) {
  static constexpr std::string_view kOp = "all_gather";
  GroupState& state = usable(group, kOp);
  const Route route = route_of(state, input);
  const Buffer from = Buffer::to_read(kOp, input, route.medium);
  check_list(kOp, outputs, state, input);
  const Buffer to = Buffer::to_write(kOp, outputs, route.medium);
  OperationInfo info = describe(state, kOp, input, from, "");
  info.place = options.place;
  return {state,
          options.timeout,
          std::move(info),
          [from, to](Transport& transport, const Deadline& deadline) {
            transport.all_gather(
                from.data(), to.data(), from.count(), from.dtype(), deadline.remaining());
            to.finish();
          },
          route};
}

Call gather_call(const Tensors& outputs,
                 const at::Tensor& input,
                 const Group& group,
                 const RootOptions& options) {
  static constexpr std::string_view kOp = "gather";
  GroupState& state = usable(group, kOp);
  const Route route = route_of(state, input);
  const Buffer from = Buffer::to_read(kOp, input, route.medium);
  check_list_of_root(kOp, outputs, state, input, "outputs", options.root);
  const Buffer to = outputs.empty() ? Buffer() : Buffer::to_write(kOp, outputs, route.medium);
  return {state,
          options.timeout,
          describe(state, kOp, input, from, "root {}", options.root),
          [from, to, root = options.root](Transport& transport, const Deadline& deadline) {
            transport.gather(
                from.data(), to.data(), from.count(), from.dtype(), root, deadline.remaining());
            to.finish();
          },
          route};
}

Call scatter_call(const at::Tensor& output,
                  const Tensors& inputs,
                  const Group& group,
                  const RootOptions& options) {
  static constexpr std::string_view kOp = "scatter";
  GroupState& state = usable(group, kOp);
  const Route route = route_of(state, output);
  const Buffer to = Buffer::to_write(kOp, output, route.medium);
  check_list_of_root(kOp, inputs, state, output, "inputs", options.root);
  const Buffer from = inputs.empty() ? Buffer() : Buffer::to_read(kOp, inputs, route.medium);
  return {state,
          options.timeout,
          describe(state, kOp, output, to, "root {}", options.root),
          [from, to, root = options.root](Transport& transport, const Deadline& deadline) {
            transport.scatter(
                from.data(), to.data(), to.count(), to.dtype(), root, deadline.remaining());
            to.finish();
          },
          route};
}

Call reduce_scatter_call(const at::Tensor& output,
                         const Tensors& inputs,
                         const Group& group,
                         const ReduceScatterOptions& options) {
  static constexpr std::string_view kOp = "reduce_scatter";
  GroupState& state = usable(group, kOp);
  const Route route = route_of(state, output);
  const Buffer to = Buffer::to_write(kOp, output, route.medium);
  check_reducible(kOp, output, options.op);
  check_list(kOp, inputs, state, output);
  const Buffer from = Buffer::to_read(kOp, inputs, route.medium);
  OperationInfo info = describe(state, kOp, output, to, "{}", transport::to_string(options.op));
  info.place = options.place;
  info.exact = options.exact;
  return {state,
          options.timeout,
          std::move(info),
          [to, from, op = options.op](Transport& transport, const Deadline& deadline) {
            transport.reduce_scatter(
                from.data(), to.data(), to.count(), to.dtype(), op, deadline.remaining());
            to.finish();
          },
          route};
}

std::vector<int64_t> counts(const Tensors& tensors, const Buffer& buffer) {
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (const at::Tensor& tensor : tensors) {
    total += tensor.numel();
  }
  for (const at::Tensor& tensor : tensors) {
    // Types that travel as bytes count as such.
    counts.push_back(total == 0 ? 0 : tensor.numel() * (buffer.count() / total));
  }
  return counts;
}

Call all_to_all_call(const Tensors& outputs,
                     const Tensors& inputs,
                     const Group& group,
                     const TimeoutOptions& options) {
  static constexpr std::string_view kOp = "all_to_all";
  GroupState& state = usable(group, kOp);
  for (const auto* list : {&outputs, &inputs}) {
    ARGOSY_CHECK(static_cast<int>(list->size()) == state.size(),
                 place(kOp),
                 "expected {} {}, one for each rank, got {}",
                 state.size(),
                 list == &inputs ? "inputs" : "outputs",
                 list->size());
  }
  const Route route = route_of(state, inputs.front());
  const Buffer from = Buffer::to_read(kOp, inputs, route.medium);
  const Buffer to = Buffer::to_write(kOp, outputs, route.medium);
  ARGOSY_CHECK(inputs.front().scalar_type() == outputs.front().scalar_type(),
               place(kOp),
               "inputs and outputs differ in dtype: {} and {}",
               dtype_name(inputs.front()),
               dtype_name(outputs.front()));
  const std::vector<int64_t> send = counts(inputs, from);
  const std::vector<int64_t> receive = counts(outputs, to);
  const auto mine = static_cast<size_t>(state.rank());
  ARGOSY_CHECK(send[mine] == receive[mine],
               place(kOp),
               "what this rank sends to itself must fit what it receives: inputs[{0}] has {1} "
               "elements, outputs[{0}] has {2}",
               mine,
               send[mine],
               receive[mine]);
  OperationInfo info = describe(state, kOp, from.bytes());
  info.dtype = dtype_name(inputs.front());
  if (state.options().checked) {
    info.signature = fmt::format("{} {}", kOp, info.dtype);
  }
  return {state,
          options.timeout,
          std::move(info),
          [from, send, to, receive](Transport& transport, const Deadline& deadline) {
            transport.all_to_all_v(
                from.data(), send, to.data(), receive, from.dtype(), deadline.remaining());
            to.finish();
          },
          route};
}

}  // namespace

void all_gather(const Tensors& outputs,
                const at::Tensor& input,
                const Group& group,
                const AllGatherOptions& options) {
  all_gather_call(outputs, input, group, options).run();
}
Work all_gather_async(const Tensors& outputs,
                      const at::Tensor& input,
                      const Group& group,
                      const AllGatherOptions& options) {
  return all_gather_call(outputs, input, group, options).submit();
}
Tensors all_gather(const at::Tensor& input, const Group& group, const TimeoutOptions& options) {
  Tensors outputs = new_tensors("all_gather", input, group);
  all_gather(outputs, input, group, {.timeout = options.timeout});
  return outputs;
}

at::Tensor all_gather_uneven(const at::Tensor& input,
                             const Group& group,
                             const TimeoutOptions& options) {
  static constexpr std::string_view kOp = "all_gather_uneven";
  GroupState& state = usable(group, kOp);
  const Buffer from = Buffer::to_read(kOp, input);
  ARGOSY_CHECK(input.dim() > 0,
               place(kOp),
               "expected a tensor with at least one dimension to join along, got a 0-dim one. Use "
               "all_gather().");
  const at::Tensor row = input.narrow(0, 0, 0);  // its shape without the first size
  const std::string kind = fmt::format("{} {}", dtype_name(input), shape_text(row));
  // What the ranks must know of each other before memory can be set aside.
  struct Header {
    int64_t rows;
    int64_t kind;
  };
  static_assert(sizeof(Header) == 16);
  const Header mine{input.size(0), static_cast<int64_t>(std::hash<std::string>()(kind))};
  std::vector<Header> headers(static_cast<size_t>(state.size()));
  at::Tensor joined;  // on the host: the thread that runs this may have other current streams
  OperationInfo info = describe(state, kOp, row, from, "");
  info.elements = input.numel();
  state.run(std::move(info), options.timeout, [&](Transport& transport, const Deadline& deadline) {
    transport.all_gather(&mine, headers.data(), 2, transport::DType::kI64, deadline.remaining());
    const auto same = [&](const Header& header) {
      return header.rows >= 0 && header.kind == headers.front().kind;
    };
    for (size_t rank = 0; rank < headers.size(); ++rank) {
      if (!same(headers[rank])) {
        throw CommError(place(kOp),
                        fmt::format("rank {} brought another dtype or other trailing sizes than "
                                    "rank 0 (this rank: {}, where the first size is free)",
                                    rank,
                                    kind),
                        {.peers = {static_cast<int>(rank)}});
      }
    }
    std::vector<int64_t> elements;
    int64_t rows = 0;
    std::vector<int64_t> sizes = input.sizes().vec();
    sizes[0] = 1;
    const int64_t width = c10::multiply_integers(sizes) *
                          (from.dtype() == transport::DType::kU8 ? input.element_size() : 1);
    for (const Header& header : headers) {
      elements.push_back(header.rows * width);
      rows += header.rows;
    }
    sizes[0] = rows;
    joined = at::empty(sizes, input.options().device(at::kCPU));
    transport.all_gather_v(
        from.data(), joined.data_ptr(), elements, from.dtype(), deadline.remaining());
  });
  return joined.to(input.device());
}

void gather(const Tensors& outputs,
            const at::Tensor& input,
            const Group& group,
            const RootOptions& options) {
  gather_call(outputs, input, group, options).run();
}
Work gather_async(const Tensors& outputs,
                  const at::Tensor& input,
                  const Group& group,
                  const RootOptions& options) {
  return gather_call(outputs, input, group, options).submit();
}
Tensors gather(const at::Tensor& input, const Group& group, const RootOptions& options) {
  Tensors outputs;
  if (group.rank() == options.root) {
    outputs = new_tensors("gather", input, group);
  }
  gather(outputs, input, group, options);
  return outputs;
}

void scatter(const at::Tensor& output,
             const Tensors& inputs,
             const Group& group,
             const RootOptions& options) {
  scatter_call(output, inputs, group, options).run();
}
Work scatter_async(const at::Tensor& output,
                   const Tensors& inputs,
                   const Group& group,
                   const RootOptions& options) {
  return scatter_call(output, inputs, group, options).submit();
}

void reduce_scatter(const at::Tensor& output,
                    const Tensors& inputs,
                    const Group& group,
                    const ReduceScatterOptions& options) {
  reduce_scatter_call(output, inputs, group, options).run();
}
Work reduce_scatter_async(const at::Tensor& output,
                          const Tensors& inputs,
                          const Group& group,
                          const ReduceScatterOptions& options) {
  return reduce_scatter_call(output, inputs, group, options).submit();
}

void all_to_all(const Tensors& outputs,
                const Tensors& inputs,
                const Group& group,
                const TimeoutOptions& options) {
  all_to_all_call(outputs, inputs, group, options).run();
}
Work all_to_all_async(const Tensors& outputs,
                      const Tensors& inputs,
                      const Group& group,
                      const TimeoutOptions& options) {
  return all_to_all_call(outputs, inputs, group, options).submit();
}

}  // namespace argosy::comm
