#include "argosy/rendezvous/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/os/addresses.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/former_jobs.h"
#include "argosy/rendezvous/hosted_store.h"
#include "argosy/rendezvous/store_client.h"
#include "argosy/rendezvous/torchrun_meeting.h"

namespace argosy::rendezvous {
namespace {

constexpr std::chrono::seconds kFarewellPatience{5};
constexpr std::chrono::milliseconds kLongestPause{100};

/// A file store whose folder goes when all ranks left it.
struct Shared {
  std::shared_ptr<Store> store;
  size_t members;

  Shared(std::shared_ptr<Store> opened, int world_size)
      : store(std::move(opened)), members(static_cast<size_t>(world_size)) {}
  ~Shared() { remove_finished_file_store(*store, members); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Shared(Shared&&) = delete;
  Shared& operator=(Shared&&) = delete;
};

// A literal address is listened on itself. A name is not: Debian's /etc/hosts resolves a host's own
// name to 127.0.1.1, where no other host could reach it.
std::shared_ptr<Store> host_at(const MeetingPlace& place) {
  std::string interface = "0.0.0.0";
  if (os::is_address(place.host) || place.host == "localhost") {
    interface = place.host;
  }
  HostedStore hosted = host_store({.host = interface,
                                   .port = place.port,
                                   .token = place.token,
                                   .tls = make_tls(place.tls, place.token)});
  if (place.token.empty() && interface != "localhost" && !os::is_loopback(interface)) {
    log::warn(
        "[rendezvous.token] ARGOSY_TOKEN is not set: {} can join the job. Set it to the same "
        "secret for all ranks.",
        place.tls.on ? "whoever has a certificate of the job's authority"
                     : fmt::format("whoever reaches port {} of this host", hosted.port));
  }
  return std::move(hosted.store);
}

/// A store, and the job that it serves where a place may serve several.
struct Opened {
  std::shared_ptr<Store> store{};
  std::string job{};
};

constexpr const char* kJobKey = "job";

std::shared_ptr<Store> connect_at(const MeetingPlace& place, const Deadline& deadline) {
  return connect_store(
      place.host, place.port, place.token, deadline, make_tls(place.tls, place.token));
}

Opened open_bare(const MeetingPlace& place, const Deadline& deadline) {
  switch (place.kind) {
    case MeetingPlace::Kind::kAlone:
      return {in_process_store()};
    case MeetingPlace::Kind::kLauncher:
      return {connect_at(place, deadline)};
    case MeetingPlace::Kind::kTorchrun: {
      static std::atomic<int> joins = 0;  // a program may leave its job and join again
      return {meet_through_torchrun(place, joins++, deadline)};
    }
    case MeetingPlace::Kind::kRankZero: {
      if (place.rank != 0) {
        auto store = connect_at(place, deadline);
        std::string job = store->get(kJobKey, deadline);
        return {std::move(store), std::move(job)};
      }
      Opened opened{host_at(place), new_job_id()};
      opened.store->set(kJobKey, opened.job, deadline);
      return opened;
    }
    case MeetingPlace::Kind::kFile: {
      auto shared = std::make_shared<Shared>(file_store(place.path), place.world_size);
      std::string job = shared->store->compare_set(kJobKey, "", new_job_id(), deadline);
      return {{shared, shared->store.get()}, std::move(job)};
    }
  }
  throw InternalError("rendezvous.open_store", "unknown kind of meeting place");
}

/// Where the next job can only begin when the former is over; empty elsewhere.
std::string name_of(const MeetingPlace& place) {
  switch (place.kind) {
    case MeetingPlace::Kind::kRankZero:
      return fmt::format("tcp://{}:{}", place.host, place.port);
    case MeetingPlace::Kind::kFile:
      return "file://" + place.path;
    default:
      return {};
  }
}

/// What is seen of a job that this process left.
struct Former {
  bool seen = false;
  std::string still_in{};  ///< ranks that have not left, for messages
  std::string lost{};      ///< a member that was lost: a folder is then kept, so it is never over
  std::exception_ptr failure{};  ///< of the last look, when it failed
  std::string why{};             ///< what that says
};

/// Where the keys and members of a job lie in the bare store.
std::string prefix_of(const MeetingPlace& place) {
  return place.run_id.empty() ? "" : "run/" + place.run_id + "/";
}

Former look_at_former(Store& store, const std::string& prefix, const Deadline& deadline) {
  const auto own_name = [&](const std::string& member) {
    return member.starts_with(prefix) ? member.substr(prefix.size()) : member;
  };
  Former former{.seen = true};
  for (const Departure& gone : store.departures("", deadline)) {
    if (gone.lost && former.lost.empty()) {
      former.lost = own_name(gone.member);
    }
  }
  std::vector<Member> members = store.members(prefix + "rank/", deadline);
  if (members.empty()) {  // a group made from the job's may outlive it
    members = store.members("", deadline);
  }
  for (const Member& member : members) {
    former.still_in += (former.still_in.empty() ? "" : ", ") + own_name(member.name);
  }
  return former;
}

void refuse_if_never_over(const MeetingPlace& place, const Former& former) {
  if (place.kind == MeetingPlace::Kind::kFile && !former.lost.empty()) {
    throw RendezvousError(
        "rendezvous.join",
        fmt::format("this process joins again at {}, but {} of the former job never left it, and "
                    "its folder is kept. Delete it, or give the next job a new one.",
                    name_of(place),
                    former.lost));
  }
}

/// The next job at `place`; nullopt as long as the one that this process left is not over.
/// Whatever disappears under our hands meanwhile is no error before the deadline: it is kept in
/// `former`, unless the deadline came so soon that it says nothing about the place.
std::optional<Opened> try_next(const MeetingPlace& place,
                               const Deadline& deadline,
                               Former& former) {
  const bool hurried = deadline.remaining() < kLongestPause;
  try {
    Opened opened = open_bare(place, deadline);
    if (!was_in(opened.job, place.rank)) {
      return opened;
    }
    former.seen = true;
    former = look_at_former(
        *opened.store, prefix_of(place), deadline.sooner(Deadline::after(kFarewellPatience)));
  } catch (const Error& e) {
    // Out of time within a look says nothing about the place.
    const bool cut_short = hurried || dynamic_cast<const TimeoutError*>(&e) != nullptr;
    if (!cut_short || (!former.seen && former.failure == nullptr)) {
      former.failure = std::current_exception();
      former.why = e.what();
    }
  }
  return std::nullopt;
}

/// No next job began at `place` in time: because the former one was not over, as far as one saw it.
[[noreturn]] void give_up(const MeetingPlace& place, const Former& former) {
  if (!former.seen && former.failure != nullptr) {
    std::rethrow_exception(former.failure);
  }
  const std::string who = former.still_in.empty() ? "nobody" : former.still_in;
  throw TimeoutError(
      "rendezvous.join",
      former.why.empty()
          ? fmt::format("this process joins again at {}, where the former job is not over; still "
                        "in it: {}. All ranks must leave it: see why these do not.",
                        name_of(place),
                        who)
          : fmt::format("this process joins again at {}, where no next job began: {} Seen in the "
                        "former job before that: {}.",
                        name_of(place),
                        former.why,
                        who),
      {.op = "join", .group = "world", .rank = place.rank});
}

/// Waits until all have left the former job: its folder then goes, or rank 0 starts a new server.
Opened open_next(const MeetingPlace& place, const Deadline& deadline) {
  const bool hosts = place.kind == MeetingPlace::Kind::kRankZero && place.rank == 0;
  // Who hosts waits for nobody, but its port may be free a moment later only.
  const Deadline limit = hosts ? deadline.sooner(Deadline::after(kFarewellPatience)) : deadline;
  Former former;
  std::chrono::milliseconds pause{5};
  do {
    if (std::optional<Opened> opened = try_next(place, limit, former)) {
      return *std::move(opened);
    }
    refuse_if_never_over(place, former);
    std::this_thread::sleep_until(std::min(limit.at(), Deadline::Clock::now() + pause));
    pause = std::min(pause * 2, kLongestPause);
  } while (!limit.expired());
  give_up(place, former);
}

Opened open(const MeetingPlace& place, const Deadline& deadline) {
  static std::atomic<int> joins_at_launcher = 0;
  refuse_unless_left(name_of(place), place.rank);
  Opened opened =
      was_at(name_of(place), place.rank) ? open_next(place, deadline) : open_bare(place, deadline);
  std::string prefix = prefix_of(place);
  if (!prefix.empty()) {
    prefix.pop_back();  // prefix_store() adds its own slash
  }
  if (place.kind == MeetingPlace::Kind::kLauncher) {
    prefix = fmt::format("{}/{}", prefix.empty() ? "run" : prefix, joins_at_launcher++);
  }
  if (!prefix.empty()) {
    opened.store = prefix_store(std::move(opened.store), prefix);
  }
  return opened;
}

}  // namespace

std::shared_ptr<Store> open_store(const MeetingPlace& place, const Deadline& deadline) {
  return open(place, deadline).store;
}

Joined join(const JoinOptions& options, const Deadline& deadline) {
  Joined joined;
  joined.environment = environment_for(options, [](const char* name) { return env::get(name); });
  const MeetingPlace place = resolve(options, joined.environment);
  joined.rank = place.rank;
  joined.world_size = place.world_size;
  Opened opened = open(place, deadline);
  joined.store = std::move(opened.store);
  // A folder may be left over from a former run. The launcher's store knows one run only.
  joined.presence = wait_for_ranks(
      *joined.store,
      place.rank,
      place.world_size,
      deadline,
      place.run_id,
      place.kind == MeetingPlace::Kind::kLauncher ? options.dead : DeadRank::kStaysDead);
  if (!opened.job.empty()) {
    remember_job(name_of(place), place.rank, opened.job, joined.store);
  }
  return joined;
}

}  // namespace argosy::rendezvous
