// SPDX-License-Identifier: Apache-2.0
// See movers.h. want() and forget() keep the guests of each card's mover; look_after_all(), run
// from the loop until everything is settled, reaps, connects or starts each mover and tells it its
// guests and the size of its arena. Questions are sent without waiting: `open` has those without an
// answer, hear() takes the answers, and a mover that stays silent is dropped and found or started
// again after a growing pause.
#include "daemon/movers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "abi/park.h"
#include "base/assert.h"
#include "base/content_hash.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/host_room.h"
#include "launch/keeper_spawn.h"

namespace mete::daemon {

namespace {

// A mover that has not answered by then is dropped: its own loop never blocks.
constexpr std::chrono::seconds kSilent{10};
constexpr seam::Milliseconds kSoon{100};
constexpr seam::Milliseconds kNow{1};
// A mover stays this long between two jobs: the next job in the queue may be parkable too.
constexpr std::chrono::seconds kAlone{1};
constexpr std::chrono::seconds kBetweenStarts{2};
constexpr std::chrono::seconds kMostBetweenStarts{60};

Result<void> make_own_folder(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return Error::from_errno("make " + path, errno);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return Error::from_errno("look at " + path, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022) != 0)
    return Error::denied(path + " is not a folder of ours alone");
  if ((info.st_mode & 0777) != mode && chmod(path.c_str(), mode) != 0)
    return Error::from_errno("change " + path, errno);
  return {};
}

std::chrono::seconds pause_after(int starts) {
  return std::min<std::chrono::seconds>(kBetweenStarts * (1 << std::min(starts, 5)),
                                        kMostBetweenStarts);
}

Bytes host_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return Bytes();
  return Bytes::from_bytes(static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size));
}

Bytes bytes_on(const core::Job& job, const std::string& uuid) {
  Bytes bytes;
  for (const core::GrantedCard& card : job.grant)
    if (card.uuid == uuid) bytes += card.most.is_zero() ? card.bytes : card.most;
  return bytes;
}

}  // namespace

Result<std::string> mover_folder(const std::string& state_dir, bool system) {
  const mode_t mode = system ? 0711 : 0700;
  std::string folder = base::join_path(state_dir, "movers");
  // The card's name is appended, and a socket address has 108 bytes.
  constexpr std::size_t kCardName = 41;
  if (folder.size() >= abi::kMaxMoverFolder || folder.size() + kCardName + 1 > 107)
    folder = "/tmp/mete-movers-" + std::to_string(geteuid()) + "-" +
             base::content_hash(state_dir).substr(0, 12);
  if (Result<void> r = make_own_folder(folder, mode); !r) return std::move(r).error();
  return folder;
}

Movers::Movers(MoverSettings settings, seam::Loop loop, seam::Clock& clock,
               std::function<void(const std::string&)> log)
    : settings_(std::move(settings)), loop_(std::move(loop)), clock_(clock), log_(std::move(log)) {
  if (settings_.folder.empty()) return;
  host_limit_ = launch::host_limit(static_cast<std::uint32_t>(getpid()));
  (void)keep_secret();  // a failure is logged and retried
  find_left_behind();
}

// 32 random bytes in a file of ours, common to all daemons of this state, so that a mover that
// outlives one daemon accepts the jobs of the next. There are no movers until the secret is on
// disk: the next daemon could not reach a job that was parked under another secret.
bool Movers::keep_secret() {
  if (secret_kept_) return true;
  const std::string path = base::join_path(settings_.state_dir, "park-secret");
  constexpr std::size_t kBytes = 32;
  if (secret_.empty()) {
    if (const Result<std::string> known = base::read_all(path, 4096);
        known && known->size() == kBytes) {
      secret_ = *known;
      secret_kept_ = true;
      return true;
    }
    secret_.resize(kBytes);
    METE_ASSERT(getrandom(secret_.data(), kBytes, 0) == static_cast<ssize_t>(kBytes));
  }
  const Result<void> written = base::write_atomic(path, secret_, 0600);
  secret_kept_ = written.ok();
  if (!secret_kept_ && !std::exchange(secret_trouble_, true))
    log_("jobs cannot be parked for now: " + written.error().message);
  return secret_kept_;
}

// The movers of an earlier daemon: the memory that they take on the cards is ours.
void Movers::find_left_behind() {
  DIR* const folder = opendir(settings_.folder.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (!name.starts_with("GPU-") || name.ends_with(".lock")) continue;
    Mover& mover = movers_[name];
    connect(name, mover);
    hang_up(mover);
    mover.alone_since = clock_.monotonic();  // its guests are told again by want()
  }
  (void)closedir(folder);
}

