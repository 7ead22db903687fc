// SPDX-License-Identifier: Apache-2.0
// Death is free: processes of one job are killed at random moments, some after being stopped first;
// then a new process must start as fast as the first one did and get the whole grant, and a
// survivor's books must be exact.
//   mete cap --gpu 16G -- kill [KILLS] [SEED]     random kills
//   mete cap --gpu 16G -- kill ipc                a dead owner's exported memory stays charged
//   while an importer lives
#include <random>

#include "tests/gpu/children.h"

using namespace gpu;

namespace {

constexpr size_t kChunk = 16 * kMiB;

// Takes and gives back at random, by all kinds, for ever.
int restless(unsigned seed) {
  std::minstd_rand random(seed);
  start();
  tell("up");
  Hoard hoards[3] = {Hoard("alloc"), Hoard("create"), Hoard("async")};
  while (true) {
    Hoard& hoard = hoards[random() % 3];
    const CUresult r =
        random() % 3 ? hoard.take((1 + random() % 40) * kMiB) : (hoard.drop_one(), CUDA_SUCCESS);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
      for (Hoard& h : hoards) h.drop();
    else
      must(r, "take");
  }
}

// Does what it is told.
int obedient() {
  const double begin = now_s();
  if (const CUresult r = try_start(); r != CUDA_SUCCESS) {
    tell("failed " + error_name(r));
    return 1;
  }
  tell(text("up %.6f", now_s() - begin));
  Hoard hoard("alloc");
  CUdeviceptr shared = 0;
  for (std::string o = order(); !o.empty(); o = order()) {
    if (o == "fill") {
      const size_t most = memory().total + kGiB;
      CUresult r;
      do r = hoard.take(kChunk);
      while (r == CUDA_SUCCESS && hoard.count() * kChunk < most);
      tell(text("got %zu %d", hoard.held(kChunk), static_cast<int>(r)));
    } else if (o == "drop") {
      hoard.drop();
      tell("dropped");
    } else if (o == "one") {
      tell(text("one %d", static_cast<int>(hoard.take(kChunk))));
    } else if (o == "used?") {
      const Memory m = memory();
      tell(text("used %zu", m.total - m.free));
    } else if (o == "export") {
      CUipcMemHandle handle;
      must(cu.cuMemAlloc_v2(&shared, kGiB), "cuMemAlloc");
      must(cu.cuIpcGetMemHandle(&handle, shared), "cuIpcGetMemHandle");
      std::string hex;
      for (const char c : handle.reserved) hex += text("%02x", static_cast<unsigned char>(c));
      tell("handle " + hex);
    } else if (o.rfind("import ", 0) == 0) {
      CUipcMemHandle handle;
      for (int i = 0; i < 64; i++)
        handle.reserved[i] = static_cast<char>(
            strtoul(o.substr(7 + 2 * static_cast<size_t>(i), 2).c_str(), nullptr, 16));
      tell(text("imported %d", static_cast<int>(cu.cuIpcOpenMemHandle_v2(
                                   &shared, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))));
    } else if (o == "close") {
      tell(text("closed %d", static_cast<int>(cu.cuIpcCloseMemHandle(shared))));
    }
  }
  return 0;
}

size_t number_after(Child& c, const std::string& ask, const std::string& answer) {
  c.say(ask);
  return strtoull(c.expect(answer).c_str() + answer.size(), nullptr, 10);
}
// The job's use as `c` sees it, once it is in [low, high] or two seconds have passed: what a dead
// process held shows as free at the latest when the readings are written again; an allocation gets
// it at once (tested below).
size_t settled_use(Child& c, size_t low, size_t high, double* waited) {
  const double begin = now_s();
  pollfd nothing{-1, 0, 0};
  size_t used = 0;
  do {
    used = number_after(c, "used?", "used ");
    *waited = now_s() - begin;
  } while ((used < low || used > high) && *waited < 2 && poll(&nothing, 0, 5) == 0);
  return used;
}
size_t rested_use(Child& c) {
  return at_rest([&] { return number_after(c, "used?", "used "); });
}
double start_time(Child& c) { return strtod(c.expect("up ", 120).c_str() + 3, nullptr); }
std::unique_ptr<Child> new_child() {
  return std::make_unique<Child>(std::vector<std::string>{"--obedient"});
}

void random_kills(int kills, unsigned seed) {
  std::minstd_rand random(seed);
  auto first = new_child();
  const double first_start = start_time(*first);
  const size_t first_fill = number_after(*first, "fill", "got ");
  first->say("drop");
  first->expect("dropped");
  first->kill_and_wait();

  auto survivor = new_child();
  (void)start_time(*survivor);
  for (int i = 0; i < 8; i++) number_after(*survivor, "one", "one ");
  const size_t alone = rested_use(*survivor);

  // All of the crowd starts side by side and is replaced at once, so that starts overlap.
  std::vector<std::unique_ptr<Child>> crowd(8);
  const auto replace = [&](std::unique_ptr<Child>& c) {
    c.reset();
    c = std::make_unique<Child>(std::vector<std::string>{"--restless", std::to_string(random())});
  };
  for (auto& c : crowd) replace(c);
  int stopped = 0, stuck = 0;
  for (int k = 0; k < kills; k++) {
    std::unique_ptr<Child>& c = crowd[random() % crowd.size()];
    if (random() % 4) (void)c->hear(60);  // most are killed at work, some while they start
    pollfd nothing{-1, 0, 0};
    poll(&nothing, 0,
         static_cast<int>(random() % 20));  // the random moment, not a wait for anything
    if (random() % 4 == 0) {
      c->signal(SIGSTOP);
      stopped++;
      survivor->say("used?");  // somebody stopped in the middle of a change blocks nobody
      if (survivor->hear(10).empty()) stuck++;
    }
    c->kill_and_wait();
    replace(c);
  }
  for (auto& c : crowd) c.reset();

  double waited = 0;
  const size_t used = settled_use(*survivor, alone, alone, &waited);
  check(used == alone, "kill: the survivor's books",
        text("alone %s, after the kills %s, shown after %.0f ms", mib(alone).c_str(),
             mib(used).c_str(), waited * 1e3));
  check(stuck == 0, "kill: no process waits for a stopped one",
        text("%d stopped, %d waits", stopped, stuck));
  survivor->kill_and_wait();

  auto last = new_child();
  const double last_start = start_time(*last);
  const size_t last_fill = number_after(*last, "fill", "got ");
  check(last_fill == first_fill,
        text("kill: the whole grant after %d kills (seed %u)", kills, seed),
        text("first process %s, new process %s", mib(first_fill).c_str(), mib(last_fill).c_str()));
  check(last_start < 2 * first_start + 0.25, "kill: start of a new process",
        text("first %.0f ms, after the kills %.0f ms", first_start * 1e3, last_start * 1e3));
  // The first attempt after the reap gets the bytes.
  last->kill_and_wait();
  auto next = new_child();
  (void)start_time(*next);
  const size_t next_fill = number_after(*next, "fill", "got ");
  check(next_fill == first_fill, "kill: the first attempt after a full process was reaped",
        mib(next_fill) + " of " + mib(first_fill));
}

void exported_memory() {
  auto watcher = new_child();
  (void)start_time(*watcher);
  const size_t alone = rested_use(*watcher);
  auto importer = new_child();
  (void)start_time(*importer);
  const size_t two = rested_use(*watcher);
  const size_t context = two - alone;
  auto owner = new_child();
  (void)start_time(*owner);
  owner->say("export");
  const std::string handle = owner->expect("handle ").substr(7);
  const size_t before = number_after(*watcher, "used?", "used ");
  importer->say("import " + handle);
  const std::string answer = importer->expect("imported ");
  if (!check(answer == "imported 0", "ipc: import from the same job", answer)) return;
  const size_t shared = number_after(*watcher, "used?", "used ");
  check(shared == before, "ipc: an import from the same job costs nothing",
        mib(shared) + " used, before " + mib(before));
  owner->kill_and_wait();
  double waited = 0;
  const size_t orphaned = settled_use(*watcher, two + kGiB, two + kGiB + 64 * kMiB, &waited);
  check(orphaned >= two + kGiB && orphaned <= two + kGiB + 64 * kMiB,
        "ipc: a dead owner's memory stays charged while an importer lives",
        text("%s used beside two contexts of %s, after %.0f ms", mib(orphaned - two).c_str(),
             mib(context).c_str(), waited * 1e3));
  importer->say("close");
  importer->expect("closed ");
  const size_t closed = settled_use(*watcher, 0, two + 64 * kMiB, &waited);
  check(closed <= two + 64 * kMiB, "ipc: given back when the importer lets go",
        text("%s used beside the contexts, after %.0f ms",
             mib(closed > two ? closed - two : 0).c_str(), waited * 1e3));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && !strcmp(argv[1], "--restless"))
    return restless(static_cast<unsigned>(strtoul(argv[2], nullptr, 10)));
  if (argc == 2 && !strcmp(argv[1], "--obedient")) return obedient();
  if (argc == 2 && !strcmp(argv[1], "ipc"))
    exported_memory();
  else
    random_kills(argc > 1 ? atoi(argv[1]) : 300,
                 argc > 2 ? static_cast<unsigned>(atoi(argv[2])) : 1);
  return failures ? 1 : 0;
}
