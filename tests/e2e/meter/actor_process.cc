// SPDX-License-Identifier: Apache-2.0
// Commands about the process itself: fork, vfork, posix_spawn, exec, threads, and its open
// descriptors. A command that starts another program passes the rest of its words as that program's
// commands.
#include <dirent.h>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "actor.h"

extern char** environ;

namespace actor {
namespace {

std::string self_path() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return std::string(path, n > 0 ? static_cast<size_t>(n) : 0);
}

// The rest of the words as the argument vector of this program.
std::vector<char*> arguments(const Words& w, size_t from, std::string& program) {
  std::vector<char*> list{program.data()};
  for (size_t i = from; i < w.size(); ++i) list.push_back(const_cast<char*>(w[i].c_str()));
  list.push_back(nullptr);
  return list;
}

std::string run_again(const Words& w) {  // exec COMMANDS: becomes the program anew
  std::string program = self_path();
  execv(program.c_str(), arguments(w, 1, program).data());
  return "997";
}

int status_of(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// fork COMMAND / COMMAND...: the child runs them and ends with the first code that is not 0. The
// child does not own what the parent holds: only commands that query or start anew make sense.
std::string in_a_fork(const Words& w) {
  const pid_t child = fork();
  if (child == 0) {
    Words one;
    for (size_t i = 1; i <= w.size(); ++i) {
      if (i < w.size() && w[i] != "/") {
        one.push_back(w[i]);
        continue;
      }
      const std::string said = one.empty() ? "0" : commands().at(one[0])(one);
      const long code = std::strtol(said.c_str(), nullptr, 10);
      if (code != 0) _exit(static_cast<int>(code & 0xff));
      one.clear();
    }
    _exit(0);
  }
  return answer(status_of(child));
}

// linger: forks a child that does nothing and runs no other program; its pid.
std::string lingering(const Words&) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // no process waits for it
    for (;;) pause();
  }
  return "0 " + std::to_string(child);
}

// bare COMMANDS: starts this program without LD_PRELOAD and does not wait for it; its pid.
std::string start_bare(const Words& w) {
  std::string program = self_path();
  const std::vector<char*> argv = arguments(w, 1, program);
  std::vector<char*> environment;
  for (char** line = environ; *line != nullptr; ++line)
    if (std::strncmp(*line, "LD_PRELOAD=", 11) != 0) environment.push_back(*line);
  environment.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environment.data()) != 0)
    return "997";
  return "0 child " + std::to_string(child);
}

std::string in_a_vfork(const Words& w) {
  std::string program = self_path();
  const std::vector<char*> argv = arguments(w, 1, program);
  const pid_t child = vfork();
  if (child == 0) {
    execv(program.c_str(), argv.data());
    _exit(126);
  }
  return answer(status_of(child));
}

std::string in_a_spawn(const Words& w) {
  std::string program = self_path();
  const std::vector<char*> argv = arguments(w, 1, program);
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ) != 0)
    return "997";
  return answer(status_of(child));
}

std::string open_files(const Words&) {
  std::string text = "0";
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    char target[512];
    const ssize_t n = readlink((std::string("/proc/self/fd/") + entry->d_name).c_str(), target,
                               sizeof target - 1);
    if (n > 0 && std::atoi(entry->d_name) != dirfd(folder))
      text.append(" ").append(target, static_cast<size_t>(n));
  }
  closedir(folder);
  return text;
}

std::string mapped_files(const Words&) {
  std::ifstream maps("/proc/self/maps");
  std::string text = "0";
  std::string last;
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find('/');
    if (at == std::string::npos || line.substr(at) == last) continue;
    last = line.substr(at);
    text.append(" ").append(last);
  }
  return text;
}

