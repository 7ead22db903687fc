// SPDX-License-Identifier: Apache-2.0
// The simulation server: one thread, one epoll loop, no lock. A client is a socket; its death is
// the end of the socket's last copy, so that a child forked without exec keeps its parent's memory.
// Deaths are handled before requests of the same turn, so that a process that has seen another one
// reaped finds its memory free. Ends by itself after a while without clients.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "simgpu/server/store.h"

namespace simgpu {

class Server {
 public:
  // `listener` is the bound, listening socket in `folder`.
  Server(int listener, std::string folder);
  int run();  // the program's exit status

 private:
  enum class CheckpointState : uint64_t { kRunning, kLocked, kCheckpointed, kFailed };
  struct Client {
    ClientId id = 0;
    int fd = -1;
    pid_t pid = 0;
    ClientKind kind = ClientKind::kControl;
    bool greeted = false;
    std::string in;
    std::deque<int> in_fds;
    std::string out;
    int out_fd = -1;  // goes out with the first byte of `out`
    bool want_write = false;
    PausePage* page = nullptr;  // of a CUDA process that has called cuInit
    CheckpointState state = CheckpointState::kRunning;
    ClientId locker = 0;  // waits for it to come to rest
    // Its work on each card, for cards on which it ever worked.
    std::map<uint32_t, Load> kernels;
    std::map<uint32_t, Load> copies;
  };
  struct Teardown {
    uint64_t due_ms;
    Store::Held held;
  };
  struct Export {
    PieceId piece;
    int fd;  // our end; hangs up when the last copy of the other end is closed
  };

  void accept_all();
  bool read_client(Client* client);      // false: it is gone
  bool handle_requests(Client* client);  // false: it broke the protocol
  bool flush(Client* client);
  void end_client(ClientId id);
  void end_export(uint64_t inode);
  void finish_teardowns();
  int wait_ms() const;
  bool may_end();

  void answer(Client* client, const Request& request, const char* payload);
  int hello(Client* client, const Request& request, const char* payload, Reply* reply,
            std::string* text);
  int fd_export(Client* client, PieceId id);
  int fd_import(Client* client, Reply* reply);
  // checkpoint.cc
  int share_page(Client* client);
  void drop_page(Client* client);
  void cancel_lock(Client* client);
  int lock(Client* client, ClientId asks);
  int checkpoint(Client* asks, const Request& request, Reply* reply);
  std::string snapshot();
  int control(const std::string& line, std::string* text);
  std::string dump() const;
  void refresh(uint32_t card, uint64_t now_ms);
  void note_copy(Client* client, PieceId id, uint64_t bytes);

  void watch(int fd, uint64_t tag, uint32_t events);

  int listener_;
  std::string folder_;
  int epoll_ = -1;
  Store store_;
  bool have_machine_ = false;
  std::map<ClientId, Client> clients_;
  std::map<uint64_t, Export> exports_;  // by inode of the exported end
  std::vector<Teardown> teardowns_;
  ClientId next_client_ = 1;
  uint64_t teardown_ms_ = 0;
  uint64_t idle_limit_ms_ = 3000;
  bool shared_ = false;  // by users other than ours
  uint64_t idle_since_ms_ = 0;
  bool stop_ = false;
};

}  // namespace simgpu
