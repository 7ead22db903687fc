// SPDX-License-Identifier: Apache-2.0
// The mover's loop, see mover.h. Each turn polls the eventfd of the worker threads, the signals,
// the listening socket and every connection; collects finished copies and pinning, serves requests,
// accepts new clients. Connections that do not identify themselves in time are closed.
// mover_requests.cc has the requests, mover_arena.cc the arena.
#include "park/mover.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "abi/process.h"

namespace mete::park {

namespace {

constexpr int kLongestMs = 60'000;

// Thousands of connections need more than the usual 1024 descriptors. No core dump: it would
// contain the memory of other users.
void set_limits() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
  const rlimit none{0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
}

Result<Fd> open_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Error::from_errno("signalfd", errno);
  return fd;
}

}  // namespace

Mover::Mover(const MoverOptions& options, Say say, Door door)
    : options_(options),
      say_(std::move(say)),
      door_(std::move(door)),
      books_(options.spill.empty() ? 0 : options.spill_bytes.count()) {}

Result<std::unique_ptr<Mover>> Mover::start(const MoverOptions& options, Say say) {
  // Listen before opening the driver, which is slow: clients wait in the queue.
  Result<Door> door = Door::open(options.socket, options.mode);
  if (!door) return std::move(door).error();
  std::unique_ptr<Mover> mover(new Mover(options, std::move(say), std::move(*door)));
  if (Result<void> prepared = mover->prepare(); !prepared) {
    mover->door_.close();
    return std::move(prepared).error();
  }
  return mover;
}

Result<void> Mover::prepare() {
  set_limits();
  Result<Fd> signals = open_signals();
  if (!signals) return std::move(signals).error();
  signals_ = std::move(*signals);
  bell_fd_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_fd_) return Error::from_errno("eventfd", errno);
  Fd spill;
  if (!options_.spill.empty()) {
    Result<Fd> file = open_spill(options_.spill);
    if (!file) return std::move(file).error();
    spill = std::move(*file);
  }
  Result<Card> card = open_card(options_.cuda, options_.card);
  if (!card) return std::move(card).error();
  card_ = *card;
  const Bell bell(bell_fd_.get());
  pinner_ = std::make_unique<Pinner>(card_, bell);
  copier_ = std::make_unique<Copier>(card_, bell);
  if (spill) spiller_ = std::make_unique<Spiller>(card_, bell, std::move(spill));
  books_.set_goal(options_.arena.count());
  idle_since_ns_ = abi::monotonic_ns();
  return {};
}

Result<void> Mover::run() {
  for (;;) {
    const uint64_t now = abi::monotonic_ns();
    send_off_strangers(now);
    tend_arena(now);
    if (should_end(now)) break;
    turn();
  }
  door_.close();
  return {};
}

