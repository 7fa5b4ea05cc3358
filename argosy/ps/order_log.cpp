#include "argosy/ps/order_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/os/whole_file.h"

namespace argosy::ps {
namespace {

using Entries = std::vector<OrderEntry>::iterator;

/// Reads that a worker fetches ahead may overtake each other, and the push before them.
Entries find_under_way(Entries next, Entries end, const OrderEntry& entry) {
  int pushes = 0;
  for (Entries one = next; one != end && pushes < 2; ++one) {
    if (*one == entry) {
      return one;
    }
    pushes += one->is_change() ? 1 : 0;
  }
  return end;
}

/// The head of a file. All is little-endian.
struct OrderHead {
  std::array<char, 8> magic{'A', 'R', 'G', 'O', 'R', 'D', 'R', '2'};
  uint64_t tables = 0;
  uint32_t workers = 0;
  uint32_t unused = 0;
  friend bool operator==(const OrderHead&, const OrderHead&) = default;
};
static_assert(sizeof(OrderHead) == 24 && sizeof(OrderEntry) == 16);

OrderHead head_of(const OrderOf& of) {
  return {.tables = of.tables, .workers = static_cast<uint32_t>(of.workers)};
}

std::string order_path(const std::string& folder, const OrderOf& of) {
  return fmt::format("{}/order-{}-of-{}.bin", folder, of.partition, of.partitions);
}

/// Returns of how many servers the folder has a record. 0: of none.
int64_t servers_recorded(const std::string& folder) {
  constexpr std::string_view kOf = "-of-";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().stem().string();
    if (const size_t of = name.find(kOf); name.starts_with("order-") && of != std::string::npos) {
      return strings::parse_int(name.substr(of + kOf.size())).value_or(0);
    }
  }
  return 0;
}

/// Says what is wrong when the file is not there.
void check_servers(const std::string& folder, const OrderOf& of) {
  if (std::filesystem::exists(order_path(folder, of))) {
    return;
  }
  const int64_t recorded = servers_recorded(folder);
  throw ConfigError(
      "ps.replay",
      recorded == 0 || recorded == of.partitions
          ? fmt::format("{} is not there. A record has a file of each server: put those of all "
                        "servers into one folder, which all see, or name the folder that "
                        "TrainingOptions::record named",
                        order_path(folder, of))
          : fmt::format("{} was recorded with {} servers, and this job has {}: start it with {}",
                        folder,
                        recorded,
                        of.partitions,
                        recorded));
}

std::string to_words(const OrderEntry& entry) {
  return fmt::format("{} {} of worker {}",
                     entry.kind == OrderEntry::Kind::kPull   ? "pull"
                     : entry.kind == OrderEntry::Kind::kPush ? "push"
                                                             : "upkeep before push",
                     entry.number,
                     entry.worker);
}

}  // namespace

OrderRecord::OrderRecord(const std::string& folder, const OrderOf& of)
    : path_(order_path(folder, of)) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // else fopen() says what is wrong
  file_.open(path_, std::ios::binary);
  const OrderHead head = head_of(of);
  if (!file_.write(reinterpret_cast<const char*>(&head), sizeof(head))) {
    throw ConfigError("ps.record", fmt::format("cannot write {}: {}", path_, errno_message(errno)));
  }
}

OrderRecord::~OrderRecord() {
  note({});
  file_.close();
  if (!file_) {
    log::error("[ps.record] {} is not whole: {}", path_, errno_message(errno));
  }
}

void OrderRecord::note(const OrderEntry& entry) {
  const std::lock_guard lock(mutex_);
  file_.write(reinterpret_cast<const char*>(&entry),
              sizeof(entry));  // the end looks whether it was
}

OrderReplay::OrderReplay(const std::string& folder, const OrderOf& of)
    : path_(order_path(folder, of)),
      of_worker_(static_cast<size_t>(of.workers)),
      checked_(static_cast<size_t>(of.workers)) {
  check_servers(folder, of);
  const std::string bytes = os::read_file(path_).or_throw<ConfigError>("ps.replay");
  OrderHead head;
  if (bytes.size() >= sizeof(head)) {
    std::memcpy(&head, bytes.data(), sizeof(head));
  }
  if (bytes.size() < sizeof(head) || head != head_of(of)) {
    throw ConfigError(
        "ps.replay",
        fmt::format("{} is no record of a run of these tables with {} workers. Repeat "
                    "a run with the program and the options that recorded it",
                    path_,
                    of.workers));
  }
  all_.resize((bytes.size() - sizeof(head)) / sizeof(OrderEntry));
  std::memcpy(all_.data(), bytes.data() + sizeof(head), all_.size() * sizeof(OrderEntry));
  if (all_.empty() || all_.back().kind != OrderEntry::Kind::kEnd) {
    log::warn("[ps.replay] {} ends early: its server was killed. What came later may differ",
              path_);
  } else {
    all_.pop_back();
  }
  for (const OrderEntry& entry : all_) {
    ARGOSY_CHECK(entry.worker < of_worker_.size(),
                 "ps.replay",
                 "{} is damaged: it has worker {} of {}",
                 path_,
                 entry.worker,
                 of_worker_.size());
    of_worker_[entry.worker].push_back(entry);
  }
}

void OrderReplay::check(const OrderEntry& entry) {
  ARGOSY_CHECK(entry.worker < of_worker_.size(),
               "ps.replay",
               "there is no worker {}: there are {}",
               entry.worker,
               of_worker_.size());
  std::vector<OrderEntry>& recorded = of_worker_.at(entry.worker);
  size_t& at = checked_[entry.worker];
  if (at == recorded.size()) {
    return;  // the record is over
  }
  const auto next = recorded.begin() + static_cast<ptrdiff_t>(at);
  const auto found = find_under_way(next, recorded.end(), entry);
  ARGOSY_CHECK(
      found != recorded.end(),
      "ps.replay",
      "{}: {} comes where {} was recorded. Repeat a run with the program, the data and the "
      "options that recorded it",
      path_,
      to_words(entry),
      to_words(recorded[at]));
  std::rotate(next, found, found + 1);
  ++at;
}

size_t OrderReplay::place_of(const OrderEntry& entry) const {
  for (size_t place = next_; place < all_.size(); ++place) {
    if (all_[place] == entry) {
      return place;
    }
    if (all_[place].is_change() || entry.is_change()) {
      break;
    }
  }
  return all_.size();
}

bool OrderReplay::is_next(const OrderEntry& entry) const {
  return is_over() || place_of(entry) < all_.size();
}

void OrderReplay::take(const OrderEntry& entry) {
  if (!is_over()) {
    std::swap(all_[place_of(entry)], all_[next_]);
    ++next_;
  }
}

}  // namespace argosy::ps
