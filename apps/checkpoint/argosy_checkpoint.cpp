// `argosy checkpoint`: a program of its own, which `argosy` becomes. It links no libtorch: what
// needs tensors is in argosy-torch, which it becomes in turn.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/prune.h"
#include "argosy/checkpoint/weights_digest.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"

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
             text::table({"checkpoint", "step", "epoch", "score", "time", "size", "state"}, rows));
}

struct Options {
  std::string path{};
  std::string given{};
  bool json = false;
};

/// Of a run its folder of checkpoints.
std::string folder_of(const std::string& path) {
  const fs::path of_run = fs::path(path) / "checkpoints";
  std::error_code error;
  return !checkpoint::is_checkpoint(path) && fs::is_directory(of_run, error) ? of_run.string()
                                                                             : path;
}

/// What all commands have in common; false: --help was printed. `example` follows the command's
/// name.
bool parse(std::string_view command,
           std::string_view what,
           std::string_view example,
           Options& options,
           const Words& args,
           program::Options more = {}) {
  more.insert(
      more.begin(),
      {"PATH", "", "A checkpoint, a folder of them, or a run", &options.path, {.required = true}});
  more.push_back(program::json_option(&options.json));
  const std::string name = fmt::format("argosy checkpoint {}", command);
  const std::string end = fmt::format("Example: {} {}", name, example);
  const bool helped = program::parse_or_help({.what = what, .name = name, .end = end}, more, args);
  options.given = options.path;
  options.path = folder_of(options.path);
  return !helped;
}

int run_ls(const Words& args) {
  Options options;
  if (!parse("ls",
             "The checkpoints in a folder, the newest first. Sizes are looked at, not bytes.",
             "runs/a/checkpoints",
             options,
             args)) {
    return 0;
  }
  const std::vector<Inspected> all =
      checkpoint::is_checkpoint(options.path)
          ? std::vector{checkpoint::inspect(options.path, Check::kSizes)}
          : checkpoint::list(options.path, Check::kSizes);
  if (options.json) {
    Json rows = Json::array();
    std::ranges::transform(all, std::back_inserter(rows), row);
    program::print_json(rows);
  } else if (all.empty()) {
    fmt::print("{}: no checkpoints\n", options.path);
  } else {
    print_table(all);
  }
  return 0;
}

int run_verify(const Words& args) {
  Options options;
  if (!parse("verify",
             "Read every byte and compare it with its checksum: of a checkpoint, or of all in a "
             "folder.\n"
             "Exit codes: 0 all whole, 1 something is torn or damaged, 2 wrong usage.",
             "runs/a/checkpoints",
             options,
             args)) {
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
    program::print_json({{"ok", fine}, {"checkpoints", std::move(rows)}});
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
  fmt::print("\n{}\n", text::table({"file", "size", "checksum"}, files));
  std::vector<std::vector<std::string>> tensors;
  for (const checkpoint::ManifestTensor& tensor : manifest.tensors) {
    tensors.push_back({tensor.part,
                       tensor.name,
                       tensor.dtype,
                       fmt::format("{}", fmt::join(tensor.shape, " x "))});
  }
  fmt::print("{}", text::table({"part", "tensor", "type", "shape"}, tensors));
}

int run_show(const Words& args) {
  Options options;
  if (!parse(
          "show", "What a checkpoint holds.", "runs/a/checkpoints/step-000000120", options, args)) {
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
  program::print_json(json);
  return 0;
}

/// By what `argosy train` writes into its folder.
bool is_run(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(fs::path(path) / "recipe.json", error);
}

int run_hash(const Words& args) {
  Options options;
  if (!parse(
          "hash",
          "One word (SHA-256) for weights: their names, types, shapes and bytes. The same for a "
          ".pt, a .safetensors and the checkpoint of the same weights. For a run of argosy train: "
          "the weights at its end, or those of its newest checkpoint if that is later. With "
          "--ema it is their average.",
          "runs/a/checkpoints",
          options,
          args)) {
    return 0;
  }
  const bool of_run = is_run(options.given);
  const std::string path = of_run ? options.given : resolve(options.path);
  if (of_run || !checkpoint::is_hashed_without_torch(path)) {
    Words words{"checkpoint-hash", path};
    if (options.json) {
      words.emplace_back("--json");
    }
    program::become("argosy-torch", words);
  }
  const std::string word = checkpoint::weights_hash(path);
  if (options.json) {
    program::print_json({{"path", path}, {"hash", word}});
  } else {
    fmt::print("{}  {}\n", word, path);
  }
  return 0;
}

int run_prune(const Words& args) {
  Options options;
  checkpoint::PruneOptions prune;
  std::string best = "highest";
  if (!parse(
          "prune",
          "Remove all whole checkpoints but the last and the best, and what killed processes "
          "left.\n"
          "The newest whole one always stays, and so does what is torn or damaged.",
          "runs/a/checkpoints --keep_last 3 --dry_run",
          options,
          args,
          {{"--keep_last",
            "N",
            "Keep the N newest",
            &prune.keep.keep_last,
            {.least = 1, .required = true}},
           {"--keep_best",
            "N",
            "Also keep the N with the best score",
            &prune.keep.keep_best,
            {.least = 0}},
           {"--best", "WORD", "Which score is best", &best, {.words = "highest|lowest"}},
           {"--dry_run", "", "Print what would be removed, and remove nothing", &prune.dry_run}})) {
    return 0;
  }
  prune.keep.best = best == "highest" ? checkpoint::Best::kHighest : checkpoint::Best::kLowest;
  const checkpoint::Pruned done = checkpoint::prune(options.path, prune);
  if (options.json) {
    Json left = Json::array();
    std::ranges::transform(done.left, std::back_inserter(left), row);
    program::print_json({{"removed", done.removed},
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
    .purpose = "List, verify, show, hash, convert and prune checkpoints.",
    .usage = "<command> PATH [options]",
    .all = {{"ls", "List the checkpoints in a folder, newest first", run_ls},
            {"verify", "Compare every file with its checksum", run_verify},
            {"show", "Show what a checkpoint holds: step, files, tensors", run_show},
            {"hash", "Print a hash of the weights, the same for every file format", run_hash},
            {"convert",
             "Convert between .pt, .safetensors, .pdparams and checkpoints",
             nullptr,
             "argosy-torch checkpoint-convert"},
            {"prune", "Remove all but the last and the best", run_prune}},
    .more = R"(PATH is a checkpoint. For a folder of checkpoints or a run, the command uses the
newest whole checkpoint. hash and convert also take a file of weights, and of a
run that has ended the weights at its end.

argosy checkpoint <command> --help shows the options of a command. Example:
  argosy checkpoint ls runs/a/checkpoints
)"};

}  // namespace
}  // namespace argosy::apps

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, [](const argosy::program::Words& args) {
    return dispatch(argosy::apps::kCommands, args);
  });
}
