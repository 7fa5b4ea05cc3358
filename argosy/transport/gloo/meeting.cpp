#include "argosy/transport/gloo/meeting.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/random.h"
#include "argosy/transport/watched_transport.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;

constexpr size_t kKeyBytes = 32;
/// Longest sleep between two looks, and between two calls to one rank.
constexpr auto kPause = 50ms;
constexpr auto kBetweenLooks = 200ms;
/// For a caller to prove itself. A rank that needs longer calls again.
constexpr auto kGreetingTime = 10s;
/// A rank listens before it says where. Where nothing does for so long, something is in the way.
constexpr auto kNobodyThere = 3s;
/// Callers beside the ranks that may be unproven at once: each costs a descriptor.
constexpr size_t kMostStrangers = 64;
constexpr size_t kMostLogged = 16;

}  // namespace

Meeting::Meeting(int rank, int size, os::Listener listener)
    : rank_(rank),
      size_(size),
      key_(os::random_hex(kKeyBytes)),
      address_(os::own_address_of(listener.fd())),
      port_(listener.port()),
      interruption_(os::make_pipe().or_throw<Error>("transport.gloo")),
      listener_(std::move(listener)),
      connected_(static_cast<size_t>(size)) {}

std::string Meeting::card() const {
  return fmt::format("{} {} {}", address_, port_, key_);
}

std::vector<os::UniqueFd> Meeting::meet(const std::vector<std::string>& cards,
                                        const Deadline& deadline,
                                        const std::function<void()>& look_around) {
  read_cards(cards);
  auto next_look = Deadline::Clock::now() + kBetweenLooks;
  for (std::vector<int> awaited = missing(); !awaited.empty(); awaited = missing()) {
    if (deadline.expired()) {
      throw LinkTimeout{std::move(awaited)};
    }
    if (Deadline::Clock::now() >= next_look) {
      look_around();
      next_look = Deadline::Clock::now() + kBetweenLooks;
    }
    place_calls();
    talk_to_all(deadline);
    take_callers();
  }
  for (const Talk& stranger : callers_) {  // every rank has come
    turn_away(stranger);
  }
  callers_.clear();
  listener_.reset();
  return std::move(connected_);
}

void Meeting::interrupt() {
  (void)os::write_all(interruption_.write.get(), "!");
}

void Meeting::read_cards(const std::vector<std::string>& cards) {
  for (int peer = 0; peer < rank_; ++peer) {
    const std::vector<std::string> words = strings::split(cards[static_cast<size_t>(peer)], ' ');
    const auto port = strings::parse_int(words.size() == 3 ? words[1] : "");
    if (!port || *port <= 0 || *port > UINT16_MAX || words[2].size() != 2 * kKeyBytes) {
      throw LinkBroken{peer, "its address is malformed"};
    }
    calls_[peer] = {.address = words[0], .port = static_cast<uint16_t>(*port), .key = words[2]};
  }
}

void Meeting::place_calls() {
  const auto now = Deadline::Clock::now();
  for (auto& [peer, call] : calls_) {
    if (call.talk || call.next > now) {
      continue;
    }
    Result<os::UniqueFd> fd = os::begin_connect_tcp(call.address, call.port);
    if (fd.ok()) {
      call.talk = Talk{.fd = *std::move(fd),
                       .greeting = Greeting::calling(rank_, peer, call.key),
                       .until = Deadline::never(),
                       .connecting = true};
    } else {
      call_failed(peer, call, fd.failure().error_number);
    }
  }
}

/// Some of those that wait: strangers who call without end keep nobody from meeting.
void Meeting::take_callers() {
  for (size_t taken = 0; taken < kMostStrangers / 2; ++taken) {
    Result<os::UniqueFd> fd = listener_->accept(Deadline::after(0ms));
    if (!fd.ok() && fd.failure().error_number == ETIMEDOUT) {
      return;
    }
    const bool too_many = callers_.size() >= static_cast<size_t>(size_) + kMostStrangers;
    if ((too_many || !fd.ok()) && !callers_.empty()) {
      turn_away(callers_.front());
      callers_.erase(callers_.begin());
    } else if (!fd.ok()) {
      throw LinkBroken{-1, fd.failure().what};
    }
    if (fd.ok()) {
      callers_.push_back({.fd = *std::move(fd),
                          .greeting = Greeting::called(rank_, size_, key_),
                          .until = Deadline::after(kGreetingTime)});
    }
  }
}

