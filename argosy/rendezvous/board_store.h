#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "argosy/rendezvous/board.h"
#include "argosy/rendezvous/limits.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// A member on a Board. The end of this object is its departure.
class BoardPresence final : public Presence {
 public:
  BoardPresence(std::shared_ptr<Board> board, uint64_t id) : board_(std::move(board)), id_(id) {}
  ~BoardPresence() override { board_->depart(id_, Parting::kLeft, ""); }
  BoardPresence(const BoardPresence&) = delete;
  BoardPresence& operator=(const BoardPresence&) = delete;
  BoardPresence(BoardPresence&&) = delete;
  BoardPresence& operator=(BoardPresence&&) = delete;

  void note(const std::string& text) override { board_->note(id_, cut_note(text)); }
  void leave(const std::string& note, const Deadline& /*deadline*/) override {
    board_->depart(id_, Parting::kLeft, cut_note(note));
  }
  void lose() { board_->depart(id_, Parting::kLost, std::nullopt); }

 private:
  const std::shared_ptr<Board> board_;
  const uint64_t id_;
};

/// A Board as a Store for the threads of this process. `description` is what describe() returns.
[[nodiscard]] std::shared_ptr<Store> board_store(std::shared_ptr<Board> board,
                                                 std::string description);

}  // namespace argosy::rendezvous
