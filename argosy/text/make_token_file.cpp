#include "argosy/text/make_token_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/text/document_reader.h"
#include "argosy/text/token_file.h"

namespace argosy::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMakes = "text.make_token_file";
constexpr size_t kLeastPiece = 64;

void add_folder(const fs::path& folder,
                const std::vector<std::string>& endings,
                std::vector<std::string>& files) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    const bool wanted = std::any_of(
        endings.begin(), endings.end(), [&](const auto& ending) { return path.ends_with(ending); });
    if (wanted && entry->is_regular_file(error)) {
      found.push_back(path);
    }
  }
  if (error) {
    throw DataError(
        kMakes, "cannot read the folder: " + errno_message(error.value()), {folder.string()});
  }
  if (found.empty()) {
    throw DataError(
        kMakes,
        fmt::format("no text in this folder: expected files that end with {}, got none. "
                    "Set .endings, or name the files",
                    fmt::join(endings, " or ")),
        {folder.string()});
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

std::vector<std::string> files_of(const std::vector<std::string>& paths,
                                  const MakeTokenFileOptions& options) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (fs::is_directory(path, ignored)) {
      add_folder(path, options.endings, files);
    } else {
      files.push_back(path);
    }
  }
  return files;
}

int64_t total_bytes(const std::vector<std::string>& files) {
  int64_t total = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const auto bytes = fs::file_size(file, error);
    total += error ? 0 : static_cast<int64_t>(bytes);
  }
  return total;
}

}  // namespace

MadeTokenFile make_token_file(const std::vector<std::string>& paths,
                              const std::string& out,
                              const Tokenizer& tokenizer,
                              const MakeTokenFileOptions& options) {
  ARGOSY_CHECK(!paths.empty(), kMakes, "expected files or folders, got none");
  ARGOSY_CHECK(options.piece_bytes >= kLeastPiece,
               kMakes,
               "piece_bytes must be at least {}, got {}",
               kLeastPiece,
               options.piece_bytes);
  const std::vector<std::string> files = files_of(paths, options);
  TokenFileWriter writer(out, tokenizer);
  MadeTokenFile made;
  TokenFileProgress progress{.total_bytes = total_bytes(files)};
  const auto report = [&] {
    progress.tokens = writer.size();
    progress.documents = writer.documents();
    if (options.progress) {
      options.progress(progress);
    }
  };
  for (const std::string& file : files) {
    progress.file = file;
    DocumentReader reader(file, options.documents, options.piece_bytes);
    bool begins = true;
    while (const auto piece = reader.next()) {
      writer.append(tokenizer.encode(
          piece->text, {.special_text = options.special_text, .bos = options.bos && begins}));
      if (piece->ends) {
        writer.end_document();
      }
      begins = piece->ends;
      progress.bytes = made.bytes + reader.position();
      report();
    }
    made.bytes += reader.position();
    ++made.files;
  }
  writer.finish();
  report();
  made.documents = writer.documents();
  made.tokens = writer.size();
  return made;
}

}  // namespace argosy::text