// crowd THREADS ROUNDS KIND/KIND: every thread takes and gives back by every kind, at once. Only
// kinds whose calls share nothing of this program. Returns how many calls failed.
std::string crowd(const Words& w) {
  CUcontext context = nullptr;
  (void)CU(cuCtxGetCurrent)(&context);
  std::vector<std::string> kinds;
  std::istringstream list(w[3]);
  for (std::string kind; std::getline(list, kind, '/');) kinds.push_back(kind);
  std::atomic<int> refused{0};
  std::atomic<int> odd{0};
  const auto work = [&](unsigned seed) {
    (void)CU(cuCtxSetCurrent)(context);
    CUstream stream = nullptr;
    (void)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    const CUmemAllocationProp prop = mete::abi::memory_on(0);
    for (uint64_t i = 0; i < number(w[2]); ++i) {
      seed = seed * 1103515245u + 12345u;
      const std::string& kind = kinds[i % kinds.size()];
      const uint64_t bytes = uint64_t{1} << (9 + (seed >> 16) % 17);  // 512 bytes to 32 MiB
      CUdeviceptr value = 0;
      size_t pitch = 0;
      CUresult r = CUDA_SUCCESS;
      CUresult back = CUDA_SUCCESS;
      if (kind == "alloc") {
        r = CU(cuMemAlloc_v2)(&value, bytes);
        if (r == CUDA_SUCCESS) back = CU(cuMemFree_v2)(value);
      } else if (kind == "pitch") {
        r = CU(cuMemAllocPitch_v2)(&value, &pitch, 4, 1 + bytes / 512, 4);
        if (r == CUDA_SUCCESS) back = CU(cuMemFree_v2)(value);
      } else if (kind == "managed") {
        r = CU(cuMemAllocManaged)(&value, bytes, CU_MEM_ATTACH_GLOBAL);
        if (r == CUDA_SUCCESS) back = CU(cuMemFree_v2)(value);
      } else if (kind == "create") {
        r = CU(cuMemCreate)(&value, 2 << 20, &prop, 0);
        if (r == CUDA_SUCCESS) back = CU(cuMemRelease)(value);
      } else if (kind == "async") {
        r = CU(cuMemAllocAsync)(&value, bytes, stream);
        if (r == CUDA_SUCCESS) back = CU(cuMemFreeAsync)(value, stream);
        if (i % 7 == 0) (void)CU(cuStreamSynchronize)(stream);
      } else if (kind == "array") {
        CUarray array = nullptr;
        const CUDA_ARRAY_DESCRIPTOR shape{256, 256, CU_AD_FORMAT_FLOAT, 4};
        r = CU(cuArrayCreate_v2)(&array, &shape);
        if (r == CUDA_SUCCESS) back = CU(cuArrayDestroy)(array);
      }
      if (r == CUDA_ERROR_OUT_OF_MEMORY) ++refused;
      if ((r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY) || back != CUDA_SUCCESS) ++odd;
    }
    (void)CU(cuStreamSynchronize)(stream);
    (void)CU(cuStreamDestroy_v2)(stream);
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < number(w[1]); ++t)
    threads.emplace_back(work, static_cast<unsigned>(t + 1));
  for (std::thread& thread : threads) thread.join();
  return answer(0, odd.load(), refused.load());
}

}  // namespace

void add_process_commands() {
  auto& c = commands();
  c["pid"] = [](const Words&) { return answer(0, getpid()); };
  c["bare"] = start_bare;
  c["linger"] = lingering;
  c["shell"] = [](const Words& w) {  // in the background; its pid
    std::string line;
    for (size_t i = 1; i < w.size(); ++i) line.append(w[i]).append(" ");
    char* const argv[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), line.data(), nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, "/bin/sh", nullptr, nullptr, argv, environ) != 0)
      return std::string("997");
    return "0 child " + std::to_string(child);
  };
  c["pause"] = [](const Words&) { return answer(pause()); };
  c["open"] = [](const Words& w) {
    return answer(driver_calls::open_library(w[1].c_str()) ? 0 : 1);
  };
  // library PATH FUNCTION NUMBER: int function(int) of another library.
  c["library"] = [](const Words& w) {
    void* opened = dlopen(w[1].c_str(), RTLD_NOW);
    if (opened == nullptr) return "996 " + std::string(dlerror());
    return answer(0, reinterpret_cast<int (*)(int)>(dlsym(opened, w[2].c_str()))(
                         static_cast<int>(number(w[3]))));
  };
  c["exec"] = run_again;
  c["fork"] = in_a_fork;
  c["vfork"] = in_a_vfork;
  c["spawn"] = in_a_spawn;
  c["files"] = open_files;
  c["maps"] = mapped_files;
  c["crowd"] = crowd;
  c["setenv"] = [](const Words& w) { return answer(setenv(w[1].c_str(), w[2].c_str(), 1)); };
  c["echo"] = [](const Words&) { return answer(0); };
  // A short-lived thread that makes one call and ends.
  c["thread"] = [](const Words& w) {
    const Words rest(w.begin() + 1, w.end());
    std::string said;
    CUcontext context = nullptr;
    (void)CU(cuCtxGetCurrent)(&context);
    std::thread([&] {
      (void)CU(cuCtxSetCurrent)(context);
      said = commands().at(rest[0])(rest);
    }).join();
    return said;
  };
}

}  // namespace actor
