#include "argosy/transport/gloo/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "argosy/base/strings.h"
#include "argosy/os/random.h"
#include "argosy/rendezvous/proof.h"

namespace argosy::transport {
namespace {

using rendezvous::kProofBytes;

constexpr std::string_view kGreetingName = "argosy gloo 1 ";
constexpr std::string_view kWelcome = "welcome\n";
constexpr size_t kNonceBytes = 32;  // 16 random ones as hexadecimal digits
constexpr size_t kRankBytes = 8;
constexpr size_t kHelloBytes = kGreetingName.size() + 2 * (kRankBytes + 1) + kNonceBytes;

std::string fresh_nonce() {
  return os::random_hex(kNonceBytes / 2);
}

std::string hello_text(int caller, int called, std::string_view nonce) {
  return fmt::format("{}{:08x} {:08x} {}", kGreetingName, caller, called, nonce);
}

/// -1: it is no number of a rank.
int rank_at(std::string_view hello, size_t place) {
  int rank = -1;
  const char* begin = hello.data() + place;
  const auto [end, error] = std::from_chars(begin, begin + kRankBytes, rank, 16);
  return error == std::errc() && end == begin + kRankBytes ? rank : -1;
}

}  // namespace

Greeting::Greeting(Stage stage, int rank, std::string key)
    : stage_(stage), rank_(rank), key_(std::move(key)) {}

Greeting Greeting::calling(int rank, int peer, std::string key) {
  Greeting greeting(Stage::kAnswer, rank, std::move(key));
  greeting.peer_ = peer;
  greeting.transcript_ = hello_text(rank, peer, fresh_nonce());
  greeting.say_ = greeting.transcript_;
  return greeting;
}

Greeting Greeting::called(int rank, int size, std::string key) {
  Greeting greeting(Stage::kHello, rank, std::move(key));
  greeting.size_ = size;
  return greeting;
}

std::string Greeting::speak() {
  return std::exchange(say_, {});
}

size_t Greeting::wants() const {
  constexpr std::array<size_t, 6> kLengths{
      kHelloBytes, kNonceBytes + kProofBytes, kProofBytes, kWelcome.size(), 0, 0};
  return kLengths[static_cast<size_t>(stage_)] - heard_.size();
}

void Greeting::hear(std::string_view bytes) {
  heard_ += bytes.substr(0, wants());
  if (stage_ == Stage::kHello) {  // one who talks of something else is not waited for
    const size_t common = std::min(heard_.size(), kGreetingName.size());
    if (heard_.substr(0, common) != kGreetingName.substr(0, common)) {
      stage_ = Stage::kRefused;
      heard_.clear();
    }
  }
  if (wants() > 0) {
    return;
  }
  switch (stage_) {
    case Stage::kHello:
      take_hello();
      break;
    case Stage::kAnswer:
      take_answer();
      break;
    case Stage::kProof:
      take_proof();
      break;
    case Stage::kWelcome:
      stage_ = heard_ == kWelcome ? Stage::kProven : Stage::kRefused;
      break;
    case Stage::kProven:
    case Stage::kRefused:
      break;
  }
  heard_.clear();
}

void Greeting::take_hello() {
  const int caller = rank_at(heard_, kGreetingName.size());
  const int called = rank_at(heard_, kGreetingName.size() + kRankBytes + 1);
  const std::string nonce = heard_.substr(kHelloBytes - kNonceBytes);
  const bool well_formed = caller > rank_ && caller < size_ && called == rank_ &&
                           heard_ == hello_text(caller, called, nonce);
  if (!well_formed) {
    stage_ = Stage::kRefused;
    return;
  }
  greeted_ = true;
  peer_ = caller;
  const std::string mine = fresh_nonce();
  transcript_ = heard_ + mine;
  say_ = mine + proof("called");
  stage_ = Stage::kProof;
}

void Greeting::take_answer() {
  greeted_ = true;
  transcript_ += heard_.substr(0, kNonceBytes);
  if (!strings::equal_constant_time(heard_.substr(kNonceBytes), proof("called"))) {
    stage_ = Stage::kRefused;
    return;
  }
  say_ = proof("caller");
  stage_ = Stage::kWelcome;
}

void Greeting::take_proof() {
  if (!strings::equal_constant_time(heard_, proof("caller"))) {
    stage_ = Stage::kRefused;
    return;
  }
  say_ = kWelcome;
  stage_ = Stage::kProven;
}

std::string Greeting::proof(std::string_view role) const {
  return rendezvous::proof_of(key_, fmt::format("{} {}", role, transcript_));
}

std::string Greeting::verdict() const {
  if (stage_ == Stage::kProven) {
    return "it knows the job's secret";
  }
  if (stage_ == Stage::kRefused) {
    return greeted_ ? "it does not know the job's secret"
                    : "what it said is not the greeting of a rank";
  }
  return heard_.empty() && !greeted_ ? "it said nothing" : "it did not finish its greeting";
}

}  // namespace argosy::transport
