// SPDX-License-Identifier: Apache-2.0
// Claims between the daemons of one machine, so that two users' daemons never give away the same
// bytes: each has one file that the others read. No lock is shared: publish first, then read the
// others, withdraw if it is too much. Of two who try at the same moment at least one sees the
// other. Nothing here waits. docs/formats/claims.md says why it is safe, and what a hostile user
// can and cannot do.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "node/claims_file.h"

namespace mete::node {

// Folders in which claims are looked for; the first usable one is written to. For real cards those
// that every machine has, world-writable and guarded by their sticky bit. Simulated cards have the
// same UUIDs in every simulation, so each keeps its claims to itself.
std::vector<std::string> claims_folders(const std::string& override_folder,     // METE_CLAIMS_DIR
                                        const std::string& simulation_folder);  // "": real cards

struct OtherClaim {
  ClaimsOwner owner;  // its uid is the file's owner, so it is true
  std::string user;   // what it says: for people only
  Claim claim;
};

// All that may be claimed on a card by everybody together: its capacity, less what is foreign.
struct ClaimRoom {
  std::string uuid;
  Bytes bytes;
};

enum class Verdict {
  kMine,      // held, and nobody else can have been given the same
  kTaken,     // others hold too much; withdrawn
  kLater,     // somebody else tries for the same and goes first; withdrawn, try again in kLaterMs
  kAskAgain,  // somebody else tries for the same and will withdraw: ask_again() in kAskAgainMs
};

class ClaimBook {
 public:
  static constexpr int kAskAgainMs = 5;
  static constexpr int kMaxAsks = 40;  // then give_up(): whoever is in the way does not behave
  static constexpr int kLaterMs = 20;

  // denied: no folder that can be trusted.
  static Result<ClaimBook> open(const std::vector<std::string>& folders, const std::string& user);
  ClaimBook(ClaimBook&&) noexcept = default;
  ClaimBook& operator=(ClaimBook&&) = delete;
  ~ClaimBook();  // removes the file, in the process that made it only

  // Everything that this daemon holds: after a restart (whatever others claim by then), and
  // whenever something was given back. Anything tried for is withdrawn.
  Result<void> hold(std::vector<Claim> claims);
  // Tries to add these to what is held. One try at a time.
  Result<Verdict> try_for(std::vector<Claim> more, std::vector<ClaimRoom> room);
  Result<Verdict> ask_again();
  Result<void> give_up();

  const std::vector<Claim>& held() const { return held_; }

  // What all others claim at the moment, what they try for included. Of a daemon that is gone: what
  // its jobs hold whose runners live on.
  Result<std::vector<OtherClaim>> others() const;
  // Writes the file again if somebody removed it (a session's end may clear /dev/shm). Now and
  // then.
  Result<void> refresh();

  const std::string& folder() const { return folders_.front(); }
  const ClaimsOwner& owner() const { return owner_; }

 private:
  ClaimBook() = default;
  Result<void> make_file();
  Result<void> publish();
  Result<Verdict> judge();
  Result<void> withdraw();
  // Files of our own user's dead daemons that nobody needs any more.
  void sweep() const;

  std::vector<std::string> folders_;  // the one that we write to first
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
