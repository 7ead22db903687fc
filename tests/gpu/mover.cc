// SPDX-License-Identifier: Apache-2.0
// How fast a mover takes memory away and brings it back, byte for byte: what parking costs beyond
// the gate. Starts a mover with a warm arena, then gives it 1, 10 and 20 GiB in handles of 32 and
// of 512 MiB, as the meter does: export, send, and with each answer unmap and release; then create,
// export, send, and with each answer map. All of it is in the times.   mover MOVER [--quick]
// [--sim]
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>

#include "abi/park.h"
#include "tests/gpu/gpu.h"

using namespace gpu;
using mete::abi::MoverMessage;

namespace {

constexpr size_t kInFlight = 32;
constexpr int kPatienceMs = 60'000;
constexpr double kGoal = 45;  // GB/s each way, for 10 GiB and more

// Not in gpu.h: nobody else needs them.
decltype(&::cuMemsetD32_v2) fill_words = nullptr;
decltype(&::cuMemHostAlloc) host_alloc = nullptr;

struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
};

size_t chunk_bytes = 0;
std::vector<Chunk> chunks;

MoverMessage message(MoverMessage::Kind kind, size_t bytes = 0, uint64_t id = 0) {
  MoverMessage m{};
  m.magic = mete::abi::kMoverMagic;
  m.version = mete::abi::kMoverVersion;
  m.kind = kind;
  m.id = id;
  m.bytes = bytes;
  if (kind == MoverMessage::kHello || kind == MoverMessage::kAllow) memset(m.token, 7, 16);
  m.uid = geteuid();
  return m;
}

// ---- the socket ----
int connect_mover(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  for (int tries = 0; tries < 1000; ++tries) {
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    (void)poll(nullptr, 0, 20);
  }
  die("no mover listens at " + path);
}

void say(int fd, const MoverMessage& m, int descriptor = -1) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{const_cast<MoverMessage*>(&m), sizeof m};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(item), &descriptor, sizeof descriptor);
  }
  if (sendmsg(fd, &header, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof m))
    die("the mover is gone");
}

MoverMessage hear(int fd) {
  MoverMessage m{};
  pollfd ready{fd, POLLIN, 0};
  if (poll(&ready, 1, kPatienceMs) != 1) die("the mover does not answer");
  if (recv(fd, &m, sizeof m, 0) != static_cast<ssize_t>(sizeof m)) die("the mover is gone");
  if (m.kind != MoverMessage::kDone)
    die(text("the mover refuses: reason %u, detail %u, room for %s", m.reason, m.detail,
             mib(m.bytes).c_str()));
  return m;
}

MoverMessage ask(int fd, const MoverMessage& m) {
  say(fd, m);
  return hear(fd);
}

// ---- memory ----
void create(Chunk& chunk) {
  const CUmemAllocationProp prop = on_card(true);
  must(cu.cuMemCreate(&chunk.handle, chunk_bytes, &prop, 0), "cuMemCreate");
}
void map(Chunk& chunk) {
  const CUmemAccessDesc access = read_write();
  must(cu.cuMemMap(chunk.address, chunk_bytes, 0, chunk.handle, 0), "cuMemMap");
  must(cu.cuMemSetAccess(chunk.address, chunk_bytes, &access, 1), "cuMemSetAccess");
}
void unmap(Chunk& chunk) {
  must(cu.cuMemUnmap(chunk.address, chunk_bytes), "cuMemUnmap");
  must(cu.cuMemRelease(chunk.handle), "cuMemRelease");
}

// Every chunk has words of its own, and each half of it others.
unsigned word_of(size_t chunk, size_t half) {
  return static_cast<unsigned>((chunk * 2 + half + 1) * 2654435761u);
}
void fill() {
  for (size_t i = 0; i < chunks.size(); ++i)
    for (size_t half = 0; half < 2; ++half)
      must(
          fill_words(chunks[i].address + half * chunk_bytes / 2, word_of(i, half), chunk_bytes / 8),
          "cuMemsetD32");
  must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
}
bool verify(unsigned* buffer, size_t buffer_bytes) {
  for (size_t i = 0; i < chunks.size(); ++i)
    for (size_t at = 0; at < chunk_bytes; at += buffer_bytes) {
      const size_t part = std::min(buffer_bytes, chunk_bytes - at);
      must(cu.cuMemcpyDtoH_v2(buffer, chunks[i].address + at, part), "cuMemcpyDtoH");
      for (size_t w = 0; w < part / 4; ++w)
        if (buffer[w] != word_of(i, at + w * 4 >= chunk_bytes / 2 ? 1 : 0)) return false;
    }
  return true;
}

