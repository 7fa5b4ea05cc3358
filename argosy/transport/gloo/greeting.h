#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Internal to the room: how two ranks prove to each other that they belong to one job.
namespace argosy::transport {

/// One end of the greeting that comes before any data of a connection: both ends prove that they
/// know the key of the rank that is called, which stands in the group's store. Bytes only.
///
///     caller → called    name of the greeting, both ranks, a nonce
///     called → caller    a nonce, HMAC(key, "called", all of the above)
///     caller → called    HMAC(key, "caller", the same)
///     called → caller    "welcome"
///
/// A caller that says nothing right hears nothing. The answers depend on nothing of the job but the
/// key. Source: SKID3 (Menezes, van Oorschot, Vanstone: Handbook of Applied Cryptography, 10.17).
class Greeting final {
 public:
  /// The end of `rank`, which calls `peer`. `key` is the peer's.
  [[nodiscard]] static Greeting calling(int rank, int peer, std::string key);
  /// The end of `rank`, which is called by one of those above it. `key` is its own.
  [[nodiscard]] static Greeting called(int rank, int size, std::string key);

  /// Returns what this end has to say now. Each text is returned once.
  [[nodiscard]] std::string speak();
  /// Returns how many bytes it must hear before it speaks again; 0 after its verdict. Do not read
  /// more: the bytes after that belong to the transport.
  [[nodiscard]] size_t wants() const;
  /// Takes bytes of the other end, at most as many as it wants.
  void hear(std::string_view bytes);

  /// True if the other end knows the key. An end that was called must still speak its welcome.
  [[nodiscard]] bool proven() const { return stage_ == Stage::kProven; }
  /// True if the other end has said something that no rank of the job says.
  [[nodiscard]] bool refused() const { return stage_ == Stage::kRefused; }
  /// Returns the rank that the other end claims to be. Once proven(), that is the truth.
  [[nodiscard]] int peer() const { return peer_; }
  /// Says what the other end said up to now, for messages: "it said nothing".
  [[nodiscard]] std::string verdict() const;

 private:
  enum class Stage { kHello, kAnswer, kProof, kWelcome, kProven, kRefused };

  Greeting(Stage stage, int rank, std::string key);
  void take_hello();
  void take_answer();
  void take_proof();
  [[nodiscard]] std::string proof(std::string_view role) const;

  Stage stage_;  ///< what it waits for
  int rank_;
  int size_ = 0;
  int peer_ = -1;
  std::string key_;
  std::string transcript_{};  ///< hello and the called one's nonce
  std::string heard_{};       ///< of what it waits for
  std::string say_{};
  bool greeted_ = false;  ///< the other end knows the form at least
};

}  // namespace argosy::transport
