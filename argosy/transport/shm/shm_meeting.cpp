#include "argosy/transport/shm/shm_meeting.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/memory.h"
#include "argosy/os/pidfd.h"
#include "argosy/os/random.h"
#include "argosy/os/unix_socket.h"
#include "argosy/rendezvous/host_card.h"
#include "argosy/transport/link_errors.h"
#include "argosy/transport/shm/shm.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPlaceKey = "shm/place";  ///< rank 0's socket, secret and neighbourhood
constexpr const char* kElsewhereKey = "shm/elsewhere";  ///< set by a rank that is no neighbour
constexpr int kHost = 0;                                ///< the rank that makes the files
constexpr auto kMeetingSlice = 200ms;  ///< how long a rank waits before it looks around
/// The text of rank 0's answer to a neighbour. Any other text is a refusal.
constexpr const char* kWelcome = "welcome";
constexpr size_t kFiles = 3;  ///< of a SharedFiles, before the processes

os::UniqueFd make_mail() {
  os::UniqueFd fd(::memfd_create("argosy-mail", MFD_CLOEXEC));
  if (!fd) {
    throw Error("transport.shm", "memfd_create: " + errno_message(errno));
  }
  return fd;
}

/// Hands `fds` to a rank. The kernel limits the descriptors of a user that nobody has taken yet to
/// `ulimit -n`; the send is then tried again, after others have taken theirs.
void welcome(int caller, const std::vector<int>& fds, const Deadline& deadline) {
  for (;;) {
    const Status sent = os::send_message(caller, kWelcome, fds);
    if (sent.ok() || sent.failure().error_number == EPIPE) {
      return;  // a rank that died meanwhile is found by whoever waits for it
    }
    if (sent.failure().error_number != ETOOMANYREFS || deadline.expired()) {
      throw Error("transport.shm", sent.failure().what + ". See ulimit -n");
    }
    std::this_thread::sleep_for(1ms);
  }
}

/// The files in the order in which they travel: three files, then the processes.
std::vector<int> to_message(const SharedFiles& files) {
  std::vector<int> fds{files.memory.get(), files.mail.get(), files.blocks.get()};
  std::ranges::transform(
      files.processes, std::back_inserter(fds), [](const os::UniqueFd& fd) { return fd.get(); });
  return fds;
}

SharedFiles from_message(std::vector<os::UniqueFd> fds) {
  SharedFiles files{
      .memory = std::move(fds[0]), .mail = std::move(fds[1]), .blocks = std::move(fds[2])};
  std::move(fds.begin() + kFiles, fds.end(), std::back_inserter(files.processes));
  return files;
}

[[noreturn]] void refuse(const std::string& why) {
  throw ConfigError("transport.shm",
                    why +
                        ". Expected all ranks on one host, in one network namespace, as one user. "
                        "Use the backend gloo or auto.");
}

}  // namespace

SharedFiles ShmMeeting::meet(const Deadline& deadline) {
  return rank_ == kHost ? host(deadline) : call(deadline);
}

SharedFiles ShmMeeting::host(const Deadline& deadline) {
  const std::string name = "argosy/shm/" + os::random_hex(16);
  const std::string secret = os::random_hex(16);
  const auto listener = os::MessageListener::listen(name).or_throw<Error>("transport.shm");
  lobby_.tell(kPlaceKey, name + " " + secret + " " + rendezvous::neighbourhood_id(), deadline);
  callers_ = std::vector<Caller>(static_cast<size_t>(size_));
  callers_[kHost].process = os::own_pidfd().or_throw<Error>("transport.shm");
  for (int awaited = size_ - 1; awaited > 0;) {
    Result<os::UniqueFd> caller = listener.accept(deadline.sooner(Deadline::after(kMeetingSlice)));
    if (caller.ok()) {
      awaited -= admit(*std::move(caller), secret, deadline) ? 1 : 0;
      continue;
    }
    if (caller.failure().error_number != ETIMEDOUT) {
      throw Error("transport.shm", caller.failure().what);
    }
    // First of all, because a rank that is elsewhere leaves the group after it has said so.
    if (const auto elsewhere = lobby_.heard(kElsewhereKey, deadline)) {
      turn_away(*elsewhere);
    }
    lobby_.look_around();
    if (deadline.expired()) {
      throw LinkTimeout{missing()};
    }
  }
  const auto memory = os::SharedMemory::create("argosy-shm", Segment::bytes_for(size_))
                          .or_throw<Error>("transport.shm");
  SharedFiles files{.memory = os::duplicate(memory.fd()).or_throw<Error>("transport.shm"),
                    .mail = make_mail(),
                    .blocks = Blocks::make_file()};
  for (Caller& caller : callers_) {
    files.processes.push_back(std::move(caller.process));
  }
  for (const Caller& caller : callers_) {
    if (caller.socket) {
      welcome(caller.socket.get(), to_message(files), deadline);
    }
  }
  return files;
}

