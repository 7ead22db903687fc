// SPDX-License-Identifier: Apache-2.0
// A process's connection to the simulation server, used by both simulated libraries. Starts the
// server if none answers; is made anew after a fork; never raises SIGPIPE; a server that is gone is
// an error value, never a hang. Needs only libc. Any thread may call; calls are serialised.
#pragma once

#include <sys/types.h>

#include "simgpu/protocol.h"

namespace simgpu {

// The CUresults that the connection itself produces.
inline constexpr int kStatusOk = 0;
inline constexpr int kStatusNoDevice = 100;
inline constexpr int kStatusGone = 46;  // CUDA_ERROR_DEVICE_UNAVAILABLE
inline constexpr int kStatusUnknown = 999;

struct Call {
  Request request{};           // `payload` is filled in from send_bytes
  const void* send = nullptr;  // the payload to send
  uint32_t send_bytes = 0;
  int send_fd = -1;  // passed beside the request when >= 0
  Reply reply{};
  void* receive = nullptr;    // the reply's payload goes here
  uint32_t receive_max = 0;   // a longer payload is cut off (reply.payload keeps its full length)
  int* receive_fd = nullptr;  // a descriptor beside the reply goes here (close-on-exec), else -1
};

// Connects (and starts the server if necessary) unless that is done. Returns 0 or a CUresult; if
// the server refuses the machine that METE_SIM names, prints this once on stderr.
int connect_server(ClientKind kind);

// One request and its reply. Returns reply.status, or kStatusGone when the server cannot be
// reached. Needs connect_server() once before; a forked child connects by itself at its first call.
int call_server(Call* call);

// Shorthand for requests without payload.
int call_server(Op op, uint64_t a0, uint64_t a1, uint64_t a2, Reply* reply);

// The current cards and processes. Fills at most `max_cards` / `max_processes` and sets the counts
// to the full numbers. Returns a CUresult.
int take_snapshot(CardInfo* cards, uint32_t max_cards, uint32_t* card_count, ProcessInfo* processes,
                  uint32_t max_processes, uint32_t* process_count);

// Drops the connection (the child's copy after a fork, or at the end of a test).
void drop_connection();

// The directory that holds socket and lock: METE_SIM_DIR, else $METE_STATE_DIR/sim, else
// $XDG_RUNTIME_DIR/mete-sim-UID, else /tmp/mete-sim-UID. False when the path does not fit.
bool simulation_directory(char* out, size_t size);

}  // namespace simgpu
