#include "argosy/datasets/fetch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/secrets.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/datasets/addresses.h"
#include "argosy/datasets/part_file.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/transfer.h"
#include "argosy/datasets/verify.h"
#include "argosy/os/folder_lock.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

/// Keeps other processes from fetching into a folder: one fetches, the others wait until it is
/// done.
os::UniqueFd lock_of(const std::string& folder, std::chrono::milliseconds patience) {
  Result<os::UniqueFd> lock = os::lock_folder(
      folder,
      {.file = ".fetch.lock",
       .patience = patience,
       .while_it_grows = true,
       .on_wait = [&](const std::string& holder) {
         fmt::print(stderr, "[datasets.lock] {} is fetching into {}: waiting\n", holder, folder);
       }});
  if (lock.ok()) {
    return *std::move(lock);
  }
  const Failure& failure = lock.failure();
  throw DataError(
      "datasets.lock",
      failure.error_number == EWOULDBLOCK
          ? fmt::format("{} holds the lock, and nothing has come for {:.0f} s. Look what "
                        "it does, or end it; what has come is kept",
                        failure.what,
                        std::chrono::duration<double>(patience).count())
          : fmt::format("cannot write into the folder, or lock it: {}. Give another by --to or "
                        "ARGOSY_DATA_HOME, on a file system that has locks",
                        failure.what),
      {folder});
}

/// A URL and what became of it.
struct Address {
  std::string url{};
  int tries = 0;
  bool given_up = false;
  std::string reason{};
};

std::vector<PublishedFile> wanted_files(const Row& set, const std::vector<std::string>& names) {
  if (names.empty()) {
    return set.one_file_is_enough ? std::vector<PublishedFile>{set.files.front()} : set.files;
  }
  std::vector<PublishedFile> wanted;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(set.files, name, &PublishedFile::name);
    if (found == set.files.end()) {
      std::vector<std::string> all;
      std::ranges::transform(set.files, std::back_inserter(all), &PublishedFile::name);
      throw UsageError(
          "datasets.fetch",
          fmt::format(
              "{} has no file {}: expected one of {}", set.name, name, fmt::join(all, ", ")));
    }
    if (std::ranges::find(wanted, name, &PublishedFile::name) == wanted.end()) {  // not named twice
      wanted.push_back(*found);
    }
  }
  return wanted;
}

/// Those that are not there yet. One that is there and is another file is an error unless it may be
/// replaced.
std::vector<PublishedFile> missing_files(const std::vector<PublishedFile>& wanted,
                                         const std::string& folder,
                                         FileMismatch mismatch) {
  std::vector<PublishedFile> missing;
  for (const PublishedFile& known : wanted) {
    const CheckedFile file = check_file((fs::path(folder) / known.name).string(), known);
    if (file.state == FileState::kDamaged && mismatch == FileMismatch::kRefuse) {
      throw DataError("datasets.fetch",
                      fmt::format("is there, but is not the published file: {}. It may be used as "
                                  "it is; else remove it, or have it replaced (--replace)",
                                  file.reason),
                      {file.path});
    }
    if (file.state != FileState::kFine) {
      missing.push_back(known);
    }
  }
  return missing;
}

/// Nothing that would lead out of the folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw DataError("datasets.fetch",
                    fmt::format("cannot make the folder: {}. Give another with --to or "
                                "ARGOSY_DATA_HOME",
                                errno_message(error.value())),
                    {folder});
  }
}

void check_room(const std::string& folder, int64_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < static_cast<uintmax_t>(std::max<int64_t>(needed, 0))) {
    throw DataError("datasets.fetch",
                    fmt::format("the disk is too full: {} kB are needed, {} kB are free. Make "
                                "room, or give another folder with --to",
                                text::count(needed / 1000),
                                text::count(static_cast<int64_t>(space.available / 1000))),
                    {folder});
  }
}

bool is_web_page(const PartFile& part) {
  const std::string text = strings::to_lower(strings::trim(part.beginning(64)));
  return text.starts_with("<!doctype html") || text.starts_with("<html");
}

/// Is the part the published file? Else why not, and it is emptied: none of it can be trusted.
std::optional<std::string> complaint(PartFile& part, const PublishedFile& known) {
  std::string reason;
  if (part.size() != known.published.bytes) {
    reason = fmt::format("expected {} bytes, got {}", known.published.bytes, part.size());
  } else if (const std::string sum = part.md5(); sum != known.published.md5) {
    reason = fmt::format("expected MD5 {}, got {}", known.published.md5, sum);
  } else {
    return std::nullopt;
  }
  if (is_web_page(part)) {
    reason += " (a web page: from a proxy that wants a password?)";
  }
  part.restart();
  return reason;
}

/// One transfer from one address. True: the part is whole and right.
bool transfer_from(Address& address,
                   PartFile& part,
                   const PublishedFile& known,
                   const FetchOptions& options) {
  ++address.tries;
  const auto tell = [&](int64_t bytes, bool ended) {
    if (options.on_bytes) {
      options.on_bytes({known.name, bytes, known.published.bytes, ended});
    }
  };
  tell(part.size(), false);
  const TransferEnd end = transfer(address.url,
                                   part,
                                   {.most_bytes = known.published.bytes,
                                    .connect_timeout = options.connect_timeout,
                                    .stall_timeout = options.stall_timeout,
                                    .on_bytes = [&](int64_t bytes) { tell(bytes, false); }});
  address.reason = end.reason;
  address.given_up = end.kind == TransferEnd::Kind::kNever;
  if (end.kind == TransferEnd::Kind::kDone) {
    const std::optional<std::string> bad = complaint(part, known);
    if (!bad) {
      tell(part.size(), true);
      return true;
    }
    address.reason = *bad;
  } else if (part.size() > 0) {
    address.reason += fmt::format(" (after {} of {} bytes)", part.size(), known.published.bytes);
  }
  tell(part.size(), true);
  return false;
}

