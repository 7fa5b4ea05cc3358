#ifndef ARGOSY_ABI_COMM_H
#define ARGOSY_ABI_COMM_H

/// Groups and their operations for the runtimes of other languages, by C functions alone: whoever
/// calls them may have another compiler, another C++ library and a Gloo of its own.
/// libargosy_comm.so exports these functions and nothing else. The backend "argosy" of PyTorch is
/// made of them.
///
/// No exception leaves a function, and memory is freed by who allocated it. Thread-safe, where
/// nothing else is said.

#include <stddef.h>
#include <stdint.h>

// NOLINTBEGIN(readability-identifier-naming): names of C have their library before them
#ifdef __cplusplus
extern "C" {
#endif

/// Of this interface: who calls compares it with what argosy_abi() returns.
#define ARGOSY_ABI 2
int argosy_abi(void);

typedef enum ArgosyCode {
  ARGOSY_OK = 0,
  ARGOSY_FAILED = 1,     ///< a rank died, the ranks differ, or what the message says
  ARGOSY_TIMED_OUT = 2,  ///< the deadline passed; the message names the ranks that did not come
  ARGOSY_MISUSED = 3,    ///< an argument is wrong, or the group is closed
} ArgosyCode;

/// A text that the library keeps, for messages and values.
typedef struct ArgosyText ArgosyText;
ArgosyText* argosy_text_new(void);
void argosy_text_free(ArgosyText* text);
void argosy_text_set(ArgosyText* text, const char* value, size_t bytes);
/// Ends with a NUL. Valid until the text changes.
const char* argosy_text_get(const ArgosyText* text);

/// How the ranks of a group meet: through a store of the caller's, in which the first rank leaves
/// word of where ours is. When they have met, the word is replaced: the next group may meet under
/// the same names. `set` and `get` return ARGOSY_OK, or another code and say why. `get` waits until
/// the key is there.
typedef struct ArgosyMeeting {
  const char* name;  ///< of the group, for messages
  int rank;
  int size;
  int64_t timeout_ms;  ///< of the meeting, and of operations that name none
  /// A host that all ranks reach. "": none is known, and ARGOSY_IFNAME says by which interface they
  /// reach this one. See rendezvous::InvitationOptions.
  const char* towards;
  void* store;
  int (*set)(void* store, const char* key, const char* value, ArgosyText* why);
  int (*get)(void* store, const char* key, int64_t timeout_ms, ArgosyText* value, ArgosyText* why);
  const int* world_ranks;  ///< of the `size` ranks, for messages and records; NULL: 0, 1, ...
} ArgosyMeeting;

/// A group: shared memory inside a host, Gloo between hosts, sums in one order. ARGOSY_BACKEND
/// chooses another transport. Collective. NULL: `code` and `why` say what happened.
typedef struct ArgosyGroup ArgosyGroup;
ArgosyGroup* argosy_group_make(const ArgosyMeeting* meeting, ArgosyCode* code, ArgosyText* why);
/// Waits so long for running operations, which then fail, and closes the connections. Idempotent. A
/// call with less time cuts another thread's short. Inside of one of the group's operations, or of
/// its end, it returns at once, and the group closes behind it.
void argosy_group_close(ArgosyGroup* group, int64_t timeout_ms);
/// Closes the group as at the end of a process, and frees it. Allowed inside of its operations too.
void argosy_group_free(ArgosyGroup* group);
/// Closes all groups of this process, and waits so long for what they run, all together. Inside of
/// an operation, all but that operation's group, which is closed at the end of the process.
void argosy_close_all(int64_t timeout_ms);
/// The newest 1,024 operations as JSON; see comm::FlightRecorder.
void argosy_group_record(const ArgosyGroup* group, ArgosyText* json);

typedef enum ArgosyStepKind {
  ARGOSY_ALL_REDUCE,  ///< in place, in `output`
  ARGOSY_REDUCE,      ///< likewise, on `root`
  ARGOSY_BROADCAST,   ///< likewise
  ARGOSY_ALL_GATHER,
  ARGOSY_ALL_GATHER_V,  ///< rank i brings receive_counts[i] elements
  ARGOSY_GATHER,
  ARGOSY_SCATTER,
  ARGOSY_REDUCE_SCATTER,
  ARGOSY_ALL_TO_ALL,
  ARGOSY_ALL_TO_ALL_V,
  ARGOSY_BARRIER,
} ArgosyStepKind;

/// Numbered as transport::DType and transport::ReduceOp.
typedef enum ArgosyType {
  ARGOSY_F32,
  ARGOSY_F64,
  ARGOSY_F16,
  ARGOSY_BF16,
  ARGOSY_I8,
  ARGOSY_U8,
  ARGOSY_I32,
  ARGOSY_I64,
  ARGOSY_BOOL,
} ArgosyType;
typedef enum ArgosyReduction {
  ARGOSY_SUM,
  ARGOSY_AVG,
  ARGOSY_MIN,
  ARGOSY_MAX,
  ARGOSY_PRODUCT,
  ARGOSY_BAND,
  ARGOSY_BOR,
  ARGOSY_BXOR,
} ArgosyReduction;

/// 0: values of this type have no such reduction.
int argosy_is_defined(ArgosyReduction reduction, ArgosyType type);

/// One collective between the ranks, as transport::Transport has it. What it does not need is 0.
typedef struct ArgosyStep {
  ArgosyStepKind kind;
  ArgosyType type;
  ArgosyReduction reduction;
  int root;
  const void* input;
  void* output;
  int64_t count;  ///< of elements per rank
  const int64_t* send_counts;
  const int64_t* receive_counts;
} ArgosyStep;

/// Where an operation is: in the group's thread, at its turn.
typedef struct ArgosyHere ArgosyHere;
/// Does a step, and returns when it is done. Call it only inside a body, in its thread.
int argosy_step(ArgosyHere* here, const ArgosyStep* step);
/// Memory that all ranks of the group read and write. An all_reduce of data that lies in one block
/// on all ranks, at places that do not overlap, sums it where it lies: nothing is copied.
typedef struct ArgosyBlock ArgosyBlock;
/// A step too: `block` gets `bytes` bytes, zeros at first, or NULL on every rank, where the ranks
/// cannot share memory (a group of one, several hosts, Gloo).
int argosy_share(ArgosyHere* here, size_t bytes, ArgosyBlock** block);
/// Its first byte, that of a page.
void* argosy_block_data(const ArgosyBlock* block);
/// At any time, after the group too. What lies in it stays until the last rank has freed it.
void argosy_block_free(ArgosyBlock* block);
/// Says why a body returns something else than ARGOSY_OK, where no step has failed.
void argosy_fail(ArgosyHere* here, const char* message);

/// The steps of an operation, in their order: the same on all ranks. It returns ARGOSY_OK, or what
/// argosy_step() returned.
typedef int (*ArgosyBody)(void* context, ArgosyHere* here);
/// The end of an operation or of a transfer. Valid only during the call.
typedef struct ArgosyEnd {
  ArgosyCode code;
  const char* message;  ///< NULL when all went well
  const int* peers;     ///< the ranks that are to blame, where they are known
  size_t peer_count;
  int source;  ///< who sent what was received, or -1
} ArgosyEnd;
/// Exactly once where it was accepted.
typedef void (*ArgosyThen)(void* context, const ArgosyEnd* end);

typedef struct ArgosyOperation {
  const char* name;  ///< "all_reduce"; must live as long as the group, as `type` must
  const char* type;  ///< "f32", or ""
  int64_t elements;
  int64_t bytes;
  int64_t timeout_ms;  ///< from the moment it starts; 0: the group's
  int waits;           ///< not 0: in the caller's thread, and the call returns when it is over
  ArgosyBody body;
  ArgosyThen then;
  void* context;
} ArgosyOperation;
/// Queues an operation behind those before it. ARGOSY_OK: it was accepted.
int argosy_submit(ArgosyGroup* group, const ArgosyOperation* operation, ArgosyText* why);

typedef struct ArgosyTransfer {
  int receives;
  void* data;  ///< is only read where it is sent
  size_t bytes;
  int peer;  ///< -1: receives from whoever sends first
  uint32_t tag;
  int64_t timeout_ms;  ///< from now; 0: the group's
  ArgosyThen then;
  void* context;
} ArgosyTransfer;
/// Starts to send or to receive, and returns. ARGOSY_OK: it was accepted.
int argosy_transfer(ArgosyGroup* group, const ArgosyTransfer* transfer, ArgosyText* why);

#ifdef __cplusplus
}
#endif
// NOLINTEND(readability-identifier-naming)

#endif
