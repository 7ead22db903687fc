// SPDX-License-Identifier: Apache-2.0
// The mover: keeps the bytes of parked jobs of one card in pinned host memory. One thread and one
// loop decide (Books) and serve the sockets; other threads call the driver (Pinner, Copier,
// Spiller), so that no connection waits for another one's copy to be answered.
//
//   hello, out, in, drop     from processes, which show a token that the daemon has allowed
//   allow, forbid, arena,    from the daemon: a process of our user, or root
//   status
//
// Messages and answers: docs/formats/park.md. The mover ends by itself when nothing is stored and
// no daemon has been connected for a while; at a SIGTERM it ends as soon as nothing is stored, at a
// second one at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "park/books.h"
#include "park/connection.h"
#include "park/copier.h"
#include "park/cuda_library.h"
#include "park/door.h"
#include "park/pinner.h"
#include "park/spiller.h"

struct pollfd;

namespace mete::park {

struct MoverOptions {
  std::string card;  // "GPU-…"
  std::string cuda = "libcuda.so.1";
  std::string socket;
  mode_t mode = 0600;
  Bytes arena;
  uint64_t idle_s = 60;
  std::string spill;  // the folder for what does not fit the arena; "": refuse it
  Bytes spill_bytes;
};

class Mover {
 public:
  static constexpr std::size_t kMaxConnections = 4096;
  // Connections of one user, so that no user can lock out others. Root and our own user are not
  // bounded: the daemon can always connect.
  static constexpr std::size_t kMaxOfUser = 2048;
  static constexpr std::size_t kMaxOfOthers = kMaxConnections - 64;
  static constexpr std::size_t kMaxStrangers = 256;  // of one user that have not identified
                                                     // themselves
  static constexpr uint64_t kStrangerNs = 10'000'000'000;
  static constexpr uint64_t kMaxWaitNs = 5'000'000'000;  // of a hello for room
  static constexpr uint64_t kPinAgainNs = 30'000'000'000;
  static constexpr uint64_t kSegment = 256 << 20;  // pinned at once: the driver is busy meanwhile
  static constexpr std::size_t kMaxTasks = 256;    // each has a descriptor

  using Say = std::function<void(const std::string&)>;

  // Takes the lock, listens, opens the card. SIGTERM and SIGINT must be blocked in this thread, and
  // this must come before any other thread. busy: there is a mover already.
  static Result<std::unique_ptr<Mover>> start(const MoverOptions& options, Say say);
  // Runs until it is to end. The process must then end without destructors: threads of the driver
  // and of ours still run.
  Result<void> run();

 private:
  struct Task {
    ConnectionId connection;
    uint64_t piece;
    uint32_t serial;
    bool out;
    uint64_t on_disk;  // of its bytes
  };
  struct Segment {
    char* memory;
    uint64_t bytes;
  };

  Mover(const MoverOptions& options, Say say, Door door);

  // mover.cc: the loop
  Result<void> prepare();
  void turn();
  int patience_ms(uint64_t now) const;
  bool reading_allowed(const Connection& connection) const;
  void welcome();
  bool has_room_for(uint32_t uid) const;
  void serve(Connection& connection, short events);
  void collect();
  void close(ConnectionId id);
  void end_of_copy(const CopyResult& result);
  void send_off_strangers(uint64_t now);
  void hear_signals();
  bool is_idle() const;
  bool should_end(uint64_t now);

  // mover_requests.cc: requests
  void look_at(Connection& connection, Packet packet);
  void handle(Connection& connection, Packet packet);
  void handle_daemon(Connection& connection, const abi::MoverMessage& message);
  void handle_hello(Connection& connection, Packet packet);
  void handle_copy(Connection& connection, Packet packet);
  void status(Connection& connection, const abi::MoverMessage& message);
  void retry_held(Connection& connection);
  void punish(Connection& connection, Fd descriptor);
  std::vector<Part> parts_of(const Place& place) const;

  // mover_arena.cc: growing and shrinking
  void tend_arena(uint64_t now);
  void end_of_errand(const Pinner::Done& done, uint64_t now);

  MoverOptions options_;
  Say say_;
  Door door_;
  Fd bell_fd_;
  Fd signals_;
  Card card_;
  std::unique_ptr<Pinner> pinner_;
  std::unique_ptr<Copier> copier_;
  std::unique_ptr<Spiller> spiller_;  // null: nothing goes to disk

  Books books_;
  std::map<ConnectionId, Connection> connections_;
  ConnectionId next_connection_ = 1;
  std::map<uint64_t, Task> tasks_;
  uint64_t next_task_ = 1;

  std::map<uint32_t, Segment> segments_;
  uint32_t next_segment_ = 0;
  bool pinning_ = false;  // pinning or unpinning is under way
  CUresult pin_error_ = CUDA_SUCCESS;
  uint64_t pin_again_ns_ = 0;  // not before this time; after an error

  int terms_ = 0;  // how many signals to end it got
  uint64_t idle_since_ns_ = 0;
};

// The command line of mete-mover (mover_main.cc).
int mover_main(int argc, char** argv);

}  // namespace mete::park
