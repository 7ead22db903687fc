// SPDX-License-Identifier: Apache-2.0
// Claims between the daemons of one machine, so that two users' daemons never grant the same bytes:
// each has one file that the others read. No lock is shared: publish first, then read the others,
// withdraw if it is too much. Of two daemons that try at the same moment at least one sees the
// other. Nothing here waits. docs/formats/claims.md says why it is safe, and what a hostile user
// can and cannot do.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "node/claims_file.h"

namespace mete::node {

// Folders in which claims are looked for; the first usable one is written to. For real cards:
// folders that every machine has, world-writable and protected by their sticky bit. Simulated cards
// have equal UUIDs in every simulation, so each simulation keeps its claims to itself.
std::vector<std::string> claims_folders(const std::string& override_folder,     // METE_CLAIMS_DIR
                                        const std::string& simulation_folder);  // "": real cards

struct OtherClaim {
  ClaimsOwner owner;  // its uid is the file's owner, so it is true
  std::string user;   // what the daemon says: for users only
  Claim claim;
};

// All that may be claimed on a card in total: its capacity, less foreign memory.
struct ClaimRoom {
  std::string uuid;
  Bytes bytes;
};

enum class Verdict {
  kMine,   // held, and no other daemon can have been given the same bytes
  kTaken,  // others hold too much; withdrawn
  kLater,  // another daemon tries for the same bytes and goes first; withdrawn, retry in kLaterMs
  kAskAgain,  // another daemon tries for the same bytes and will withdraw: ask_again() in
              // kAskAgainMs
};

class ClaimBook {
 public:
  static constexpr int kAskAgainMs = 5;
  static constexpr int kMaxAsks = 40;  // then give_up(): the other daemon does not follow the
                                       // protocol
  static constexpr int kLaterMs = 20;

  // denied: no folder that can be trusted.
  static Result<ClaimBook> open(const std::vector<std::string>& folders, const std::string& user);
  ClaimBook(ClaimBook&&) noexcept = default;
  ClaimBook& operator=(ClaimBook&&) = delete;
  ~ClaimBook();  // removes the file, only in the process that made it

  // Sets everything that this daemon holds: after a restart (whatever others claim by then), and
  // whenever something was given back. Withdraws anything that is being tried for.
  Result<void> hold(std::vector<Claim> claims);
  // Tries to add these to the held claims. One try at a time.
  Result<Verdict> try_for(std::vector<Claim> more, std::vector<ClaimRoom> room);
  Result<Verdict> ask_again();
  Result<void> give_up();

  const std::vector<Claim>& held() const { return held_; }

  // What all other daemons currently claim or try for. For a daemon that is gone: the claims of its
  // jobs whose runners still live.
  Result<std::vector<OtherClaim>> others() const;
  // Writes the file again if it was removed (the end of a session may clear /dev/shm). To be called
  // now and then.
  Result<void> refresh();

  const std::string& folder() const { return folders_.front(); }
  const ClaimsOwner& owner() const { return owner_; }

 private:
  ClaimBook() = default;
  Result<void> make_file();
  Result<void> publish();
  Result<Verdict> judge();
  Result<void> withdraw();
  // Removes files of our own user's dead daemons that are not needed any more.
  void sweep() const;

  std::vector<std::string> folders_;  // the one that we write to comes first
  std::string user_;
  ClaimsOwner owner_;
  std::uint64_t pid_namespace_ = 0;
  std::uint64_t sequence_ = 0;
  Fd file_;  // locked for as long as we live
  std::vector<Claim> held_;
  std::vector<Claim> tried_;
  std::vector<ClaimRoom> room_;
};

}  // namespace mete::node