Movers::~Movers() {
  *alive_ = false;
  for (auto& [uuid, mover] : movers_) hang_up(mover);
}

park::MoverClient::Token Movers::token_of(const core::Job& job) const {
  const std::string hash =
      base::content_hash(secret_ + to_string(job.id) + "." + std::to_string(job.attempt));
  park::MoverClient::Token token{};
  METE_ASSERT(base::take_hex(hash.substr(0, 2 * token.size()), token));
  return token;
}

std::string Movers::mover_log() const { return base::join_path(settings_.state_dir, "mover.log"); }

std::string Movers::socket_of(const std::string& uuid) const {
  return base::join_path(settings_.folder, uuid);
}

wire::ParkDoor Movers::door(const core::Job& job) const {
  return {settings_.folder, base::hex_of(token_of(job)), arena() + settings_.spill_max};
}

std::map<std::string, pid_t> Movers::pids() const {
  std::map<std::string, pid_t> pids;
  for (const auto& [uuid, mover] : movers_) {
    const pid_t pid = mover.pid > 0 ? mover.pid : mover.child;
    if (pid > 0 && kill(pid, 0) == 0) pids[uuid] = pid;
  }
  return pids;
}

// By default, half of the host's memory, or of our control group's limit, divided between the
// cards.
Bytes Movers::arena() const {
  if (settings_.arena) return *settings_.arena;
  const Bytes host = std::min(host_memory(), host_limit_);
  return Bytes::from_bytes(host.count() / 2 / std::max<std::size_t>(1, cards_));
}

void Movers::set_arena(std::optional<Bytes> arena) {
  settings_.arena = arena;
  for (auto& [uuid, mover] : movers_)
    if (mover.line && mover.answers) tell(uuid, mover);
}

void Movers::want(const core::Job& job) {
  if (settings_.folder.empty() || settings_.program.empty()) return;
  for (const core::GrantedCard& card : job.grant) {
    Mover& mover = movers_[card.uuid];
    const auto [guest, added] = mover.guests.try_emplace(job.id);
    const Bytes bytes = bytes_on(job, card.uuid);
    if (!added && guest->second.bytes == bytes) continue;
    guest->second = {job.spec->uid, token_of(job), bytes, false};
  }
  later(kNow);
}

void Movers::forget(core::JobId job) {
  for (auto& [uuid, mover] : movers_) {
    const auto guest = mover.guests.find(job);
    if (guest == mover.guests.end()) continue;
    if (mover.line && guest->second.told)
      (void)asked(mover, mover.line->forbid(guest->second.token));
    mover.guests.erase(guest);
    mover.alone_since = clock_.monotonic();
    // Without guests the mover exits by itself after a while; until then its memory on the card is
    // accounted for.
    later(kNow);
  }
}

void Movers::make_room() {
  for (auto& [uuid, mover] : movers_) {
    if (!mover.guests.empty() || mover.line || !mover.process ||
        clock_.monotonic() < mover.alone_since + seam::Nanoseconds(kAlone))
      continue;
    // At a SIGTERM a mover that still stores memory exits once that memory is released
    // (park/mover.h).
    if (syscall(SYS_pidfd_send_signal, mover.process.get(), SIGTERM, nullptr, 0) == 0)
      log_("the mover of " + uuid + " has no job, and another job waits for room: it ends");
    mover.process.reset();
    later(kSoon);  // to reap it
  }
}

void Movers::hang_up(Mover& mover) {
  mover.open.clear();
  mover.answers = false;
  if (!mover.line) return;
  loop_.unwatch_fd(mover.line->descriptor());
  mover.line.reset();
  mover.goal = Bytes();
  for (auto& [id, guest] : mover.guests) guest.told = false;
}

void Movers::later(seam::Milliseconds delay) {
  if (std::exchange(scheduled_, true)) return;
  loop_.after(delay, [this, alive = alive_] {
    if (!*alive) return;
    scheduled_ = false;
    look_after_all();
  });
}

void Movers::look_after_all() {
  bool settled = true;
  const bool kept = keep_secret();
  for (auto& [uuid, mover] : movers_) {
    if (mover.child > 0 && waitpid(mover.child, nullptr, WNOHANG) == mover.child) {
      mover.child = -1;
      if (!mover.line) log_("the mover of " + uuid + " has ended: " + last_words());
    }
    if (is_silent(mover)) give_up(uuid, mover, Error::busy("it does not answer"));
    if (!mover.guests.empty() && kept) look_after(uuid, mover);
    if (mover.guests.empty() && mover.open.empty()) hang_up(mover);
    settled = settled && mover.open.empty() &&
              (mover.guests.empty() || (mover.line && mover.answers)) &&
              std::all_of(mover.guests.begin(), mover.guests.end(),
                          [](const auto& guest) { return guest.second.told; });
  }
  if (!settled) later(kept ? kSoon : seam::Milliseconds(kBetweenStarts));
}

