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

/// One tensor per rank, each like `model`.
void check_list(std::string_view op,
                const std::vector<at::Tensor>& tensors,
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

std::vector<at::Tensor> parts(const Buffer& block, int size) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) {
    tensors.push_back(block.part(i));
  }
  return tensors;
}

Call all_gather_call(const Buffer& input,
                     const Buffer& output,
                     const at::Tensor& tensor,
                     GroupState& state,
                     const TimeoutOptions& options) {
  return {state,
          options.timeout,
          describe(state, "all_gather", tensor, input, ""),
          [input, output](Transport& transport, const Deadline& deadline) {
            transport.all_gather(
                input.data(), output.data(), input.count(), input.dtype(), deadline.remaining());
            output.finish();
          }};
}

Call reduce_scatter_call(const at::Tensor& output,
                         const std::vector<at::Tensor>& inputs,
                         const Group& group,
                         const ReduceOptions& options) {
  static constexpr std::string_view kOp = "reduce_scatter";
  GroupState& state = usable(group, kOp);
  const Buffer to = Buffer::to_write(kOp, output);
  check_reducible(kOp, output, options.op);
  check_list(kOp, inputs, state, output);
  const Buffer from = Buffer::to_read(kOp, inputs);
  return {state,
          options.timeout,
          describe(state, kOp, output, to, "{}", transport::to_string(options.op)),
          [to, from, op = options.op](Transport& transport, const Deadline& deadline) {
            transport.reduce_scatter(
                from.data(), to.data(), to.count(), to.dtype(), op, deadline.remaining());
            to.finish();
          }};
}

std::vector<int64_t> counts(const std::vector<at::Tensor>& tensors, const Buffer& buffer) {
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

}  // namespace

std::vector<at::Tensor> all_gather(const at::Tensor& tensor,
                                   const Group& group,
                                   const TimeoutOptions& options) {
  GroupState& state = usable(group, "all_gather");
  const Buffer input = Buffer::to_read("all_gather", tensor);
  const Buffer output = Buffer::block(state.size(), tensor);
  all_gather_call(input, output, tensor, state, options).run();
  return parts(output, state.size());
}

Work all_gather_async(const std::vector<at::Tensor>& outputs,
                      const at::Tensor& tensor,
                      const Group& group,
                      const TimeoutOptions& options) {
  GroupState& state = usable(group, "all_gather");
  const Buffer input = Buffer::to_read("all_gather", tensor);
  check_list("all_gather", outputs, state, tensor);
  return all_gather_call(input, Buffer::to_write("all_gather", outputs), tensor, state, options)
      .submit();
}

at::Tensor all_gather_uneven(const at::Tensor& tensor,
                             const Group& group,
                             const TimeoutOptions& options) {
  static constexpr std::string_view kOp = "all_gather_uneven";
  GroupState& state = usable(group, kOp);
  const Buffer input = Buffer::to_read(kOp, tensor);
  ARGOSY_CHECK(tensor.dim() > 0,
               place(kOp),
               "expected a tensor with at least one dimension to join along, got a 0-dim one. Use "
               "all_gather().");
  const at::Tensor row = tensor.narrow(0, 0, 0);  // its shape without the first size
  const std::string kind = fmt::format("{} {}", dtype_name(tensor), shape_text(row));
  // What the ranks must know of each other before memory can be set aside.
  struct Header {
    int64_t rows;
    int64_t kind;
  };
  static_assert(sizeof(Header) == 16);
  const Header mine{tensor.size(0), static_cast<int64_t>(std::hash<std::string>()(kind))};
  std::vector<Header> headers(static_cast<size_t>(state.size()));
  at::Tensor joined;  // on the host: the thread that runs this may have other current streams
  OperationInfo info = describe(state, kOp, row, input, "");
  info.elements = tensor.numel();
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
    std::vector<int64_t> sizes = tensor.sizes().vec();
    sizes[0] = 1;
    const int64_t width = c10::multiply_integers(sizes) *
                          (input.dtype() == transport::DType::kU8 ? tensor.element_size() : 1);
    for (const Header& header : headers) {
      elements.push_back(header.rows * width);
      rows += header.rows;
    }
    sizes[0] = rows;
    joined = at::empty(sizes, tensor.options().device(at::kCPU));
    transport.all_gather_v(
        input.data(), joined.data_ptr(), elements, input.dtype(), deadline.remaining());
  });
  return joined.to(tensor.device());
}

std::vector<at::Tensor> gather(const at::Tensor& tensor,
                               const Group& group,
                               const RootOptions& options) {
  static constexpr std::string_view kOp = "gather";
  GroupState& state = usable(group, kOp);
  check_root(kOp, state, options.root);
  const Buffer input = Buffer::to_read(kOp, tensor);
  const bool is_root = state.rank() == options.root;
  const Buffer output = is_root ? Buffer::block(state.size(), tensor) : Buffer();
  state.run(describe(state, kOp, tensor, input, "root {}", options.root),
            options.timeout,
            [&](Transport& transport, const Deadline& deadline) {
              transport.gather(input.data(),
                               output.data(),
                               input.count(),
                               input.dtype(),
                               options.root,
                               deadline.remaining());
              output.finish();
            });
  return is_root ? parts(output, state.size()) : std::vector<at::Tensor>();
}

void scatter(const at::Tensor& output,
             const std::vector<at::Tensor>& tensors,
             const Group& group,
             const RootOptions& options) {
  static constexpr std::string_view kOp = "scatter";
  GroupState& state = usable(group, kOp);
  check_root(kOp, state, options.root);
  const Buffer to = Buffer::to_write(kOp, output);
  Buffer from;
  if (state.rank() == options.root) {
    check_list(kOp, tensors, state, output);
    from = Buffer::to_read(kOp, tensors);
  }
  state.run(
      describe(state, kOp, output, to, "root {}", options.root),
      options.timeout,
      [&](Transport& transport, const Deadline& deadline) {
        transport.scatter(
            from.data(), to.data(), to.count(), to.dtype(), options.root, deadline.remaining());
        to.finish();
      });
}

void reduce_scatter(const at::Tensor& output,
                    const std::vector<at::Tensor>& inputs,
                    const Group& group,
                    const ReduceOptions& options) {
  reduce_scatter_call(output, inputs, group, options).run();
}
Work reduce_scatter_async(const at::Tensor& output,
                          const std::vector<at::Tensor>& inputs,
                          const Group& group,
                          const ReduceOptions& options) {
  return reduce_scatter_call(output, inputs, group, options).submit();
}

void all_to_all(const std::vector<at::Tensor>& outputs,
                const std::vector<at::Tensor>& inputs,
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
  const Buffer from = Buffer::to_read(kOp, inputs);
  const Buffer to = Buffer::to_write(kOp, outputs);
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
  state.run(std::move(info), options.timeout, [&](Transport& transport, const Deadline& deadline) {
    transport.all_to_all_v(
        from.data(), send, to.data(), receive, from.dtype(), deadline.remaining());
    to.finish();
  });
}

}  // namespace argosy::comm
