// SPDX-License-Identifier: Apache-2.0
// Child processes for the programs that need several: this program started again with other
// arguments (fork alone would carry a half-initialised driver), with a line-based conversation over
// two pipes. The parent never touches the driver. Nothing here waits without a bound: a child that
// does not answer in time is an error.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <memory>

#include "tests/gpu/gpu.h"

extern char** environ;

namespace gpu {

// The value that `ask` gives once it has been the same for three seconds: what processes do not
// need of their reserves is given back when nothing has moved for two. After half a minute, any.
template <class Ask>
size_t at_rest(Ask ask) {
  size_t value = ask();
  pollfd nothing{-1, 0, 0};
  const double begin = now_s();
  for (double since = begin; now_s() < since + 3 && now_s() < begin + 30;) {
    poll(&nothing, 0, 100);
    const size_t now = ask();
    if (now == value) continue;
    value = now;
    since = now_s();
  }
  return value;
}

class Child {
 public:
  explicit Child(const std::vector<std::string>& args) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) die("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    std::vector<char*> argv;
    char self[] = "/proc/self/exe";
    argv.push_back(self);
    for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) die("readlink");
    path[n] = 0;
    argv[0] = path;
    if (posix_spawn(&pid_, path, &actions, nullptr, argv.data(), environ) != 0) die("posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    in_ = to[1], out_ = from[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) kill_and_wait();
    close(in_);
    close(out_);
  }

  pid_t pid() const { return pid_; }
  void say(const std::string& line) {
    const std::string whole = line + "\n";
    (void)!write(in_, whole.data(),
                 whole.size());  // a dead child is noticed when it does not answer
  }
  // The next line, or empty when the child ended or did not answer within the limit.
  std::string hear(double limit_s = 120) {
    const double end = now_s() + limit_s;
    while (true) {
      if (const size_t at = buffer_.find('\n'); at != std::string::npos) {
        const std::string line = buffer_.substr(0, at);
        buffer_.erase(0, at + 1);
        return line;
      }
      const double left = end - now_s();
      pollfd p{out_, POLLIN, 0};
      if (left <= 0 || poll(&p, 1, static_cast<int>(left * 1000) + 1) <= 0) return "";
      char bytes[4096];
      const ssize_t n = read(out_, bytes, sizeof bytes);
      if (n <= 0) return "";
      buffer_.append(bytes, static_cast<size_t>(n));
    }
  }
  std::string expect(const std::string& start, double limit_s = 120) {
    const std::string line = hear(limit_s);
    if (line.rfind(start, 0) != 0)
      die(text("process %d said '%s' instead of '%s'", pid_, line.c_str(), start.c_str()));
    return line;
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Returns when the kernel has reaped the process.
  void kill_and_wait() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
  std::string buffer_;
};

// In a child: a line for the parent, and the next line from it (empty: the parent is gone).
inline void tell(const std::string& line) {
  printf("%s\n", line.c_str());
  fflush(stdout);
}
inline std::string order() {
  char line[256];
  if (!fgets(line, sizeof line, stdin)) return "";
  line[strcspn(line, "\n")] = 0;
  return line;
}

// ---- kinds of allocation that a child can hold ----
// Takes pieces of one chunk until refused; knows plain memory, VMM handles and the default pool.
class Hoard {
 public:
  explicit Hoard(std::string kind) : kind_(std::move(kind)) {}
  CUresult take(size_t chunk) {
    Piece piece{0, {}};
    CUresult r;
    if (kind_ == "create") {
      const CUmemAllocationProp prop = on_card();
      r = cu.cuMemCreate(&piece.handle, chunk, &prop, 0);
    } else if (kind_ == "async") {
      r = cu.cuMemAllocAsync(&piece.p, chunk, nullptr);
    } else {
      r = cu.cuMemAlloc_v2(&piece.p, chunk);
    }
    if (r == CUDA_SUCCESS) pieces_.push_back(piece);
    return r;
  }
  void drop_one() {
    if (pieces_.empty()) return;
    const Piece piece = pieces_.back();
    pieces_.pop_back();
    must(kind_ == "create"  ? cu.cuMemRelease(piece.handle)
         : kind_ == "async" ? cu.cuMemFreeAsync(piece.p, nullptr)
                            : cu.cuMemFree_v2(piece.p),
         "free");
  }
  void drop() {
    while (!pieces_.empty()) drop_one();
    if (kind_ == "async") must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
  }
  size_t count() const { return pieces_.size(); }
  // Physical bytes for pieces of `chunk` each.
  size_t held(size_t chunk) const {
    if (kind_ != "async") return count() * round_up(chunk, kGranule);
    CUmemoryPool pool = nullptr;
    must(cu.cuDeviceGetDefaultMemPool(&pool, device), "cuDeviceGetDefaultMemPool");
    return pool_reserved(pool);
  }

 private:
  struct Piece {
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle;
  };
  std::string kind_;
  std::vector<Piece> pieces_;
};

}  // namespace gpu