// How long poll may sleep if nothing happens.
int Mover::patience_ms(uint64_t now) const {
  uint64_t at = now + uint64_t{kLongestMs} * 1'000'000;
  for (const auto& [id, connection] : connections_) {
    if (!connection.daemon && !connection.process)
      at = std::min(at, connection.since_ns + kStrangerNs);
    if (connection.held_until_ns > 0) at = std::min(at, connection.held_until_ns);
  }
  if (pin_again_ns_ > now) at = std::min(at, pin_again_ns_);
  if (is_idle()) at = std::min(at, idle_since_ns_ + options_.idle_s * 1'000'000'000);
  return at <= now ? 0 : static_cast<int>((at - now + 999'999) / 1'000'000);
}

bool Mover::reading_allowed(const Connection& connection) const {
  return connection.may_read() && (tasks_.size() < kMaxTasks || !connection.process);
}

void Mover::turn() {
  std::vector<pollfd> polled = {{bell_fd_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  const bool open = connections_.size() < kMaxConnections;
  polled.push_back({open ? door_.socket() : -1, POLLIN, 0});
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    short events = reading_allowed(connection) ? POLLIN : 0;
    if (connection.has_answers()) events |= POLLOUT;
    polled.push_back({connection.socket.get(), events, 0});
    ids.push_back(id);
  }
  if (poll(polled.data(), polled.size(), patience_ms(abi::monotonic_ns())) < 0) return;  // EINTR
  if (polled[1].revents != 0) hear_signals();
  if (polled[0].revents != 0) collect();
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (const auto found = connections_.find(ids[i]); found != connections_.end())
      serve(found->second, polled[i + 3].revents);
  if (polled[2].revents != 0) welcome();
  if (std::vector<Extent> freed = books_.take_freed_on_disk(); !freed.empty())
    spiller_->forget(freed);
}

bool Mover::has_room_for(uint32_t uid) const {
  if (uid == geteuid() || uid == 0) return true;
  const auto of_user = std::count_if(connections_.begin(), connections_.end(),
                                     [uid](const auto& entry) { return entry.second.uid == uid; });
  return connections_.size() < kMaxOfOthers && static_cast<std::size_t>(of_user) < kMaxOfUser;
}

void Mover::welcome() {
  while (connections_.size() < kMaxConnections) {
    std::optional<Visitor> visitor = door_.answer();
    if (!visitor) return;
    if (!has_room_for(visitor->uid)) continue;
    Connection connection;
    connection.id = next_connection_++;
    connection.socket = std::move(visitor->socket);
    connection.uid = visitor->uid;
    connection.since_ns = abi::monotonic_ns();
    connections_.emplace(connection.id, std::move(connection));
  }
}

void Mover::serve(Connection& connection, short events) {
  const ConnectionId id = connection.id;
  // Both directions are closed: its process is gone, whatever it had sent before.
  if ((events & (POLLHUP | POLLERR)) != 0) return close(id);
  retry_held(connection);
  while ((events & POLLIN) != 0 && reading_allowed(connection)) {
    Packet packet;
    const Received received = receive(connection.socket.get(), connection.process, &packet);
    if (received == Received::kEnd) return close(id);
    if (received == Received::kNothing) break;
    look_at(connection, std::move(packet));
  }
  if (!connection.flush()) close(id);
}

void Mover::close(ConnectionId id) {
  const auto found = connections_.find(id);
  found->second.gone->store(true, std::memory_order_relaxed);
  connections_.erase(found);
  books_.leave(id);
}

void Mover::collect() {
  eventfd_t count = 0;
  (void)eventfd_read(bell_fd_.get(), &count);
  while (const std::optional<CopyResult> result = copier_->done()) end_of_copy(*result);
  while (spiller_ != nullptr) {
    const std::optional<CopyResult> result = spiller_->done();
    if (!result) break;
    end_of_copy(*result);
  }
  while (const std::optional<Pinner::Done> done = pinner_->done())
    end_of_errand(*done, abi::monotonic_ns());
}

void Mover::end_of_copy(const CopyResult& result) {
  const auto found = tasks_.find(result.number);
  const Task task = found->second;
  tasks_.erase(found);
  const bool good = result.result == CUDA_SUCCESS && !result.disk_full;
  if (task.out)
    books_.end_out(task.connection, task.piece, good);
  else
    books_.end_in(task.connection, task.piece);
  const auto asked = connections_.find(task.connection);
  if (asked == connections_.end()) return;
  Connection& connection = asked->second;
  --(task.out ? connection.copies_out : connection.copies_in);
  abi::MoverMessage answer =
      make_message(good ? abi::MoverMessage::kDone : abi::MoverMessage::kRefused);
  answer.id = task.piece;
  answer.serial = task.serial;
  if (good && task.out) answer.used = task.on_disk;
  if (!good) {
    answer.reason = static_cast<uint32_t>(result.disk_full ? abi::ParkReason::kNoRoom
                                                           : abi::ParkReason::kDriver);
    answer.detail = static_cast<uint32_t>(result.result);
  }
  connection.answer_task(result.number, answer);
}

void Mover::send_off_strangers(uint64_t now) {
  std::vector<ConnectionId> leaving;
  std::map<uint32_t, std::size_t> of_user;
  for (auto at = connections_.rbegin(); at != connections_.rend(); ++at) {  // the youngest first
    const Connection& connection = at->second;
    if (connection.daemon || connection.process) continue;
    if (++of_user[connection.uid] > kMaxStrangers || connection.since_ns + kStrangerNs <= now)
      leaving.push_back(connection.id);
  }
  for (const ConnectionId id : leaving) close(id);
}

void Mover::hear_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    ++terms_;
    if (terms_ == 1 && !books_.idle())
      say_("asked to end: waiting until nothing is parked here (a second signal discards it)");
  }
}

bool Mover::is_idle() const {
  return books_.idle() && std::none_of(connections_.begin(), connections_.end(),
                                       [](const auto& entry) { return entry.second.daemon; });
}

bool Mover::should_end(uint64_t now) {
  if (terms_ > 1 || (terms_ == 1 && books_.idle())) return true;
  if (!is_idle()) {
    idle_since_ns_ = now;
    return false;
  }
  return now >= idle_since_ns_ + options_.idle_s * 1'000'000'000;
}

}  // namespace mete::park
