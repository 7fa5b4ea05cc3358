#include "argosy/recipes/token_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/fingerprint.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/datasets/row.h"
#include "argosy/fleet/fleet.h"
#include "argosy/os/fd.h"
#include "argosy/text/make_token_file.h"

namespace argosy::recipes {
namespace {

namespace fs = std::filesystem;

/// By its first bytes; nanoGPT's have none, but an ending.
bool is_token_file(const fs::path& path) {
  constexpr std::string_view kMagic = "ARGOTOK\n";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return false;
  }
  const Result<std::string> head = os::read_head(path.string(), kMagic.size());
  return (head.ok() && *head == kMagic) || path.extension() == ".bin";
}

/// The files of a path: itself, or what lies in it.
std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return {path};
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
    if (entry.is_regular_file(error)) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

/// The name of what a tokenizer makes of files: it changes with their times and sizes.
std::string name_of(const fs::path& path,
                    text::Documents documents,
                    const text::Tokenizer& tokenizer) {
  Fingerprint print;
  print.add(tokenizer.digest());
  print.add(documents);
  std::error_code error;
  for (const fs::path& file : files_of(fs::absolute(path, error).lexically_normal())) {
    print.add(file.string());
    print.add(static_cast<uint64_t>(fs::file_size(file, error)));
    print.add(fs::last_write_time(file, error).time_since_epoch().count());
  }
  return fmt::format("{:016x}.tokens", print.value());
}

void make(const std::string& text, const fs::path& out, const auto& tokenizer, auto documents) {
  std::error_code error;
  fs::create_directories(out.parent_path(), error);
  if (error) {
    throw DataError("recipes.tokens",
                    fmt::format("cannot make the folder for tokens: {}. Set ARGOSY_DATA_HOME to a "
                                "folder that can be written",
                                error.message()),
                    {out.parent_path().string()});
  }
  const text::MadeTokenFile made =
      text::make_token_file({text}, out.string(), tokenizer, {.documents = documents});
  log::info("[recipes.tokens] {}: {} tokens of {}, in {}",
            text,
            text::count(made.tokens),
            tokenizer.kind(),
            out.string());
}

}  // namespace

text::TokenFile open_tokens(const DataSpec& spec,
                            const Values& values,
                            const text::Tokenizer& tokenizer) {
  const bool lines = values.word("documents", {"files", "lines"}) == "lines";
  const text::Documents documents = lines ? text::Documents::kLines : text::Documents::kFiles;
  fs::path path = spec.path;
  if (!is_token_file(path)) {
    path = fs::path(datasets::folder_of("tokens")) / name_of(spec.path, documents, tokenizer);
    std::error_code error;
    const bool joined = fleet::is_initialized();
    if ((!joined || fleet::local_rank() == 0) && !fs::exists(path, error)) {
      make(spec.path, path, tokenizer, documents);
    }
    if (joined) {
      fleet::barrier_worker();
    }
  }
  text::TokenFile tokens(path.string());
  tokens.check_made_by(tokenizer);
  return tokens;
}

}  // namespace argosy::recipes
