// SPDX-License-Identifier: Apache-2.0
// Keeps the daemon reachable: its state folder says where it listens, and a socket whose file is
// gone (a logout removes the runtime folder) is made again: at its path if still possible, else in
// the state folder, else in a new folder in /tmp if the state folder's path is too long for a
// socket. The system daemon has one path for all users and stays there.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"
#include "net/listen.h"

namespace mete::daemon {

class FrontDoor {
 public:
  using Log = std::function<void(const std::string&)>;
  // `listener` is open.
  FrontDoor(net::Listener listener, std::string state_dir, bool system, Log log);
  ~FrontDoor();
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  const std::string& path() const { return listener_->path(); }
  // The listening socket; may be taken once, and once more after each mend() that returned true.
  Fd take_socket() { return listener_->take_socket(); }
  // Call about once a second. True: there is a new socket, maybe at another path. Obstacles are
  // logged once.
  bool mend();

 private:
  void announce();
  bool move_to(const std::string& path);
  bool move_to_temporary_folder();
  void say_once(const std::string& trouble);

  std::optional<net::Listener> listener_;
  std::string state_dir_;
  bool system_;
  Log log_;
  Fd announced_;           // the lock of the address file
  std::string temporary_;  // our folder in /tmp; "": none
  std::string trouble_;    // as last logged
};

}  // namespace mete::daemon
