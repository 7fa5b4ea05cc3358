#include "argosy/transport/call.h"

#include <fmt/format.h>

namespace argosy::transport {
namespace {

bool has_elements(Op op) {
  return op != Op::kConnect && op != Op::kBarrier && op != Op::kShare;
}

bool reduces(Op op) {
  return op == Op::kAllReduce || op == Op::kReduce || op == Op::kReduceScatter;
}

}  // namespace

uint64_t digest(const Call& call) {
  const uint64_t kind = static_cast<uint64_t>(call.op) | static_cast<uint64_t>(call.dtype) << 8U |
                        static_cast<uint64_t>(call.reduction) << 16U |
                        static_cast<uint64_t>(static_cast<uint32_t>(call.root)) << 32U;
  uint64_t all = mixed(mixed(0, kind), static_cast<uint64_t>(call.seq));
  all = mixed(all, static_cast<uint64_t>(call.bytes));
  all = mixed(all, call.parts);
  all = mixed(all, static_cast<uint64_t>(call.place.update) << 32U | call.place.pass);
  all = mixed(all, call.place.frozen);
  all = mixed(all, static_cast<uint64_t>(call.place.unit) << 32U | call.place.layout);
  all = mixed(all, call.exact ? 1 : 0);
  return mixed(all, call.step);
}

Call step_of(const Call& whole, const Call& call) {
  Call step = whole;
  step.step = mixed(whole.step, digest(call));
  return step;
}

const char* name_of(Op op) {
  switch (op) {
    case Op::kConnect:
      return "connect";
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kReduce:
      return "reduce";
    case Op::kReduceScatter:
      return "reduce_scatter";
    case Op::kBroadcast:
      return "broadcast";
    case Op::kAllGather:
      return "all_gather";
    case Op::kAllGatherV:
      return "all_gather_v";
    case Op::kGather:
      return "gather";
    case Op::kScatter:
      return "scatter";
    case Op::kAllToAll:
      return "all_to_all";
    case Op::kAllToAllV:
      return "all_to_all_v";
    case Op::kBarrier:
      return "barrier";
    case Op::kShare:
      return "share";
  }
  return "unknown operation";
}

std::string in_words(const Call& call) {
  std::string words = name_of(call.op);
  if (call.op != Op::kConnect && call.op != Op::kBarrier && call.op != Op::kAllToAllV) {
    words += fmt::format(" of {} B", call.bytes);
  }
  if (has_elements(call.op)) {
    words += fmt::format(" of {}", to_string(call.dtype));
  }
  if (reduces(call.op)) {
    words += fmt::format(" ({})", to_string(call.reduction));
  }
  if (call.root >= 0) {
    words += fmt::format(" with root {}", call.root);
  }
  return words;
}

namespace {

bool is_step(const TrainingPlace& place) {
  return place.pass == 0;
}

std::string in_words(const TrainingPlace& place) {
  if (is_step(place)) {
    return "calls optimizer.step()";
  }
  return place.pass == 1
             ? fmt::format("begins update {}", place.update)
             : fmt::format("begins backward pass {} of update {}", place.pass, place.update);
}

/// The rank that is behind comes first: it is the one that did something else, more often than not.
std::string out_of_step(std::string_view rank,
                        const TrainingPlace& place,
                        std::string_view other_rank,
                        const TrainingPlace& other) {
  if (place.unit != other.unit) {
    return fmt::format(
        "{} uses unit {} of its divided parameters while {} uses unit {}: all ranks must use them "
        "in the same order. Where they go different ways through a model, hold "
        "whole_parameters()",
        rank,
        place.unit,
        other_rank,
        other.unit);
  }
  if (is_step(place) && is_step(other)) {
    return fmt::format(
        "{} is in step {} of an optimizer while {} is in step {} of one: all ranks "
        "must step the same optimizers in the same order",
        rank,
        place.update,
        other_rank,
        other.update);
  }
  if (other.update == place.update && other.pass == place.pass && other.frozen == place.frozen) {
    return fmt::format(
        "{} and {} hold their parameters in different memory formats: set the same memory_format "
        "on all ranks, \"as_is\" or \"channels_last\"",
        rank,
        other_rank);
  }
  if (other.update == place.update && other.pass == place.pass) {
    return fmt::format(
        "{} has frozen other parameters (requires_grad_(false)) than {}: all ranks must freeze the "
        "same ones",
        rank,
        other_rank);
  }
  if (is_step(place) || (!is_step(other) && other.update < place.update)) {
    return out_of_step(other_rank, other, rank, place);
  }
  return fmt::format(
      "{0} {1} while {2} {3}: did {0} skip optimizer.step(), or did it run fewer or more backward "
      "passes? Gather the gradients of several passes under no_sync(); where ranks have inputs of "
      "different length, use join()",
      rank,
      in_words(place),
      other_rank,
      in_words(other));
}

}  // namespace

std::string disagreement(std::string_view rank,
                         const Call& call,
                         std::string_view other_rank,
                         const Call& other) {
  if (call.place != other.place && call.place.update > 0 && other.place.update > 0) {
    return out_of_step(rank, call.place, other_rank, other.place);
  }
  const bool numbers = call.seq != other.seq;
  const auto words = [&](const Call& c) {
    return numbers ? fmt::format("{} (seq {})", in_words(c), c.seq) : in_words(c);
  };
  std::string text =
      fmt::format("{} called {} where {} called {}", rank, words(call), other_rank, words(other));
  if (call.parts != other.parts && call.op == other.op) {
    text += reduces(call.op) ? ", with other virtual ranks" : ", in other parts";
  } else if (call.exact != other.exact) {
    text += fmt::format(
        ", and only {} wants exact sums: set ARGOSY_NCCL_MODE and setDeterministicAlgorithms() "
        "alike "
        "on all ranks",
        call.exact ? rank : other_rank);
  } else if (call.step != other.step && in_words(call) == in_words(other)) {
    text += ", as another step of it";
  }
  return text;
}

}  // namespace argosy::transport
