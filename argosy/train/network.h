#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/fields.h"
#include "argosy/engine/memory_format.h"
#include "argosy/fleet/fleet.h"
#include "argosy/train/feed.h"

namespace argosy::train {

/// A network as the training loop sees it, for any type of network.
struct Network {
  std::shared_ptr<torch::nn::Module> module{};
  std::size_t inputs = 1;  ///< tensors that forward takes
  /// The place of the first label in a batch: behind the inputs, unless forward takes labels too.
  std::size_t first_label = 1;
  /// Forward of the distributed wrapper, which averages gradients.
  std::function<Tensors(const Tensors& inputs)> forward{};
  /// Forward of the network itself, which does not communicate.
  std::function<Tensors(const Tensors& inputs)> forward_alone{};
  /// Runs `pass`, forward and backward, without averaging its gradients. For train_batch().
  std::function<void(const std::function<void()>& pass)> without_sync{};
  std::function<void()> sync_buffers{};
  std::function<engine::MemoryFormat()> memory_format{};
  std::function<void(engine::MemoryFormat format)> decide_memory_format{};
  /// The times of the last backward pass that averaged gradients.
  std::function<parallel::CommunicationTimes()> communication_times{};
};

namespace detail {

template <typename M, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires(M & network, const at::Tensor& tensor) {
    network->forward((static_cast<void>(I), tensor)...);
  };
}

constexpr std::size_t kMostInputs = 4;

/// Returns the number of tensors that the network's forward takes: the smallest that compiles, or 0
/// if none does.
template <typename M, std::size_t N = 1>
constexpr std::size_t inputs_of() {
  if constexpr (N > kMostInputs) {
    return 0;
  } else if constexpr (takes<M>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return inputs_of<M, N + 1>();
  }
}

template <typename Call, std::size_t... I>
Tensors call_with(const Call& call, const Tensors& inputs, std::index_sequence<I...>) {
  return tensors_of(call(inputs[I]...));
}

/// Returns the module of a holder or a pointer.
template <typename M>
std::shared_ptr<torch::nn::Module> pointer_of(const M& network) {
  if constexpr (requires { network.ptr(); }) {
    return network.ptr();
  } else {
    return network;
  }
}

/// A network says `static constexpr bool kTakesLabels = true` if its forward takes the labels too
/// (and returns the loss: loss::FromNetwork). All but the first tensor of a batch are labels then.
template <typename M>
constexpr bool takes_labels() {
  if constexpr (requires { M::kTakesLabels; }) {
    return M::kTakesLabels;
  } else {
    return false;
  }
}

/// Makes a Network of a wrapper over `M`.
template <typename M>
Network network_of(parallel::DistributedDataParallel<M> model) {
  constexpr std::size_t kInputs = inputs_of<M>();
  static_assert(kInputs > 0,
                "the trainer's networks have forward(tensor, …) with one to four tensors");
  constexpr auto kEach = std::make_index_sequence<kInputs>();
  auto shared = std::make_shared<parallel::DistributedDataParallel<M>>(std::move(model));
  auto inner = std::make_shared<M>(shared->module());
  return {
      .module = pointer_of(*inner),
      .inputs = kInputs,
      .first_label = takes_labels<M>() ? 1 : kInputs,
      .forward =
          [shared, kEach](const Tensors& inputs) {
            return call_with(
                [&](const auto&... each) { return (*shared)(each...); }, inputs, kEach);
          },
      .forward_alone =
          [shared, kEach](const Tensors& inputs) {
            return call_with(
                [&](const auto&... each) { return shared->forward_alone(each...); }, inputs, kEach);
          },
      .without_sync =
          [shared](const std::function<void()>& pass) {
            const auto local = shared->no_sync();
            pass();
          },
      .sync_buffers = [shared] { shared->sync_buffers(); },
      .memory_format = [shared] { return shared->memory_format(); },
      .decide_memory_format =
          [shared](engine::MemoryFormat format) { shared->decide_memory_format(format); },
      .communication_times = [shared] { return shared->communication_times(); }};
}

}  // namespace detail

}  // namespace argosy::train
