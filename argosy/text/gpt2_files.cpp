#include "argosy/text/gpt2_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/os/fd.h"
#include "argosy/os/whole_file.h"
#include "argosy/text/byte_alphabet.h"
#include "argosy/text/vocab_reader.h"

#include <nlohmann/json.hpp>

namespace argosy::text {
namespace {

constexpr const char* kReads = "text.gpt2_files";
constexpr const char* kSaves = "text.save";
constexpr size_t kMostMergesBytes = size_t{256} << 20;

void read_merges(VocabReader& reader, const std::string& path) {
  const std::string text =
      os::read_file(path, kMostMergesBytes).or_throw<DataError>(kReads, DataPlace{path});
  int64_t number = 0;
  for (std::string_view line : strings::split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || (number == 1 && line.starts_with("#version"))) {
      continue;
    }
    const size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      throw DataError(kReads,
                      fmt::format("line {}: expected two tokens with a space between them, got "
                                  "\"{}\". Is it another file?",
                                  number,
                                  strings::first_columns(printable(line), 60)),
                      {path});
    }
    reader.add_merge(
        line.substr(0, space), line.substr(space + 1), fmt::format("line {} of {}", number, path));
  }
}

/// The tokens of more than one byte that no merge makes.
std::vector<AddedToken> unmade_tokens(VocabReader& reader) {
  const BpeModel::Tokens& tokens = reader.tokens();
  std::vector<bool> made(tokens.size());
  for (const BpeMerge& merge : reader.merges()) {
    made[static_cast<size_t>(merge.result)] = true;
  }
  std::vector<AddedToken> unmade;
  for (const auto& [written, id] : reader.ids()) {
    const auto place = static_cast<size_t>(id);
    if (tokens[place]->size() > 1 && !made[place]) {
      unmade.push_back({.text = written, .id = id, .special = true});
    }
  }
  std::sort(unmade.begin(), unmade.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.id < b.id;
  });
  return unmade;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  os::write_whole(path.string(), text).or_throw<DataError>(kSaves, DataPlace{path.string()});
}

}  // namespace

Tokenizer read_gpt2_files(const std::string& vocab, const std::string& merges) {
  VocabReader reader(kReads, vocab);
  reader.read(read_json(kReads, vocab));
  read_merges(reader, merges);
  std::vector<AddedToken> added = unmade_tokens(reader);
  BpeParts parts{.tokens = std::move(reader.tokens()),
                 .merges = std::move(reader.merges()),
                 .added = std::move(added),
                 .steps = gpt2_steps()};
  return Tokenizer(std::make_shared<const BpeTokenizer>(std::move(parts)));
}

void write_gpt2_files(const BpeTokenizer& tokenizer, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw DataError(kSaves, "cannot make the folder: " + errno_message(error.value()), {folder});
  }
  const BpeModel::Tokens& tokens = tokenizer.model().tokens();
  const auto written = [&](int32_t id) {
    return to_byte_characters(*tokens[static_cast<size_t>(id)]);
  };
  std::string vocab;
  for (int32_t id = 0; id < static_cast<int32_t>(tokenizer.vocab_size()); ++id) {
    if (const std::optional<std::string> token = tokenizer.token(id)) {
      const bool added = tokenizer.facts().is_special(id);
      const std::string name = added ? *token : to_byte_characters(*token);
      vocab += fmt::format("{}{}: {}", vocab.empty() ? "" : ", ", nlohmann::json(name).dump(), id);
    }
  }
  std::string merges = "#version: 0.2\n";
  for (const BpeMerge& merge : tokenizer.model().merges()) {
    merges += written(merge.left) + ' ' + written(merge.right) + '\n';
  }
  write_file(std::filesystem::path(folder) / "vocab.json", "{" + vocab + "}\n");
  write_file(std::filesystem::path(folder) / "merges.txt", merges);
}

}  // namespace argosy::text
