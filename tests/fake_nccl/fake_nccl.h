#pragma once

/// What a test can ask of the fake libnccl.so.2 beside NCCL's own functions. Found by dlsym().
extern "C" {

/// The call named `function` ("ncclAllReduce") returns `result` once, after `skip` calls that are
/// as usual. "async": ncclCommGetAsyncError finds it. Replaces what was asked before.
void fake_nccl_fail(const char* function, int result, int skip);
/// The call named `function` blocks once, after `skip` calls, until its communicator is aborted: as
/// where a stream can take no more work. Empty: none does.
void fake_nccl_block(const char* function, int skip);
/// Returns how often `function` was called in this process.
int fake_nccl_calls(const char* function);
/// The version that ncclGetVersion tells; 0: 2.28.5.
void fake_nccl_set_version(int version);

// What the fake asks of the program: see tests/support/second_device.cpp.

/// Queues `run(context)` on a stream, which touches the memory at these addresses.
using FakeNcclEnqueue = void (*)(void* stream,
                                 void (*run)(void* context),
                                 void* context,
                                 const void* const* addresses,
                                 const bool* writes,
                                 int count);
/// The address at which the host finds memory of the device.
using FakeNcclHostAddress = void* (*)(const void* address);
/// The card that is current in this thread.
using FakeNcclCurrentCard = int (*)();
}