/// Waits until one of them has news, and serves those that have.
void Meeting::talk_to_all(const Deadline& deadline) {
  std::vector<pollfd> sockets{{interruption_.read.get(), POLLIN, 0}, {listener_->fd(), POLLIN, 0}};
  for (const Talk& caller : callers_) {
    sockets.push_back({caller.fd.get(), POLLIN, 0});
  }
  for (const auto& [peer, call] : calls_) {
    if (call.talk) {
      const short events = call.talk->connecting ? POLLOUT : POLLIN;
      sockets.push_back({call.talk->fd.get(), events, 0});
    }
  }
  const auto step = std::min<std::chrono::milliseconds>(deadline.remaining(), kPause);
  if (::poll(sockets.data(), sockets.size(), static_cast<int>(step.count())) < 0 &&
      errno != EINTR) {
    throw LinkBroken{-1, "poll: " + errno_message(errno)};
  }
  if (sockets.front().revents != 0) {
    throw LinkBroken{-1, "the connections of this rank were closed"};
  }
  auto at = sockets.begin() + 2;
  std::vector<Talk> unproven;
  for (Talk& caller : callers_) {
    const bool news = (at++)->revents != 0;
    if (news ? serve_caller(caller) : !caller.until.expired()) {
      unproven.push_back(std::move(caller));
    } else if (!caller.greeting.proven()) {
      turn_away(caller);
    }
  }
  callers_ = std::move(unproven);
  for (auto call = calls_.begin(); call != calls_.end();) {
    const bool news = call->second.talk && (at++)->revents != 0;
    call = news && !serve_call(call->first, call->second) ? calls_.erase(call) : std::next(call);
  }
}

/// True: it is still under way.
bool Meeting::serve_caller(Talk& talk) {
  const Talk::Outcome outcome = talk.listen();
  if (outcome == Talk::Outcome::kProven) {
    // One that came before from this rank has ended there: it calls again only then.
    connected_[static_cast<size_t>(talk.greeting.peer())] = std::move(talk.fd);
  }
  return outcome == Talk::Outcome::kUnderWay;
}

/// True: the rank must still be called.
bool Meeting::serve_call(int peer, Call& call) {
  Talk& talk = *call.talk;
  if (talk.connecting) {
    const int error = os::connect_error(talk.fd.get());
    if (error != 0 || !talk.say()) {
      call_failed(peer, call, error);
    } else {
      talk.connecting = false;
      call.failing_since.reset();
    }
    return true;
  }
  const Talk::Outcome outcome = talk.listen();
  if (outcome == Talk::Outcome::kProven) {
    connected_[static_cast<size_t>(peer)] = std::move(talk.fd);
    return false;
  }
  if (outcome == Talk::Outcome::kOver) {
    if (talk.greeting.refused() && !std::exchange(call.suspected, true)) {
      log::warn(
          "[transport.gloo] rank {} found a stranger at {}, where rank {} should listen: {}. It "
          "got nothing of the job. The rank is called again.",
          rank_,
          os::host_port(call.address, call.port),
          peer,
          talk.greeting.verdict());
    }
    call_failed(peer, call, 0);
  }
  return true;
}

/// `error`: why nothing listens there; 0: something did.
void Meeting::call_failed(int peer, Call& call, int error) {
  const auto now = Deadline::Clock::now();
  call.talk.reset();
  call.next = now + kPause;
  if (error == 0) {
    return;
  }
  call.failing_since = call.failing_since.value_or(now);
  if (now - *call.failing_since > kNobodyThere) {
    throw LinkBroken{
        peer,
        fmt::format(
            "connect to {}: {}", os::host_port(call.address, call.port), errno_message(error))};
  }
}

void Meeting::turn_away(const Talk& talk) {
  const std::string from = os::peer_address_of(talk.fd.get());
  if (told_.size() < kMostLogged && told_.insert(from).second) {
    log::warn(
        "[transport.gloo] rank {} turned away a caller from {}: {}. It got nothing of the job. "
        "Further ones from there are not logged.",
        rank_,
        from.empty() ? "an address that is not known" : from,
        talk.greeting.verdict());
  }
}

std::vector<int> Meeting::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && !connected_[static_cast<size_t>(peer)]) {
      ranks.push_back(peer);
    }
  }
  return ranks;
}

/// False: the connection has ended.
bool Meeting::Talk::say() {
  const std::string text = greeting.speak();  // short: a connection without data takes it whole
  return text.empty() || ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
                             static_cast<ssize_t>(text.size());
}

Meeting::Talk::Outcome Meeting::Talk::listen() {
  std::array<char, 128> piece{};
  while (const size_t wanted = std::min(greeting.wants(), piece.size())) {
    const ssize_t got = ::recv(fd.get(), piece.data(), wanted, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return Outcome::kUnderWay;
    }
    if (got <= 0) {
      return Outcome::kOver;
    }
    greeting.hear({piece.data(), static_cast<size_t>(got)});
    if (!say()) {
      return Outcome::kOver;
    }
  }
  return greeting.proven() ? Outcome::kProven : Outcome::kOver;
}

}  // namespace argosy::transport
