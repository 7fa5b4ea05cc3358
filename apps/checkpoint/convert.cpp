#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/dcp_file_write.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/save_weights.h"
#include "argosy/checkpoint/saver.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/program/command_line.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/restore.h"

#include "apps/torch_commands.h"
#include <nlohmann/json.hpp>

namespace argosy::apps {
namespace {

namespace fs = std::filesystem;

/// What a checkpoint's folder tells beside its weights, where that is what is read.
checkpoint::Snapshot snapshot_of(const std::string& from, engine::StateDict dict) {
  checkpoint::Snapshot snapshot;
  if (checkpoint::weights_kind(from) == checkpoint::WeightsKind::kFolder) {
    snapshot.step = checkpoint::Checkpoint(from).manifest().step;
    snapshot.epoch = checkpoint::Checkpoint(from).manifest().epoch;
  }
  snapshot.parts.emplace_back("model", std::move(dict));
  return snapshot;
}

/// By what the name ends with, as its readers expect it.
std::string write(const std::string& from,
                  const std::string& to,
                  engine::StateDict dict,
                  const recipes::BuiltModel& model) {
  const fs::path path = fs::path(to).has_filename() ? fs::path(to) : fs::path(to).parent_path();
  const std::string end = path.extension().string();
  if (end == ".pdparams" && model.module != nullptr) {
    checkpoint::save_weights(*model.module, to);
    return "paddle";
  }
  if (end == ".pdparams") {
    throw UsageError(
        "checkpoint.convert",
        ".pdparams needs the model, which alone knows whose weights Paddle transposes: --model "
        "NAME, one of argosy train --list models; or checkpoint::save_weights(model, path)");
  }
  if (end == ".dcp") {
    checkpoint::write_dcp(to, dict);
    return "dcp";
  }
  const bool is_weights = checkpoint::is_weights_ending(end);
  if (!is_weights && end.size() > 1 && std::ranges::all_of(end.substr(1), [](char c) {
        return std::isalpha(static_cast<unsigned char>(c)) != 0;
      })) {
    throw UsageError(
        "checkpoint.convert",
        fmt::format("{} is not written: expected .pt, .pth, .safetensors, .pdparams, .dcp, or a "
                    "name without an ending for a checkpoint's folder",
                    end));
  }
  if (is_weights) {
    checkpoint::save_weights(dict, to);
    return end == ".safetensors" ? "safetensors" : "torch";
  }
  const std::string parent = path.parent_path().string();
  checkpoint::Saver saver(parent.empty() ? "." : parent, {.async = false});
  saver.save(snapshot_of(from, std::move(dict)), path.filename().string());
  return "checkpoint";
}

/// A run's folder stands for what the run would end with now, and a checkpoint for its parts.
recipes::RunWeights weights_of(const std::string& path, const std::string& part) {
  recipes::RunWeights found = recipes::weights_in(path);
  ARGOSY_CHECK(
      part.empty() || checkpoint::weights_kind(found.path) == checkpoint::WeightsKind::kFolder,
      "checkpoint.convert",
      "--part {}: {} has no parts, which checkpoints have. Name one of those that argosy "
      "checkpoint ls lists",
      part,
      found.path);
  found.averaged &= part.empty();
  return found;
}

/// Who evaluates such a checkpoint takes the average.
void tell_of_average(const recipes::RunWeights& from, const std::string& part) {
  if (part.empty() && !from.averaged &&
      checkpoint::weights_kind(from.path) == checkpoint::WeightsKind::kFolder) {
    const checkpoint::Checkpoint given(from.path);
    if (std::ranges::count(given.manifest().parts, "ema") > 0) {
      log::warn("{} has the weights and their average. Taken: the weights. The average: --part ema",
                from.path);
    }
  }
}

/// Errors: CheckpointError unless all weights are the model's. Paddle keeps no counts of batches.
void fill(const torch::nn::Module& module,
          const recipes::RunWeights& from,
          const checkpoint::ReadWeightsOptions& options) {
  const engine::LoadResult done = recipes::load_weights(
      module,
      from,
      options,
      {.strict = false,
       .advice = "Give --model with the options with which it was trained. Where only the types "
                 "differ, leave it out."});
  const bool lacks = std::ranges::any_of(
      done.missing, [](const std::string& name) { return !name.ends_with("num_batches_tracked"); });
  if (lacks || !done.unexpected.empty()) {
    throw CheckpointError("checkpoint.convert",
                          "these are not the weights of --model: " + done.to_string(),
                          {from.path, {}});
  }
}

/// "pattern=replacement"
checkpoint::Rename rename_of(const std::string& text) {
  const size_t middle = text.find('=');
  if (middle == std::string::npos) {
    throw UsageError("checkpoint.convert",
                     fmt::format("--rename: expected PATTERN=REPLACEMENT, got \"{}\"", text));
  }
  return {text.substr(0, middle), text.substr(middle + 1)};
}

}  // namespace

int checkpoint_convert(const std::vector<std::string>& args) {
  std::string path;
  std::string part;
  std::string to;
  checkpoint::ReadWeightsOptions options;
  std::vector<std::string> renames;
  std::string model;
  bool json = false;
  if (program::parse_or_help(
          {.what = "Write the weights of one file into another. From: .pt, .pth, .safetensors, "
                   ".pdparams, a checkpoint of any number of ranks. To: what the name says: .pt, "
                   ".pth, .safetensors, .pdparams, .dcp (a folder of PyTorch's distributed "
                   "checkpoint); else a checkpoint's folder. From a checkpoint into .safetensors "
                   "or .dcp, tensors come one after the other through memory.",
           .name = "argosy checkpoint convert",
           .end = "Example: argosy checkpoint convert resnet50.pth resnet50.safetensors"},
          {{"FROM", "", "File, checkpoint or a run's folder to read", &path, {.required = true}},
           {"TO",
            "",
            "File or checkpoint to write; an existing one is replaced",
            &to,
            {.required = true}},
           {"--part", "NAME", "Part of the checkpoint to read", &part},
           {"--key", "NAME", "Key of the state_dict in a .pt that holds more", &options.key},
           {"--strip_prefix",
            "TEXT",
            "Prefix to remove from names, such as module.",
            &options.strip_prefix},
           {"--rename",
            "RULE",
            "PATTERN=REPLACEMENT, a regular expression; may be given several times",
            &renames},
           {"--model",
            "NAME",
            "Model of the weights (see argosy train --list models). Without it those of linear "
            "layers "
            "in Paddle's files stay transposed, as Paddle keeps them",
            &model},
           program::json_option(&json)},
          args)) {
    return 0;
  }
  for (const std::string& text : renames) {
    options.renames.push_back(rename_of(text));
  }
  const recipes::RunWeights from = weights_of(path, part);
  tell_of_average(from, part);
  options.part = part.empty() ? options.part : part;
  if (model.empty() && checkpoint::weights_kind(from.path) == checkpoint::WeightsKind::kPaddle) {
    log::warn(
        "{} is Paddle's: the weights of linear layers stay transposed, as Paddle keeps them. Say "
        "which model it is of, --model NAME",
        from.path);
  }
  options.reading = checkpoint::Reading::kWhenUsed;
  engine::StateDict dict = recipes::read_weights(from, options);
  recipes::BuiltModel built;
  if (!model.empty()) {
    built = recipes::model_for(model, dict);
    fill(*built.module, from, options);
    dict = engine::state_dict(*built.module);
  }
  const size_t tensors = dict.size();
  const std::string word = checkpoint::weights_hash(dict);
  const std::string kind = write(from.path, to, std::move(dict), built);
  if (json) {
    program::print_json({{"path", to}, {"kind", kind}, {"tensors", tensors}, {"hash", word}});
  } else {
    fmt::print("{}: {} tensors, hash {}\n", to, tensors, word);
  }
  return 0;
}

int checkpoint_hash(const std::vector<std::string>& args) {
  std::string path;
  bool json = false;
  if (program::parse_or_help(
          {.what = "One word for the weights of a file.", .name = "argosy checkpoint hash"},
          {{"PATH", "", "File, checkpoint or a run's folder", &path, {.required = true}},
           program::json_option(&json)},
          args)) {
    return 0;
  }
  const recipes::RunWeights weights = weights_of(path, "");
  const std::string word = checkpoint::weights_hash(
      recipes::read_weights(weights, {.reading = checkpoint::Reading::kWhenUsed}));
  const std::string& what = weights.averaged ? path : weights.path;
  if (json) {
    program::print_json({{"path", what}, {"hash", word}});
  } else {
    fmt::print("{}  {}\n", word, what);
  }
  return 0;
}

}  // namespace argosy::apps
