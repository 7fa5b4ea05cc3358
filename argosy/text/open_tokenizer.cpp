#include "argosy/text/open_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/text/gpt2_files.h"
#include "argosy/text/sentencepiece_tokenizer.h"
#include "argosy/text/tokenizer_json.h"
#include "argosy/text/utf8.h"
#include "argosy/text/vocab_reader.h"

#include <nlohmann/json.hpp>

namespace argosy::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOpens = "text.open_tokenizer";
constexpr size_t kHeadBytes = 64;
constexpr size_t kMostNames = 8;  // of a folder, in a message

[[noreturn]] void cannot_open(const std::string& what, const fs::path& path) {
  throw DataError(kOpens, what, {path.string()});
}

/// What is no ASCII becomes '?' too: it may be the beginning of a picture.
std::string shown_head(std::string head) {
  std::replace_if(
      head.begin(), head.end(), [](char c) { return c < ' '; }, '?');
  return head;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Opens vocab.json and merges.txt.
Tokenizer open_pair(const fs::path& vocab, const fs::path& merges) {
  for (const fs::path& path : {vocab, merges}) {
    if (!is_file(path)) {
      cannot_open(
          "missing: GPT-2's tokenizer is vocab.json and merges.txt in one folder. Put it there",
          path);
    }
  }
  return read_gpt2_files(vocab.string(), merges.string());
}

Tokenizer open_file(const fs::path& path) {
  const std::string head = os::read_head(path.string(), kHeadBytes)
                               .or_throw<DataError>(kOpens, DataPlace{path.string()});
  const std::string_view text = std::string_view(head).substr(leading_space(head));
  if (text.starts_with('{')) {
    const nlohmann::json json = read_json(kOpens, path.string());
    return json.contains("model") ? read_tokenizer_json(path.string())
                                  : open_pair(path, path.parent_path() / "merges.txt");
  }
  if (head.starts_with("#version") || path.filename() == "merges.txt") {
    return open_pair(path.parent_path() / "vocab.json", path);
  }
  if (head.starts_with('\n')) {  // the tag of the first piece
    return read_sentencepiece(path.string());
  }
  cannot_open(
      fmt::format("no tokenizer: expected tokenizer.json, vocab.json, merges.txt or a .model of "
                  "sentencepiece, got a file that begins with \"{}\". Check the path",
                  shown_head(head.substr(0, 16))),
      path);
}

Tokenizer open_folder(const fs::path& folder) {
  if (is_file(folder / "tokenizer.json")) {
    return read_tokenizer_json((folder / "tokenizer.json").string());
  }
  if (is_file(folder / "vocab.json") || is_file(folder / "merges.txt")) {
    return open_pair(folder / "vocab.json", folder / "merges.txt");
  }
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    cannot_open("cannot read the folder: " + errno_message(error.value()), folder);
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> models;
  std::copy_if(names.begin(), names.end(), std::back_inserter(models), [](const auto& name) {
    return name.ends_with(".model");
  });
  if (models.size() == 1) {
    return read_sentencepiece((folder / models.front()).string());
  }
  if (models.size() > 1) {
    cannot_open(fmt::format("several models: expected one, got {}. Give the path of one of them",
                            fmt::join(models, ", ")),
                folder);
  }
  const bool more = names.size() > kMostNames;
  names.resize(std::min(names.size(), kMostNames));
  cannot_open(
      fmt::format("no tokenizer in this folder: expected tokenizer.json, vocab.json with "
                  "merges.txt, or a .model of sentencepiece, got {}{}. Check the path",
                  names.empty() ? "an empty folder" : fmt::format("{}", fmt::join(names, ", ")),
                  more ? ", …" : ""),
      folder);
}

}  // namespace

Tokenizer open_tokenizer(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return open_folder(path);
  }
  if (!fs::exists(path, error)) {
    if (path == "bytes") {
      return byte_tokenizer();
    }
    cannot_open(
        "no such file or folder: expected that of a tokenizer, or the word bytes. Check the path",
        path);
  }
  if (!is_file(path)) {
    cannot_open("expected a file or a folder, got something else. Give the file itself", path);
  }
  return open_file(path);
}

}  // namespace argosy::text
