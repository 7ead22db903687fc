// SPDX-License-Identifier: Apache-2.0
// See front_door.h.
#include "daemon/front_door.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "net/address_file.h"
#include "net/daemon_start.h"

namespace mete::daemon {

FrontDoor::FrontDoor(net::Listener listener, std::string state_dir, bool system, Log log)
    : listener_(std::move(listener)),
      state_dir_(std::move(state_dir)),
      system_(system),
      log_(std::move(log)) {
  announce();
}

FrontDoor::~FrontDoor() {
  if (temporary_.empty()) return;
  listener_.reset();
  // No other daemon locks in this folder.
  (void)unlink(base::join_path(temporary_, "meted.sock.lock").c_str());
  (void)rmdir(temporary_.c_str());
}

bool FrontDoor::mend() {
  if (listener_->is_in_place()) {
    if (!announced_) announce();
    return false;
  }
  const std::string lost = path();
  // Without its lock file the path may belong to another daemon by now, so it is claimed like a new
  // one. The runtime folder itself is made by the login, not by us.
  const std::string above = base::parent_path(base::parent_path(lost));
  bool open = listener_->reopen_door().ok() || (access(above.c_str(), F_OK) == 0 && move_to(lost));
  if (!open && !system_)
    open = move_to(net::socket_in_state(state_dir_)) || move_to_temporary_folder();
  if (!open) return false;
  trouble_.clear();
  log_("the socket " + lost + " was removed; listening at " + path());
  announce();
  return true;
}

void FrontDoor::announce() {
  Result<Fd> file = net::write_address(state_dir_, path());
  if (file)
    announced_ = *std::move(file);
  else
    say_once("clients may not find this daemon: " + file.error().message);
}

bool FrontDoor::move_to(const std::string& path) {
  Result<net::Listener> place = net::claim_place({path, system_});
  Result<void> open = place ? place->open_door() : Result<void>(place.error());
  if (open)
    listener_.emplace(*std::move(place));
  else
    say_once("the socket is gone, and cannot be made again: " + open.error().message);
  return open.ok();
}

bool FrontDoor::move_to_temporary_folder() {
  if (temporary_.empty()) {
    char folder[] = "/tmp/mete-XXXXXX";
    if (mkdtemp(folder) == nullptr) {
      say_once(Error::from_errno("make a folder for the socket in /tmp", errno).message);
      return false;
    }
    temporary_ = folder;
  }
  return move_to(base::join_path(temporary_, "meted.sock"));
}

void FrontDoor::say_once(const std::string& trouble) {
  if (trouble_.find(trouble) != std::string::npos) return;
  trouble_ += trouble + '\n';
  log_(trouble);
}

}  // namespace mete::daemon
