// SPDX-License-Identifier: Apache-2.0
// The daemon's socket, made so that there is one daemon and no other process can pose as it. The
// lock PATH.lock decides which process is the daemon, for its life; only its holder replaces a
// socket that a dead daemon left behind. Listening comes before anything slow: clients then wait in
// the queue.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "net/unix_socket.h"

namespace mete::net {

struct ListenAt {
  std::string path;     // absolute
  bool system = false;  // folder 0755 of root and socket 0666, instead of 0700 and 0600
  // For a previous daemon that is just ending.
  Milliseconds wait_for_lock{0};
};

// Its destructor removes the socket (unless it was inherited), then releases the lock.
class Listener {
 public:
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  // The listening socket, non-blocking, to be given to the server; once.
  Fd take_socket() { return std::move(socket_); }
  const std::string& path() const { return path_; }
  bool inherited() const { return inherited_; }
  // After claim_place(): makes the socket and listens. Errors as in listen_at().
  Result<void> open_door();
  // Whether clients still find this socket at its path. True for a socket from systemd.
  bool is_in_place() const;
  // The socket's file is gone: makes a new socket at the path, for take_socket(). busy: the lock
  // file is gone too, so that the path may belong to another daemon by now.
  Result<void> reopen_door();
  // Removes the socket now, so that new clients start another daemon, which waits for the lock. For
  // a daemon that ends; before HttpServer::drain(). A socket that another daemon has put there
  // stays.
  void close_door();

 private:
  friend Result<Listener> claim_place(const ListenAt& at);
  Listener() = default;
  bool owns_path() const;
  Result<void> bind_door();

  Fd lock_;
  Fd socket_;
  std::string path_;
  bool system_ = false;
  bool inherited_ = false;
  std::optional<base::FileId> file_;  // of the socket that open_door() made
};

// busy: another daemon holds the lock, or answers at that path. denied: the folder does not belong
// to us only. invalid: the path is too long, or holds something that is not a socket.
//
// A socket passed by systemd (LISTEN_FDS, LISTEN_PID) is used instead of a new one; its path is
// then the one it is bound to. These variables are unset in any case.
Result<Listener> listen_at(const ListenAt& at);
// listen_at() without listening: the lock is ours, and no client can connect before open_door().
// Steps that may fail for good are taken in between, since a client that is connected when its
// daemon fails cannot know what became of its request. (A socket from systemd listens already.)
Result<Listener> claim_place(const ListenAt& at);

// Makes the folder of a socket when it is missing, with its parents, and checks that only we can
// write in it (denied): another user could replace our socket.
Result<void> prepare_socket_folder(const std::string& folder, bool system);

// 4096 connections need more than the usual 1024 descriptors: raises the soft limit to the hard one
// and returns the previous one, which a job must get back (select() breaks above 1024).
Result<rlimit> raise_descriptor_limit();

}  // namespace mete::net