// ---- the two ways ----
void send_chunk(int fd, MoverMessage::Kind kind, size_t i) {
  int descriptor = -1;
  must(cu.cuMemExportToShareableHandle(&descriptor, chunks[i].handle,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
       "cuMemExportToShareableHandle");
  say(fd, message(kind, chunk_bytes, i + 1), descriptor);
  close(descriptor);
}

double out(const std::string& path, int* fd) {
  const double begin = now_s();
  *fd = connect_mover(path);
  (void)ask(*fd, message(MoverMessage::kHello, chunks.size() * chunk_bytes));
  for (size_t sent = 0, done = 0; done < chunks.size();) {
    while (sent < chunks.size() && sent - done < kInFlight)
      send_chunk(*fd, MoverMessage::kOut, sent++);
    (void)hear(*fd);
    unmap(chunks[done++]);
  }
  return now_s() - begin;
}

double in(int fd) {
  const double begin = now_s();
  for (size_t sent = 0, done = 0; done < chunks.size();) {
    while (sent < chunks.size() && sent - done < kInFlight) {
      create(chunks[sent]);
      send_chunk(fd, MoverMessage::kIn, sent++);
    }
    (void)hear(fd);
    map(chunks[done++]);
  }
  (void)ask(fd, message(MoverMessage::kDrop));
  return now_s() - begin;
}

void report(const char* way, size_t total, double seconds, bool judged) {
  const double speed = static_cast<double>(total) / seconds / 1e9;
  const std::string what =
      text("mover: %s, %s in handles of %s", way, mib(total).c_str(), mib(chunk_bytes).c_str());
  const std::string value = text("%.3f s, %.1f GB/s", seconds, speed);
  if (judged)
    check(speed >= kGoal, what, value + text(" (goal %.0f)", kGoal));
  else
    info(what, value);
}

struct Plan {
  std::string socket;
  int rounds;
  bool judged;
};

void measure(const Plan& plan, size_t total, size_t handle) {
  constexpr size_t kBuffer = 64 * kMiB;
  static unsigned* buffer = nullptr;
  if (!buffer) must(host_alloc(reinterpret_cast<void**>(&buffer), kBuffer, 0), "cuMemHostAlloc");
  chunk_bytes = handle;
  chunks.assign(total / handle, {});
  CUdeviceptr base = 0;
  must(cu.cuMemAddressReserve(&base, total, 0, 0, 0), "cuMemAddressReserve");
  for (size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].address = base + i * handle;
    create(chunks[i]);
    map(chunks[i]);
  }
  fill();
  std::vector<double> outs, ins;
  size_t freed = kNothing;
  for (int round = 0; round < plan.rounds; ++round) {
    int fd = -1;
    const size_t before = memory().free;
    outs.push_back(out(plan.socket, &fd));
    freed = std::min(freed, memory().free - before);
    ins.push_back(in(fd));
    close(fd);
  }
  std::sort(outs.begin(), outs.end());
  std::sort(ins.begin(), ins.end());
  const bool judged = plan.judged && total >= 10 * kGiB;
  report("out", total, outs[outs.size() / 2], judged);
  report("in", total, ins[ins.size() / 2], judged);
  check(freed + kGranule >= total && verify(buffer, kBuffer),
        text("mover: %s in handles of %s: free for others, then the same bytes", mib(total).c_str(),
             mib(handle).c_str()),
        text("%s freed, %d rounds", mib(freed).c_str(), plan.rounds));
  for (Chunk& chunk : chunks) unmap(chunk);
  must(cu.cuMemAddressFree(base, total), "cuMemAddressFree");
}

pid_t start_mover(const char* program, const std::string& socket) {
  const std::string card = uuid_of(device);
  std::vector<std::string> words = {program, "--card", card, "--socket", socket};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, program, nullptr, nullptr, pointers.data(), environ) != 0)
    die(text("cannot start %s", program));
  return pid;
}

void warm(int daemon, size_t arena) {
  (void)ask(daemon, message(MoverMessage::kAllow, arena));
  const double begin = now_s();
  (void)ask(daemon, message(MoverMessage::kArena, arena));
  for (MoverMessage status{}; status.bytes < arena;) {
    status = ask(daemon, message(MoverMessage::kStatus));
    if (status.detail != 0)
      die(text("the mover cannot pin more than %s: %u", mib(status.bytes).c_str(), status.detail));
    (void)poll(nullptr, 0, 20);
  }
  const double seconds = now_s() - begin;
  info("mover: pinning the arena", text("%s in %.2f s, %.2f s a GiB", mib(arena).c_str(), seconds,
                                        seconds / (static_cast<double>(arena) / double{kGiB})));
}

}  // namespace

int main(int argc, char** argv) {
  subject = "mover";
  if (argc < 2) die("usage: mover MOVER [--quick] [--sim]");
  bool quick = false, sim = false;
  for (int i = 2; i < argc; ++i) {
    quick |= strcmp(argv[i], "--quick") == 0;
    sim |= strcmp(argv[i], "--sim") == 0;
  }
  void* library = open_driver("libcuda.so.1");
  fill_words = reinterpret_cast<decltype(fill_words)>(dlsym(library, "cuMemsetD32_v2"));
  host_alloc = reinterpret_cast<decltype(host_alloc)>(dlsym(library, "cuMemHostAlloc"));
  if (!fill_words || !host_alloc) die("the driver lacks a function");
  start();
  char folder[] = "/tmp/mete-mover-XXXXXX";
  if (!mkdtemp(folder)) die("no folder");
  const Plan plan{std::string(folder) + "/mover", quick ? 1 : 5, !sim};
  const pid_t pid = start_mover(argv[1], plan.socket);
  const int daemon = connect_mover(plan.socket);
  const std::vector<size_t> totals = sim     ? std::vector<size_t>{64 * kMiB}
                                     : quick ? std::vector<size_t>{kGiB}
                                             : std::vector<size_t>{kGiB, 10 * kGiB, 20 * kGiB};
  warm(daemon, totals.back());
  const std::vector<size_t> handles =
      sim ? std::vector<size_t>{2 * kMiB, 32 * kMiB} : std::vector<size_t>{32 * kMiB, 512 * kMiB};
  for (const size_t total : totals)
    for (const size_t handle : handles) measure(plan, total, handle);
  if (!sim) measure(plan, kGiB, 2 * kMiB);
  (void)kill(pid, SIGTERM);
  int status = 0;
  check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
        "mover: ends when it is asked to and keeps nothing", "");
  (void)unlink((plan.socket + ".lock").c_str());
  (void)rmdir(folder);
  return failures ? 1 : 0;
}
