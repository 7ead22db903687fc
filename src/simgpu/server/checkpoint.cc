// SPDX-License-Identifier: Apache-2.0
// What cuCheckpointProcess* does to a process: running → locked → checkpointed → locked → running.
// A lock closes the gate in the process's page and succeeds once no call is inside and no work is
// pending; a checkpoint takes its pieces off the cards, a restore puts them back. A restore without
// room fails for good, as the real one does (driver 580).
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "abi/old_glibc.h"
#include "simgpu/server/server.h"

namespace simgpu {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kOperatingSystem = 304;
constexpr int kIllegalState = 401;
constexpr int kNotReady = 600;
constexpr int kNotSupported = 801;

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void set_locked(PausePage* page, bool locked) {
  __atomic_store_n(&page->locked, locked ? 1u : 0u, __ATOMIC_SEQ_CST);
  if (!locked) syscall(SYS_futex, &page->locked, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool is_at_rest(const PausePage* page) {
  return __atomic_load_n(&page->inside, __ATOMIC_SEQ_CST) == 0 &&
         __atomic_load_n(&page->pending, __ATOMIC_SEQ_CST) == 0 &&
         __atomic_load_n(&page->busy_until_ns, __ATOMIC_SEQ_CST) <= now_ns();
}

}  // namespace

int Server::share_page(Client* client) {
  if (client->page != nullptr || client->out_fd >= 0) return kInvalidValue;
  const int fd = mete::abi::memory_file("mete-sim-pause");
  if (fd < 0) return kOperatingSystem;
  void* shared = MAP_FAILED;
  if (ftruncate(fd, sizeof(PausePage)) == 0)
    shared = mmap(nullptr, sizeof(PausePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (shared == MAP_FAILED) {
    close(fd);
    return kOperatingSystem;
  }
  client->page = static_cast<PausePage*>(shared);
  client->out_fd = fd;
  return 0;
}

void Server::drop_page(Client* client) {
  if (client->page != nullptr) munmap(client->page, sizeof(PausePage));
  client->page = nullptr;
  // A client that asked for a lock and ended has cancelled it.
  for (auto& [id, other] : clients_)
    if (other.locker == client->id) cancel_lock(&other);
}

void Server::cancel_lock(Client* client) {
  client->locker = 0;
  if (client->state == CheckpointState::kRunning && client->page != nullptr)
    set_locked(client->page, false);
}

int Server::lock(Client* client, ClientId asks) {
  if (client->state != CheckpointState::kRunning) return kIllegalState;
  client->locker = asks;
  set_locked(client->page, true);
  if (!is_at_rest(client->page)) return kNotReady;
  client->locker = 0;
  client->state = CheckpointState::kLocked;
  return 0;
}

int Server::checkpoint(Client* asks, const Request& request, Reply* reply) {
  Client* client = nullptr;
  for (auto& [id, one] : clients_)
    if (one.kind == ClientKind::kCuda && one.page != nullptr &&
        one.pid == static_cast<pid_t>(request.a[0]))
      client = &one;
  if (client == nullptr) return kInvalidValue;
  int status = 0;
  switch (static_cast<CheckpointStep>(request.a[1])) {
    case CheckpointStep::kState:
      break;
    case CheckpointStep::kLock:
      status = lock(client, asks->id);
      break;
    case CheckpointStep::kCancel:
      cancel_lock(client);
      break;
    case CheckpointStep::kCheckpoint:
      if (client->state != CheckpointState::kLocked)
        status = kIllegalState;
      else if (!store_.put_away(client->id))
        status = kNotSupported;
      else
        client->state = CheckpointState::kCheckpointed;
      break;
    case CheckpointStep::kRestore:
      if (client->state != CheckpointState::kCheckpointed) {
        status = kIllegalState;
      } else if (!store_.bring_back(client->id)) {
        status = kOutOfMemory;
        client->state = CheckpointState::kFailed;
      } else {
        client->state = CheckpointState::kLocked;
      }
      break;
    case CheckpointStep::kUnlock:
      if (client->state != CheckpointState::kLocked) {
        status = kIllegalState;
      } else {
        client->state = CheckpointState::kRunning;
        set_locked(client->page, false);
      }
      break;
    default:
      status = kInvalidValue;
  }
  reply->v[0] = static_cast<uint64_t>(client->state);
  return status;
}

// ---- the store's part ---------------------------------------------------------------------------

bool Store::put_away(ClientId client) {
  const auto held = held_.find(client);
  if (held == held_.end()) return true;
  for (const auto& [id, count] : held->second) {
    const Piece& piece = pieces_[id];
    // Another process has it too, or could open it; or it is managed memory.
    if (piece.holders > count || !piece.openers.empty() || piece.use == MemoryClass::kManaged)
      return false;
    for (const auto& [number, token] : tokens_)
      if (token.piece == id) return false;
  }
  for (const auto& [id, count] : held->second) {
    Piece& piece = pieces_[id];
    piece.away = true;
    Card& card = machine.cards[piece.card];
    card.used -= piece.bytes;
    if (piece.use == MemoryClass::kContext && left_[client][piece.card] == 0)
      card.used += left_[client][piece.card] = kCheckpointedBytes;
  }
  return true;
}

bool Store::bring_back(ClientId client) {
  const auto held = held_.find(client);
  if (held == held_.end()) return true;
  std::map<uint32_t, uint64_t> wanted;
  for (const auto& [id, count] : held->second)
    if (pieces_[id].away) wanted[pieces_[id].card] += pieces_[id].bytes;
  for (const auto& [card, bytes] : wanted) {
    const Card& on = machine.cards[card];
    if (on.info.state != 0 || on.used - left_[client][card] + bytes > on.capacity()) return false;
  }
  drop_left(client);
  for (const auto& [card, bytes] : wanted) machine.cards[card].used += bytes;
  for (const auto& [id, count] : held->second) pieces_[id].away = false;
  return true;
}

void Store::drop_left(ClientId client) {
  for (const auto& [card, bytes] : left_[client]) machine.cards[card].used -= bytes;
  left_.erase(client);
}

}  // namespace simgpu