/// Returns true when the caller is a rank of this group that had not called before.
bool ShmMeeting::admit(os::UniqueFd socket, const std::string& secret, const Deadline& deadline) {
  const Result<uid_t> user = os::user_of_peer(socket.get());
  if (!user.ok() || *user != ::geteuid()) {
    return false;  // another user's process, whatever it wants
  }
  // A rank has its words ready. A process of this user that says nothing costs a second.
  Result<os::Message> hello =
      os::receive_message(socket.get(), deadline.sooner(Deadline::after(1s)));
  if (!hello.ok() && hello.failure().error_number == EMSGSIZE) {
    throw Error("transport.shm", "a caller's descriptors do not fit. See ulimit -n");
  }
  const std::vector<std::string> words =
      hello.ok() ? strings::split(hello->text, ' ') : std::vector<std::string>();
  if (words.size() != 2 || words[0] != secret || hello->fds.size() != 1) {
    return false;
  }
  const auto peer = static_cast<size_t>(strings::parse_int(words[1]).value_or(kHost));
  if (peer == kHost || peer >= callers_.size() || callers_[peer].socket) {
    return false;
  }
  callers_[peer] = {.socket = std::move(socket), .process = std::move(hello->fds[0])};
  return true;
}

/// Tells all that have called why no memory is shared.
void ShmMeeting::turn_away(const std::string& why) const {
  for (const Caller& caller : callers_) {
    if (caller.socket) {
      (void)os::send_message(caller.socket.get(), why);
    }
  }
  refuse(why);
}

std::vector<int> ShmMeeting::missing() const {
  std::vector<int> ranks;
  for (int peer = kHost + 1; peer < size_; ++peer) {
    if (!callers_[static_cast<size_t>(peer)].socket) {
      ranks.push_back(peer);
    }
  }
  return ranks;
}

SharedFiles ShmMeeting::call(const Deadline& deadline) {
  const std::string place = lobby_.await(kPlaceKey, kHost, deadline);
  const size_t first = place.find(' ');
  const size_t second = place.find(' ', first + 1);
  if (second == std::string::npos || place.substr(second + 1) != rendezvous::neighbourhood_id()) {
    const std::string why = fmt::format("{} and {} cannot share memory: they are \"{}\" and \"{}\"",
                                        lobby_.names().one(kHost),
                                        lobby_.names().one(rank_),
                                        place.substr(std::min(second, place.size() - 1) + 1),
                                        rendezvous::neighbourhood_id());
    lobby_.tell(kElsewhereKey, why, deadline);
    refuse(why);
  }
  const os::UniqueFd host = greet_host(place.substr(0, second));
  for (;;) {
    Result<os::Message> answer =
        os::receive_message(host.get(), deadline.sooner(Deadline::after(kMeetingSlice)));
    if (answer.ok() && answer->text != kWelcome) {
      refuse(answer->text);
    }
    if (answer.ok() && answer->fds.size() == static_cast<size_t>(size_) + kFiles) {
      return from_message(std::move(answer->fds));
    }
    if (answer.ok() || answer.failure().error_number != ETIMEDOUT) {
      throw LinkBroken{kHost,
                       answer.ok() ? "the host's message is not whole" : answer.failure().what};
    }
    if (const auto elsewhere = lobby_.heard(kElsewhereKey, deadline)) {
      refuse(*elsewhere);
    }
    lobby_.look_around();
    if (deadline.expired()) {
      throw LinkTimeout{{kHost}};
    }
  }
}

/// Calls rank 0 and proves that this rank knows the secret. `place`: "<socket> <secret>".
os::UniqueFd ShmMeeting::greet_host(const std::string& place) const {
  const size_t space = place.find(' ');
  const os::UniqueFd self = os::own_pidfd().or_throw<Error>("transport.shm");
  Result<os::UniqueFd> host = os::connect_messages(place.substr(0, space));
  if (!host.ok()) {
    throw LinkBroken{kHost, host.failure().what};
  }
  const Status sent = os::send_message(
      host->get(), fmt::format("{} {}", place.substr(space + 1), rank_), std::vector{self.get()});
  if (!sent.ok()) {
    throw LinkBroken{kHost, sent.failure().what};
  }
  return *std::move(host);
}

}  // namespace argosy::transport
