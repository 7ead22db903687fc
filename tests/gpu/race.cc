// SPDX-License-Identifier: Apache-2.0
// N processes of one job fill its grant at the same moment, round after round; together they must
// get exactly what was advertised to all of them: not a byte more in any round, and not less by
// more than a chunk each path allows.
//   mete cap --gpu 16G -- race 8 20 alloc      (processes, rounds, alloc|create|async)
// tests/gpu/run watches NVML from outside meanwhile.
#include "tests/gpu/children.h"

using namespace gpu;

namespace {

constexpr size_t kChunk = 16 * kMiB;

int child(const std::string& kind) {
  if (const CUresult r = try_start(); r != CUDA_SUCCESS) {
    tell("failed " + error_name(r));
    return 1;
  }
  tell("up");
  Hoard hoard(kind);
  CUresult last = CUDA_SUCCESS;
  for (std::string o = order(); !o.empty(); o = order()) {
    if (o == "free?") {
      tell(text("free %zu", memory().free));
    } else if (o == "fill") {
      const size_t most = memory().total + kGiB;  // an uncapped run must not take the whole card
      do last = hoard.take(kChunk);
      while (last == CUDA_SUCCESS && hoard.count() * kChunk < most);
      tell(text("got %zu %d", hoard.held(kChunk), static_cast<int>(last)));
    } else if (o == "drop") {
      hoard.drop();
      tell("dropped");
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && !strcmp(argv[1], "--child")) return child(argv[2]);
  if (argc != 4) die("usage: race PROCESSES ROUNDS alloc|create|async");
  const int processes = atoi(argv[1]), rounds = atoi(argv[2]);
  const std::string kind = argv[3];
  const double begin = now_s();
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < processes; i++)
    children.push_back(std::make_unique<Child>(std::vector<std::string>{"--child", kind}));
  for (auto& c : children) c->expect("up", 300);
  const double up = now_s() - begin;

  const auto free_now = [&] {
    children[0]->say("free?");
    return strtoull(children[0]->expect("free ").c_str() + 5, nullptr, 10);
  };
  // Pools take back what was given of the reserve.
  if (kind != "async") (void)at_rest(free_now);
  size_t worst_over = 0, worst_under = 0, free_first = 0;
  int wrong_codes = 0;
  for (int round = 0; round < rounds; round++) {
    const size_t free_before = free_now();
    if (round == 0) free_first = free_before;
    for (auto& c : children) c->say("fill");
    size_t sum = 0;
    for (auto& c : children) {
      size_t got = 0;
      int code = 0;
      sscanf(c->expect("got ").c_str(), "got %zu %d", &got, &code);
      sum += got;
      wrong_codes += code != CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (sum > free_before)
      worst_over = std::max(worst_over, sum - free_before);
    else
      worst_under = std::max(worst_under, free_before - sum);
    for (auto& c : children) c->say("drop");
    for (auto& c : children) c->expect("dropped");
  }
  // A pool grows by a step: each process may be left with less than one that it cannot use.
  const size_t slack = kind == "async" ? kGrowth + kChunk : kChunk;
  check(worst_over == 0 && worst_under <= slack && wrong_codes == 0,
        text("race: %d processes, %s", processes, kind.c_str()),
        text("%d rounds, %s advertised, worst over %s, worst under %s, %d other codes, %.1f s to "
             "start",
             rounds, mib(free_first).c_str(), mib(worst_over).c_str(), mib(worst_under).c_str(),
             wrong_codes, up));
  return failures ? 1 : 0;
}
