// `argosy checkpoint`: a program of its own, which `argosy` becomes. It links no libtorch: what
// needs tensors is in argosy-torch, which it becomes in turn.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/prune.h"
#include "argosy/checkpoint/weights_digest.h"
#include "argosy/events/table.h"
#include "argosy/program/commands.h"

#include "apps/checkpoint/arguments.h"
#include <nlohmann/json.hpp>

namespace argosy::apps {
namespace {

namespace fs = std::filesystem;
using checkpoint::Check;
using checkpoint::Inspected;
using checkpoint::Manifest;
using checkpoint::State;
using Json = nlohmann::ordered_json;
using program::Words;

void print_json(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string name_of(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path()).filename().string();
}

/// `path` itself, or the newest whole checkpoint in it.
std::string resolve(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || checkpoint::is_checkpoint(path)) {
    return path;
  }
  const checkpoint::Newest newest = checkpoint::find_newest(path);
  for (const std::string& remark : newest.remarks()) {
    fmt::print(stderr, "{}\n", remark);
  }
  if (!newest.path) {
    throw CheckpointError("checkpoint.inspect",
                          "there is no whole checkpoint in this folder. See what there is: argosy "
                          "checkpoint ls",
                          {path, {}});
  }
  fmt::print(stderr, "the newest whole one: {}\n", *newest.path);
  return *newest.path;
}

Json row(const Inspected& one) {
  Json json{{"path", one.path}, {"state", to_string(one.state)}, {"reason", one.reason}};
  if (one.manifest) {
    const Manifest& manifest = *one.manifest;
    json.update({{"step", manifest.step},
                 {"epoch", manifest.epoch},
                 {"score", manifest.score ? Json(*manifest.score) : Json()},
                 {"time", manifest.time},
                 {"world_size", manifest.world_size},
                 {"hosts", manifest.hosts},
                 {"library", manifest.library},
                 {"bytes", manifest.bytes()}});
  }
  return json;
}

void print_table(const std::vector<Inspected>& all) {
  std::vector<std::vector<std::string>> rows;
  for (const Inspected& one : all) {
    const std::string what(one.reason.empty()
                               ? std::string(to_string(one.state))
                               : fmt::format("{}: {}", to_string(one.state), one.reason));
    if (one.manifest) {
      const Manifest& m = *one.manifest;
      rows.push_back({name_of(one.path),
                      fmt::format("{}", m.step),
                      fmt::format("{}", m.epoch),
                      m.score ? fmt::format("{:.6g}", *m.score) : "",
                      m.time.substr(0, 19),
                      text::bytes(m.bytes()),
                      what});
    } else {
      rows.push_back({name_of(one.path), "", "", "", "", "", what});
    }
  }
  fmt::print("{}",
             events::format_table({"checkpoint", "step", "epoch", "score", "time", "size", "state"},
                                  rows));
}

struct Options {
  std::string path{};
  bool json = false;
};

/// Of a run its folder of checkpoints.
std::string folder_of(const std::string& path) {
  const fs::path of_run = fs::path(path) / "checkpoints";
  std::error_code error;
  return !checkpoint::is_checkpoint(path) && fs::is_directory(of_run, error) ? of_run.string()
                                                                             : path;
}

/// What all commands have in common; false: --help was printed.
bool parse(CLI::App& app, const std::string& command, Options& options, const Words& args) {
  app.name("argosy checkpoint " + command);
  app.add_option("PATH", options.path, "A checkpoint, a folder of them, or a run")->required();
  app.add_flag("--json", options.json, "For programs");
  const bool helped = parse_or_help(app, args);
  options.path = folder_of(options.path);
  return !helped;
}

int run_ls(const Words& args) {
  CLI::App app("The checkpoints in a folder, the newest first. Sizes are looked at, not bytes.\n");
  app.footer("\nExample: argosy checkpoint ls runs/a/checkpoints");
  Options options;
  if (!parse(app, "ls", options, args)) {
    return 0;
  }
  const std::vector<Inspected> all =
      checkpoint::is_checkpoint(options.path)
          ? std::vector{checkpoint::inspect(options.path, Check::kSizes)}
          : checkpoint::list(options.path, Check::kSizes);
  if (options.json) {
    Json rows = Json::array();
    std::ranges::transform(all, std::back_inserter(rows), row);
    print_json(rows);
  } else if (all.empty()) {
    fmt::print("{}: no checkpoints\n", options.path);
  } else {
    print_table(all);
  }
  return 0;
}

int run_verify(const Words& args) {
  CLI::App app(
      "Read every byte and compare it with its checksum: of a checkpoint, or of all in a folder.\n"
      "Exit codes: 0 all whole, 1 something is torn or damaged, 2 wrong usage.\n");
  app.footer("\nExample: argosy checkpoint verify runs/a/checkpoints");
  Options options;
  if (!parse(app, "verify", options, args)) {
    return 0;
  }
  const bool one = checkpoint::is_checkpoint(options.path);
  std::vector<Inspected> all =
      one ? std::vector{checkpoint::inspect(options.path, Check::kChecksums)}
          : checkpoint::list(options.path, Check::kChecksums);
  if (!one && all.empty()) {
    all = {checkpoint::inspect(options.path, Check::kChecksums)};  // says what it lacks
  }
  const auto whole = std::ranges::count(all, State::kWhole, &Inspected::state);
  const bool fine = whole == static_cast<int64_t>(all.size());
  if (options.json) {
    Json rows = Json::array();
    std::ranges::transform(all, std::back_inserter(rows), row);
    print_json({{"ok", fine}, {"checkpoints", std::move(rows)}});
    return fine ? 0 : program::kFailed;
  }
  for (const Inspected& found : all) {
    fmt::print("{:<8} {}{}{}\n",
               to_string(found.state),
               found.path,
               found.reason.empty() ? "" : ": ",
               found.reason);
  }
  fmt::print("{} of {} whole\n", whole, all.size());
  return fine ? 0 : program::kFailed;
}

void print_manifest(const std::string& path, const Manifest& manifest) {
  fmt::print("{}\nstep       {}\nepoch      {}\ntime       {}\nranks      {}\nwritten by {}\n",
             path,
             manifest.step,
             manifest.epoch,
             manifest.time,
             manifest.world_size,
             manifest.library);
  if (manifest.score) {
    fmt::print("score      {}\n", *manifest.score);
  }
  std::vector<std::vector<std::string>> files;
  for (const checkpoint::ManifestFile& file : manifest.files) {
    files.push_back({file.name, text::bytes(file.bytes), file.checksum});
  }
  fmt::print("\n{}\n", events::format_table({"file", "size", "checksum"}, files));
  std::vector<std::vector<std::string>> tensors;
  for (const checkpoint::ManifestTensor& tensor : manifest.tensors) {
    tensors.push_back({tensor.part,
                       tensor.name,
                       tensor.dtype,
                       fmt::format("{}", fmt::join(tensor.shape, " x "))});
  }
  fmt::print("{}", events::format_table({"part", "tensor", "type", "shape"}, tensors));
}

int run_show(const Words& args) {
  CLI::App app("What a checkpoint holds.\n");
  app.footer("\nExample: argosy checkpoint show runs/a/checkpoints/step-000000120");
  Options options;
  if (!parse(app, "show", options, args)) {
    return 0;
  }
  const std::string path = resolve(options.path);
  const Manifest manifest = checkpoint::read_manifest(path);
  if (!options.json) {
    print_manifest(path, manifest);
    return 0;
  }
  Json json = Json::parse(to_text(manifest));
  json["path"] = path;
  print_json(json);
  return 0;
}

int run_hash(const Words& args) {
  CLI::App app(
      "One word (SHA-256) for weights: their names, types, shapes and bytes. The same for a .pt,\n"
      "a .safetensors and the checkpoint of the same weights.\n");
  app.footer("\nExample: argosy checkpoint hash runs/a/checkpoints");
  Options options;
  if (!parse(app, "hash", options, args)) {
    return 0;
  }
  const std::string path = resolve(options.path);
  if (!checkpoint::is_hashed_without_torch(path)) {
    Words words{"checkpoint-hash", path};
    if (options.json) {
      words.emplace_back("--json");
    }
    program::become("argosy-torch", words);
  }
  const std::string word = checkpoint::weights_hash(path);
  if (options.json) {
    print_json({{"path", path}, {"hash", word}});
  } else {
    fmt::print("{}  {}\n", word, path);
  }
  return 0;
}

int run_prune(const Words& args) {
  CLI::App app(
      "Remove all whole checkpoints but the last and the best, and what killed processes left.\n"
      "The newest whole one always stays, and so does what is torn or damaged.\n");
  app.footer("\nExample: argosy checkpoint prune runs/a/checkpoints --keep_last 3 --dry_run");
  Options options;
  checkpoint::PruneOptions prune;
  app.add_option("--keep_last", prune.keep.keep_last, "So many of the newest. Required")
      ->check(CLI::PositiveNumber);
  app.add_option("--keep_best", prune.keep.keep_best, "And so many of the best score. Default: 0")
      ->check(CLI::NonNegativeNumber);
  const std::map<std::string, checkpoint::Best> kinds{{"highest", checkpoint::Best::kHighest},
                                                      {"lowest", checkpoint::Best::kLowest}};
  app.add_option("--best", prune.keep.best, "What the best is: highest (default) or lowest")
      ->transform(CLI::CheckedTransformer(kinds))
      ->option_text("highest|lowest");
  app.add_flag("--dry_run", prune.dry_run, "Say what would go, and remove nothing");
  if (!parse(app, "prune", options, args)) {
    return 0;
  }
  if (prune.keep.keep_last == 0) {
    throw UsageError("checkpoint.arguments",
                     "--keep_last is required. See: argosy checkpoint prune --help");
  }
  const checkpoint::Pruned done = checkpoint::prune(options.path, prune);
  if (options.json) {
    Json left = Json::array();
    std::ranges::transform(done.left, std::back_inserter(left), row);
    print_json({{"removed", done.removed},
                {"kept", done.kept},
                {"left", std::move(left)},
                {"dry_run", prune.dry_run}});
    return 0;
  }
  for (const std::string& path : done.removed) {
    fmt::print("{} {}\n", prune.dry_run ? "would remove" : "removed", path);
  }
  for (const Inspected& one : done.left) {
    fmt::print("left alone {}, which is {}: {}\n", one.path, to_string(one.state), one.reason);
  }
  fmt::print("{} kept, {} {}\n",
             done.kept.size(),
             done.removed.size(),
             prune.dry_run ? "would go" : "removed");
  return 0;
}

const program::Commands kCommands{
    .name = "argosy checkpoint",
    .purpose = "Checkpoints: what lies in a folder, whether it is whole, what is in it.",
    .usage = "<command> PATH [options]",
    .all = {{"ls", "The checkpoints in a folder, the newest first", run_ls},
            {"verify", "Read every byte and compare it with its checksum", run_verify},
            {"show", "What a checkpoint holds: step, files, tensors", run_show},
            {"hash",
             "One word for the weights, the same whatever file or checkpoint holds them",
             run_hash},
            {"convert",
             "Between .pt, .safetensors and checkpoints; from .pdparams too",
             nullptr,
             "argosy-torch checkpoint-convert"},
            {"prune", "Remove all but the last and the best", run_prune}},
    .more = R"(PATH is a checkpoint; or a folder of checkpoints or a run, of which the newest
whole one is meant. To convert it is the checkpoint itself, or a file.

argosy checkpoint <command> --help for a command's options. Example:
  argosy checkpoint ls runs/a/checkpoints
)"};

}  // namespace
}  // namespace argosy::apps

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, [](const argosy::program::Words& args) {
    return dispatch(argosy::apps::kCommands, args);
  });
}