/// One try of one address. A file of this machine stays as it is, so that it is tried once; and
/// from its beginning where it does not go with what an earlier address has brought.
bool try_address(Address& address,
                 PartFile& part,
                 const PublishedFile& known,
                 const FetchOptions& options) {
  const bool begun = part.size() > 0;
  if (transfer_from(address, part, known, options)) {
    return true;
  }
  if (!is_local(address.url)) {
    return false;
  }
  const bool again = begun && part.size() == 0 && transfer_from(address, part, known, options);
  address.given_up = true;
  return again;
}

[[noreturn]] void give_up(const std::vector<Address>& addresses, const std::string& path) {
  std::vector<std::string> tried;
  for (const Address& address : addresses) {
    tried.push_back(fmt::format("{}: {}{}",
                                secrets::hidden(address.url),
                                address.reason,
                                address.tries > 1 ? fmt::format(", {} tries", address.tries) : ""));
  }
  throw DataError("datasets.fetch",
                  fmt::format("cannot be fetched: {}. Try later, give another address (--mirror, "
                              "ARGOSY_DATA_MIRROR), or put the file there yourself",
                              fmt::join(tried, "; ")),
                  {path});
}

void fetch_file(const Row& set,
                const PublishedFile& known,
                const std::string& path,
                const FetchOptions& options) {
  std::vector<Address> addresses;
  for (std::string& url : urls_of(set, known, mirrors_or_default(options.mirrors))) {
    addresses.push_back({.url = std::move(url)});
  }
  ARGOSY_CHECK(
      !addresses.empty(), "datasets.fetch", "{} has no address, and there is no mirror", set.name);
  PartFile part(path);
  if (part.size() >= known.published.bytes && !complaint(part, known)) {
    part.commit();  // whoever fetched it was ended before it could
    return;
  }
  check_room(fs::path(path).parent_path().string(), known.published.bytes - part.size());
  auto pause = options.first_pause;
  std::string last;  // what went wrong; told when it is followed by another try
  for (int i = 0; i < options.tries; ++i) {
    if (i > 0) {
      std::this_thread::sleep_for(pause);
      pause *= 2;
    }
    for (Address& address : addresses) {
      if (address.given_up) {
        continue;
      }
      if (!last.empty()) {
        log::warn("datasets: {}: trying {}", last, i > 0 ? "again" : "the next address");
      }
      if (try_address(address, part, known, options)) {
        part.commit();
        return;
      }
      last = fmt::format("{}: {}", secrets::hidden(address.url), address.reason);
    }
    if (std::ranges::all_of(addresses, &Address::given_up)) {
      break;
    }
  }
  give_up(addresses, path);
}

}  // namespace

void FetchOptions::validate() const {
  ARGOSY_CHECK(tries >= 1, "datasets.fetch", "tries must be at least 1, got {}", tries);
  ARGOSY_CHECK(first_pause.count() >= 0 && connect_timeout.count() > 0 &&
                   stall_timeout.count() > 0 && lock_patience.count() >= 0,
               "datasets.fetch",
               "first_pause and lock_patience must not be negative, connect_timeout and "
               "stall_timeout must be positive");
}

Fetched fetch(std::string_view name, const FetchOptions& options) {
  return fetch(row_of(name), options);
}

Fetched fetch(const Row& set, const FetchOptions& options) {
  options.validate();
  if (!set.instead.empty()) {
    throw UsageError("datasets.fetch",
                     fmt::format("{} cannot be fetched. {}", set.name, set.instead));
  }
  ARGOSY_CHECK(!set.files.empty(), "datasets.fetch", "{} has no files", set.name);
  for (const PublishedFile& file : set.files) {
    ARGOSY_CHECK(
        is_plain_name(file.name), "datasets.fetch", "\"{}\" is no name of a file", file.name);
  }
  const std::string folder = options.to.empty() ? folder_of(set.name) : options.to;
  const std::vector<PublishedFile> wanted = wanted_files(set, options.files);
  std::vector<PublishedFile> missing = missing_files(wanted, folder, options.mismatch);
  if (!missing.empty()) {
    make_folder(folder);
    const os::UniqueFd lock = lock_of(folder, options.lock_patience);
    // Whoever had the lock before may have brought them.
    missing = missing_files(missing, folder, options.mismatch);
    for (const PublishedFile& file : missing) {
      fetch_file(set, file, (fs::path(folder) / file.name).string(), options);
    }
  }
  Fetched fetched{.folder = folder};
  for (const PublishedFile& file : wanted) {
    const bool came = std::ranges::find(missing, file.name, &PublishedFile::name) != missing.end();
    const fs::path path = fs::path(folder) / file.name;
    std::error_code error;  // one that was there may be a distribution's, of another length
    const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
    fetched.files.push_back(
        {.path = path.string(), .bytes = error ? file.published.bytes : bytes, .was_there = !came});
  }
  return fetched;
}

}  // namespace argosy::datasets
