// SPDX-License-Identifier: Apache-2.0
// See claims.h. A file has two copies of the claims, each with a sequence number and a checksum;
// the writer always overwrites the older one. A write lock on the file, held for life, shows that
// its daemon lives. A try publishes its claims as "tried", reads all other files and decides:
// enough room beside everything, hold; enough room beside held claims only, the daemon with the
// lesser owner goes on and the others withdraw.
#include "node/claims.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/file.h"
#include "node/proc.h"

namespace mete::node {

namespace {

constexpr std::size_t kMaxFiles = 4096;  // of claims in one folder
constexpr int kTries = 20;               // for a file that its owner keeps writing

// The folder belongs to root or us; if others may write there, its sticky bit protects our files.
Result<void> trust(const std::string& folder) {
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) return Error::from_errno(folder, errno);
  if (!S_ISDIR(info.st_mode)) return Error::denied(folder + " is not a folder");
  if (info.st_uid != 0 && info.st_uid != geteuid())
    return Error::denied(folder + " belongs to another user, who could remove our claims");
  if ((info.st_mode & 022) != 0 && (info.st_mode & S_ISVTX) == 0)
    return Error::denied(folder + " lets others remove our claims: its sticky bit is not set");
  return {};
}

// A write lock, which only the file's owner can take, since only the owner can open it for writing:
// a reader cannot make a dead daemon look alive, as it could with flock(2). It ends with our last
// descriptor.
bool lock(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

bool is_locked(int fd) {
  struct flock whole {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  // If the lock cannot be tested, the daemon counts as alive.
  return fcntl(fd, F_OFD_GETLK, &whole) != 0 || whole.l_type == F_WRLCK;
}

// One of the two copies.
Result<ClaimsText> read_copy(int fd, std::size_t which) {
  std::string bytes(kMaxClaimsBytes, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = pread(fd, bytes.data() + size, bytes.size() - size,
                              static_cast<off_t>(which * kMaxClaimsBytes + size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("read claims", errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return parse_claims(std::string_view(bytes).substr(0, size));
}

// A runner of this user; one that /proc hides from us counts as alive.
bool lives(const core::ProcessRef& runner, std::uint32_t uid) {
  if (runner.pid <= 0) return false;
  const Result<ProcessStat> stat = read_stat(runner.pid);
  if (!stat) return kill(runner.pid, 0) != 0 && errno == EPERM;
  if (stat->start_ticks != runner.start_ticks || (stat->is_dead() && stat->threads <= 1))
    return false;
  const Result<ProcessStatus> status = read_status(runner.pid);
  return !status || status->real_uid == uid;
}

struct ReadFile {
  ClaimsText text;
  bool alive = false;
};

// nullopt: it is gone, not owned by its owner, or of a dead daemon that never wrote it. Error: it
// belongs to a living daemon, and cannot be parsed.
Result<std::optional<ReadFile>> read_file(const std::string& path, const ClaimsOwner& owner) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  // Without a descriptor to look with, the file may exist.
  if (Error error = Error::from_errno("open " + path, errno); !fd && error.code == ErrorCode::kBusy)
    return error;
  if (!fd) return std::optional<ReadFile>();
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != owner.uid ||
      info.st_nlink != 1)
    return std::optional<ReadFile>();
  const bool alive = is_locked(fd.get());
  for (int i = 0; i < kTries; ++i) {
    // The writer always overwrites the older copy, so one of the two is whole unless it writes
    // twice meanwhile.
    const Result<ClaimsText> first = read_copy(fd.get(), 0), second = read_copy(fd.get(), 1);
    const bool first_ok = first && first->owner == owner;
    const bool second_ok = second && second->owner == owner;
    if (!first_ok && !second_ok) continue;
    const bool newer = !first_ok || (second_ok && second->sequence > first->sequence);
    return std::optional(ReadFile{newer ? *second : *first, alive});
  }
  if (!alive) return std::optional<ReadFile>();
  return Error::busy("the claims of another daemon cannot be read")
      .with_evidence(path + ", of user " + std::to_string(owner.uid));
}

Result<std::vector<ClaimsOwner>> list_files(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (!directory) return Error::from_errno("open " + folder, errno);
  std::vector<ClaimsOwner> found;
  while (const dirent* entry = readdir(directory.get())) {
    const std::optional<ClaimsOwner> owner = parse_claims_name(entry->d_name);
    if (!owner) continue;
    if (found.size() == kMaxFiles) return Error::exhausted("too many files of claims in " + folder);
    found.push_back(*owner);
  }
  return found;
}

// A dead daemon's claims count while their runners live, and its successor may repeat them.
bool repeats(const std::vector<OtherClaim>& claims, const OtherClaim& one) {
  return std::any_of(claims.begin(), claims.end(), [&](const OtherClaim& other) {
    return other.owner.uid == one.owner.uid && other.claim.runner == one.claim.runner &&
           other.claim.uuid == one.claim.uuid;
  });
}

}  // namespace

std::vector<std::string> claims_folders(const std::string& override_folder,
                                        const std::string& simulation_folder) {
  if (!override_folder.empty()) return {override_folder};
  if (!simulation_folder.empty()) return {base::join_path(simulation_folder, "claims")};
  return {"/run/lock", "/dev/shm"};
}

Result<ClaimBook> ClaimBook::open(const std::vector<std::string>& folders,
                                  const std::string& user) {
  ClaimBook book;
  std::optional<Error> why;
  for (const std::string& folder : folders) {
    // Only a folder of our own is ever made: /run/lock and /dev/shm exist or are not for us.
    if (folders.size() == 1) (void)base::make_directories(folder);
    Result<void> trusted = trust(folder);
    if (trusted && access(folder.c_str(), R_OK | X_OK) == 0)
      book.folders_.push_back(folder);
    else if (!trusted && !why)
      why = std::move(trusted).error();
  }
  const Result<ProcessStat> self = read_stat(getpid());
  if (!self) return self.error();
  book.owner_ = {geteuid(), {getpid(), self->start_ticks}};
  book.user_ = user;
  if (const Result<std::uint64_t> inode = read_pid_namespace(getpid()))
    book.pid_namespace_ = *inode;
  book.sweep();
  // All folders are read; the first writable one is written.
  for (std::size_t i = 0; i < book.folders_.size(); ++i) {
    std::swap(book.folders_[0], book.folders_[i]);
    Result<void> published = book.publish();
    if (published) return book;
    why = std::move(published).error();
  }
  return Error::denied("no folder for claims between daemons")
      .with_evidence(why ? why->message : "")
      .with_hint("set METE_CLAIMS_DIR to a folder of your own");
}

ClaimBook::~ClaimBook() {
  if (file_ && owner_.daemon.pid == getpid())
    (void)unlink(base::join_path(folder(), claims_name(owner_)).c_str());
}

// Made under its final name: a renamed file can be missed by a process that lists the folder.
Result<void> ClaimBook::make_file() {
  const std::string path = base::join_path(folder(), claims_name(owner_));
  // Mode 0600: no other user may open it before it is locked.
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return Error::from_errno("make " + path, errno);
  if (!lock(fd.get())) {
    const int error = errno;
    (void)unlink(path.c_str());
    return Error::from_errno("lock " + path, error);
  }
  file_ = std::move(fd);
  return {};
}

Result<void> ClaimBook::publish() {
  ClaimsText text{sequence_ + 1, owner_, pid_namespace_, user_, held_};
  text.claims.insert(text.claims.end(), tried_.begin(), tried_.end());
  const Result<std::string> bytes = format_claims(text);
  if (!bytes) return bytes.error();
  if (!file_)
    if (Result<void> made = make_file(); !made) return made;
  const std::size_t copy = text.sequence % 2;
  if (!base::write_at(file_.get(), *bytes, copy * kMaxClaimsBytes))
    return Error::from_errno("write claims", errno);
  sequence_ = text.sequence;
  if (sequence_ == 1 && fchmod(file_.get(), 0644) != 0)
    return Error::from_errno("open up the claims", errno);
  return {};
}

Result<void> ClaimBook::refresh() {
  struct stat info {};
  if (fstat(file_.get(), &info) == 0 && info.st_nlink > 0) return {};
  file_.reset();
  sequence_ = 0;
  return publish();
}

Result<void> ClaimBook::hold(std::vector<Claim> claims) {
  for (Claim& claim : claims) claim.held = true;
  held_ = std::move(claims);
  tried_.clear();
  return publish();
}

Result<void> ClaimBook::withdraw() {
  tried_.clear();
  return publish();
}

Result<void> ClaimBook::give_up() {
  if (tried_.empty()) return {};
  return withdraw();
}

Result<Verdict> ClaimBook::try_for(std::vector<Claim> more, std::vector<ClaimRoom> room) {
  METE_ASSERT(tried_.empty());
  for (Claim& claim : more) claim.held = false;
  tried_ = std::move(more);
  room_ = std::move(room);
  if (Result<void> published = publish(); !published) {
    tried_.clear();
    return std::move(published).error();
  }
  return judge();
}

Result<Verdict> ClaimBook::ask_again() {
  METE_ASSERT(!tried_.empty());
  return judge();
}

// Our claims are published already: a daemon that publishes from here on reads them, so a daemon
// that we do not see now must withdraw before us.
Result<Verdict> ClaimBook::judge() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // written, then read, on every processor
  const Result<std::vector<OtherClaim>> others = this->others();
  if (!others) {
    (void)withdraw();
    return others.error();
  }
  // Whether there is room for our claims beside these.
  const auto fits = [&](bool beside_tried) {
    return std::all_of(tried_.begin(), tried_.end(), [&](const Claim& wanted) {
      const auto room = std::find_if(room_.begin(), room_.end(),
                                     [&](const ClaimRoom& one) { return one.uuid == wanted.uuid; });
      if (room == room_.end()) return false;
      Bytes sum;
      bool apart = true;
      // Our own ledger decides which of our claims may be beside each other: what parked jobs leave
      // on a card may be beside a job that has the card for itself.
      for (const std::vector<Claim>* own : {&held_, &tried_})
        for (const Claim& claim : *own)
          if (claim.uuid == wanted.uuid) sum = sum.plus(claim.bytes);
      for (const OtherClaim& other : *others)
        if (other.claim.uuid == wanted.uuid && (other.claim.held || beside_tried)) {
          sum = sum.plus(other.claim.bytes);
          apart = apart && !other.claim.whole && !wanted.whole;
        }
      return apart && sum <= room->bytes;
    });
  };
  if (fits(true)) {
    std::vector<Claim> all = held_;
    all.insert(all.end(), tried_.begin(), tried_.end());
    if (Result<void> held = hold(std::move(all)); !held) return std::move(held).error();
    return Verdict::kMine;
  }
  const auto wants_the_same = [&](const OtherClaim& other) {
    return !other.claim.held && std::any_of(tried_.begin(), tried_.end(), [&](const Claim& wanted) {
      return wanted.uuid == other.claim.uuid;
    });
  };
  const bool others_first =
      std::any_of(others->begin(), others->end(), [&](const OtherClaim& other) {
        return wants_the_same(other) && goes_first(other.owner, owner_);
      });
  const bool taken = !fits(false);
  if (!taken && !others_first) return Verdict::kAskAgain;
  if (Result<void> gone = withdraw(); !gone) return std::move(gone).error();
  return taken ? Verdict::kTaken : Verdict::kLater;
}

Result<std::vector<OtherClaim>> ClaimBook::others() const {
  std::vector<OtherClaim> living, left;
  for (const std::string& folder : folders_) {
    const Result<std::vector<ClaimsOwner>> files = list_files(folder);
    if (!files) return files.error();
    for (const ClaimsOwner& owner : *files) {
      if (owner == owner_) continue;
      const Result<std::optional<ReadFile>> read =
          read_file(base::join_path(folder, claims_name(owner)), owner);
      if (!read) return read.error();
      if (!*read) continue;
      const ReadFile& file = **read;
      for (const Claim& claim : file.text.claims) {
        OtherClaim other{owner, file.text.user, claim};
        if (file.alive)
          living.push_back(std::move(other));
        else if (claim.held && claim.runner && file.text.pid_namespace == pid_namespace_ &&
                 lives(*claim.runner, owner.uid))
          left.push_back(std::move(other));
      }
    }
  }
  for (const Claim& claim : held_) living.push_back({owner_, user_, claim});
  for (OtherClaim& other : left)
    if (!repeats(living, other)) living.push_back(std::move(other));
  std::erase_if(living, [&](const OtherClaim& other) { return other.owner == owner_; });
  return living;
}

void ClaimBook::sweep() const {
  for (const std::string& folder : folders_) {
    const Result<std::vector<ClaimsOwner>> files = list_files(folder);
    if (!files) continue;
    for (const ClaimsOwner& owner : *files) {
      if (owner.uid != owner_.uid || owner == owner_) continue;
      if (lives(owner.daemon, owner.uid)) continue;
      const std::string path = base::join_path(folder, claims_name(owner));
      const Result<std::optional<ReadFile>> read = read_file(path, owner);
      if (!read) continue;
      bool needed = false;
      if (*read) {
        const ReadFile& file = **read;
        needed = file.alive || file.text.pid_namespace != pid_namespace_;
        for (const Claim& claim : file.text.claims)
          needed |= claim.held && claim.runner && lives(*claim.runner, owner.uid);
      }
      if (!needed) (void)unlink(path.c_str());
    }
  }
}

}  // namespace mete::node
