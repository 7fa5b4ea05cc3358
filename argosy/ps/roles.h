#pragma once

#include <string>

namespace argosy::ps {

/// Who this process is in a job with servers.
struct Roles {
  int servers = 1;
  int workers = 1;
  bool is_server = false;
  int index = 0;            ///< among the servers, or among the workers
  std::string meeting{};    ///< "host:port" of server 0, where all meet without a launcher of ours
  int rank = -1;            ///< among all, as our launcher numbers them; -1: servers, then workers
  bool own_server = false;  ///< the only server is a thread of the only worker's process

  /// A job of one process, which has the tables itself.
  [[nodiscard]] static Roles alone() { return {.own_server = true}; }
  /// True if a launcher has started this process in a job with servers.
  [[nodiscard]] static bool are_set();

  /// Reads Paddle's variables: TRAINING_ROLE (PSERVER or TRAINER), PADDLE_TRAINERS_NUM,
  /// PADDLE_TRAINER_ID, PADDLE_PSERVERS_IP_PORT_LIST, and POD_IP with PADDLE_PORT for a server;
  /// and ARGOSY_RANK, which argosy launch sets.
  /// Errors: ConfigError naming the variable that is missing or malformed: a job without servers is
  /// no job of one worker.
  [[nodiscard]] static Roles from_environment();
};

}  // namespace argosy::ps