bool Movers::is_silent(const Mover& mover) const {
  // Question numbers grow with time: the first is the oldest, until they wrap around.
  return !mover.open.empty() &&
         clock_.monotonic() >= mover.open.begin()->second + seam::Nanoseconds(kSilent);
}

std::string Movers::last_words() const {
  Result<std::string> said = base::read_all(mover_log());
  if (!said) return "it said nothing";
  while (said->ends_with('\n')) said->pop_back();
  return said->substr(said->rfind('\n') + 1).substr(0, 500);
}

void Movers::look_after(const std::string& uuid, Mover& mover) {
  if (!mover.line && clock_.monotonic() >= mover.next_line) connect(uuid, mover);
  if (mover.line && mover.answers) return tell(uuid, mover);
  if (!mover.line && mover.child < 0 && clock_.monotonic() >= mover.next_start) start(uuid, mover);
}

// True: the question was sent, and the answer is awaited. A mover whose queue is full is asked
// again later; one that is gone shows on its connection.
bool Movers::asked(Mover& mover, const Result<park::MoverClient::Question>& question) {
  if (question) mover.open[*question] = clock_.monotonic();
  return question.ok();
}

void Movers::tell(const std::string& uuid, Mover& mover) {
  Bytes goal;
  for (auto& [id, guest] : mover.guests) {
    goal += guest.bytes;
    if (!guest.told)
      guest.told = asked(mover, mover.line->allow(guest.token, guest.uid, guest.bytes));
  }
  goal = std::min(goal, arena());
  if (goal == mover.goal || !asked(mover, mover.line->set_arena(goal))) return;
  mover.goal = goal;
  log_("the mover of " + uuid + " (process " + std::to_string(mover.pid) + ") is to keep up to " +
       to_string(goal));
}

// The mover is found again or replaced: at once if it is gone, else after a pause.
void Movers::give_up(const std::string& uuid, Mover& mover, const Error& why) {
  log_("the mover of " + uuid + " is let go of: " + why.message);
  hang_up(mover);
  if (why.code != ErrorCode::kIo)
    mover.next_line = clock_.monotonic() + pause_after(++mover.starts);
}

void Movers::connect(const std::string& uuid, Mover& mover) {
  Result<park::MoverClient> client = park::MoverClient::connect(socket_of(uuid));
  if (!client) return;
  if (!asked(mover, client->ask_status())) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(client->descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
    mover.pid = peer.pid;
    mover.process.reset(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  }
  mover.line.emplace(*std::move(client));
  loop_.watch_fd(mover.line->descriptor(), [this, uuid] { hear(uuid); });
}

void Movers::hear(const std::string& uuid) {
  Mover& mover = movers_.at(uuid);
  while (mover.line) {
    const Result<std::optional<park::MoverClient::Answer>> heard = mover.line->hear();
    if (heard && !*heard) break;
    if (!heard || !(*heard)->done) {
      give_up(uuid, mover, heard ? (*heard)->done.error() : Error::io("it is gone"));
      return later(kNow);
    }
    mover.open.erase((*heard)->question);
    mover.answers = true;
    mover.starts = 0;
  }
  if (mover.line && mover.answers) tell(uuid, mover);
}

void Movers::start(const std::string& uuid, Mover& mover) {
  mover.next_start = clock_.monotonic() + pause_after(mover.starts++);
  std::vector<std::string> argv = {settings_.program, "--card", uuid,          "--socket",
                                   socket_of(uuid),   "--cuda", settings_.cuda};
  if (settings_.system) argv.insert(argv.end(), {"--mode", "0666"});
  if (!settings_.spill.empty() && !settings_.spill_max.is_zero())
    argv.insert(argv.end(), {"--spill", settings_.spill, "--spill-bytes",
                             std::to_string(settings_.spill_max.count())});
  const Result<pid_t> pid = launch::spawn_detached(
      argv, launch::keeper_environment(base::own_environment()), mover_log());
  if (pid)
    mover.child = *pid;
  else
    log_("no mover for " + uuid + ": " + pid.error().message);
}

}  // namespace mete::daemon
