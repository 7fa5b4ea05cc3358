#include "argosy/parallel/ddp/verify.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/fingerprint.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/deferred.h"
#include "argosy/parallel/ddp/parameter_table.h"

namespace argosy::parallel::ddp {
namespace {

constexpr size_t kShown = 5;  // differences in one message

std::string describe(const at::Tensor& tensor) {
  std::string text = dtype_name(tensor.scalar_type()) + " " + text::shape(tensor.sizes());
  if (tensor.layout() == at::kStrided && !tensor.is_contiguous()) {
    text += " strides " + text::shape(tensor.strides());  // the layout of the bucket depends on it
  }
  if (!tensor.device().is_cpu()) {  // shared memory depends on it; which of them may differ
    text += " on " + c10::DeviceTypeName(tensor.device().type(), /*lower_case=*/true);
  }
  if (engine::is_deferred(tensor)) {  // each rank computes its part of them
    text += fmt::format(" with initial values {:016x}", engine::identity_of_values(tensor));
  }
  return text;
}

std::string in_words(const std::optional<MixedPrecision>& mixed) {
  return !mixed.has_value() ? "as they are"
                            : fmt::format("parameters in {}, gradients in {}",
                                          dtype_name(mixed->param_dtype),
                                          dtype_name(mixed->reduces_in()));
}

std::string in_words(const std::optional<ShardOptions>& shard) {
  return !shard.has_value()
             ? "unset"
             : fmt::format("degree {}, {}, units [{}], unit_bytes {}, kept {}, {}, {}, {}",
                           shard->degree,
                           shard->mesh.valid() ? "a mesh" : "no mesh",
                           fmt::join(shard->units, ", "),
                           shard->unit_bytes,
                           shard->kept,
                           shard->reshard_after_forward ? "reshard" : "keep whole",
                           in_words(shard->mixed_precision),
                           shard->offload.has_value() ? "offload" : "in memory");
}

std::string serialise(const Signature& signature) {
  std::string text;
  for (const auto& [name, value] : signature.lines) {
    text += name + '\t' + value + '\n';
  }
  return text;
}

Signature parse(const std::string& text) {
  Signature signature;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const size_t tab = text.find('\t', begin);
    ARGOSY_INVARIANT(tab < end && end != std::string::npos, "parallel.verify");
    signature.lines.push_back(
        {text.substr(begin, tab - begin), text.substr(tab + 1, end - tab - 1)});
    begin = end + 1;
  }
  return signature;
}

std::string digest(const std::string& text) {
  Fingerprint all;
  all.add(text);
  return fmt::format("{:016x}", all.value());
}

}  // namespace

Signature describe(const torch::nn::Module& module, const DdpOptions& options) {
  Signature out;
  out.lines.push_back({"option first_bucket_bytes", std::to_string(options.first_bucket_bytes)});
  out.lines.push_back({"option bucket_cap_bytes", std::to_string(options.bucket_cap_bytes)});
  out.lines.push_back(
      {"option find_unused_parameters", options.find_unused_parameters ? "true" : "false"});
  out.lines.push_back({"option broadcast_buffers", options.broadcast_buffers ? "true" : "false"});
  out.lines.push_back({"option shared_memory", options.shared_memory ? "true" : "false"});
  out.lines.push_back(
      {"option memory_format", std::string(engine::to_string(options.memory_format))});
  out.lines.push_back(
      {"option autocast", options.autocast ? dtype_name(*options.autocast) : "unset"});
  out.lines.push_back({"option shard", in_words(options.shard)});
  out.lines.push_back({"option virtual_ranks", std::to_string(options.virtual_ranks)});
  out.lines.push_back({"option check_drift", options.check_drift ? "true" : "false"});
  std::unordered_map<const c10::TensorImpl*, std::string> first_name;
  auto add = [&](const std::string& prefix, const auto& items) {
    for (const auto& item : items) {
      if (!item.value().defined()) {
        continue;
      }
      const auto [known, is_new] =
          first_name.try_emplace(item.value().unsafeGetTensorImpl(), item.key());
      const bool frozen = prefix.empty() && !item.value().requires_grad();
      out.lines.push_back(
          {prefix + item.key(),
           is_new ? describe(item.value()) + (frozen ? " frozen" : "") : "= " + known->second});
    }
  };
  add("", module.named_parameters());
  add("buffer ", module.named_buffers());
  return out;
}

std::vector<std::string> differences(const Signature& first, const Signature& other) {
  std::map<std::string, std::string> reference;
  std::map<std::string, std::string> theirs;
  for (const auto& [name, value] : first.lines) {
    reference[name] = value;
  }
  std::vector<std::string> out;
  for (const auto& [name, value] : other.lines) {
    theirs[name] = value;
    const auto known = reference.find(name);
    if (known == reference.end()) {
      out.push_back(fmt::format("{} {}, rank 0 has no such", name, value));
    } else if (known->second != value) {
      out.push_back(fmt::format("{} {}, rank 0: {}", name, value, known->second));
    }
  }
  for (const auto& [name, value] : first.lines) {
    if (!theirs.contains(name)) {
      out.push_back(fmt::format("no {}, rank 0: {}", name, value));
    }
  }
  if (out.empty()) {  // the same names, in another order
    for (size_t k = 0; k < first.lines.size(); ++k) {
      if (first.lines[k].name != other.lines[k].name) {
        out.push_back(fmt::format("{} stands where rank 0 has {} (order of registration)",
                                  other.lines[k].name,
                                  first.lines[k].name));
        break;
      }
    }
  }
  return out;
}

void verify_equal(const Signature& mine,
                  const comm::Group& group,
                  std::chrono::milliseconds timeout,
                  const Subject& subject) {
  const std::string text = serialise(mine);
  const auto digests = comm::all_gather_object(digest(text), group, {.timeout = timeout});
  if (std::all_of(
          digests.begin(), digests.end(), [&](const auto& d) { return d == digests.front(); })) {
    return;
  }
  const auto texts = comm::all_gather_object(text, group, {.timeout = timeout});
  const Signature reference = parse(texts.front());
  std::vector<std::pair<std::string, std::vector<int>>> ranks_of;  // that have each difference
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    for (const std::string& each : differences(reference, parse(texts[rank]))) {
      auto known = std::ranges::find(ranks_of, each, &decltype(ranks_of)::value_type::first);
      known = known != ranks_of.end() ? known : ranks_of.insert(known, {each, {}});
      known->second.push_back(static_cast<int>(rank));
    }
  }
  std::vector<std::string> found;
  for (const auto& [difference, ranks] : ranks_of) {
    found.push_back(fmt::format(
        "{} {}: {}", ranks.size() == 1 ? "rank" : "ranks", strings::ranges(ranks), difference));
  }
  const size_t shown = std::min(kShown, found.size());
  std::string list = fmt::format("{}", fmt::join(found.begin(), found.begin() + shown, "; "));
  if (found.size() > shown) {
    list += fmt::format("; and {} more", found.size() - shown);
  }
  throw UsageError(subject.where,
                   fmt::format("{} between ranks of group \"{}\": {}. {}",
                               subject.what,
                               group.name(),
                               list,
                               subject.advice));
}

}  // namespace argosy::parallel::ddp
