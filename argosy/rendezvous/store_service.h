#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/admission.h"
#include "argosy/rendezvous/board.h"

#include "store.grpc.pb.h"

namespace argosy::rendezvous {

/// A Board behind the wire protocol. Waiting calls and presences occupy no thread: gRPC's few
/// callback threads (at most 16) serve any number of ranks. Internal to the room.
class StoreService final : public wire::StoreService::CallbackService {
 public:
  StoreService(std::shared_ptr<Board> board, std::string token);

  /// Waits until no member that came through the network is present. False when the deadline
  /// passed.
  [[nodiscard]] bool wait_until_members_left(const Deadline& deadline);

 private:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  class Waiting;
  class PresenceEnd;
  struct Census;

  Unary* Hello(Context*, const wire::HelloRequest*, wire::HelloReply*) override;
  Unary* Set(Context*, const wire::SetRequest*, wire::SetReply*) override;
  Unary* Get(Context*, const wire::GetRequest*, wire::GetReply*) override;
  Unary* Wait(Context*, const wire::WaitRequest*, wire::WaitReply*) override;
  Unary* Missing(Context*, const wire::MissingRequest*, wire::MissingReply*) override;
  Unary* Add(Context*, const wire::AddRequest*, wire::AddReply*) override;
  Unary* CompareSet(Context*, const wire::CompareSetRequest*, wire::CompareSetReply*) override;
  Unary* Remove(Context*, const wire::RemoveRequest*, wire::RemoveReply*) override;
  Unary* Keys(Context*, const wire::KeysRequest*, wire::KeysReply*) override;
  grpc::ServerBidiReactor<wire::PresenceUpdate, wire::PresenceReply>* Announce(Context*) override;
  Unary* Departures(Context*, const wire::DeparturesRequest*, wire::DeparturesReply*) override;
  Unary* Members(Context*, const wire::MembersRequest*, wire::MembersReply*) override;

  /// Runs `act` when the caller is admitted. Finishes the call, with the status of what `act`
  /// threw.
  [[nodiscard]] Unary* answer(Context* context, const std::function<void()>& act) const;

  /// Answers when all keys exist, with the value of the last one if `value` is given.
  [[nodiscard]] Unary* wait_for(const Context& context,
                                std::vector<std::string> keys,
                                std::string* value) const;

  const std::shared_ptr<Board> board_;
  const wire::Admission admission_;
  const std::shared_ptr<Census> census_;
};

}  // namespace argosy::rendezvous
