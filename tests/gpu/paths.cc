// SPDX-License-Identifier: Apache-2.0
// Fills a capped card by every path an allocation can take (fill.h), one row each. Run it inside a
// cap:   mete cap --gpu 16G -- paths [--only TEXT]
// Functions are found by dlopen and dlsym; ways.cc runs the same paths by every other way.
#include "tests/gpu/fill.h"

using namespace gpu;

namespace {

// Ten thousand blocks of 512 bytes live in a few 2 MiB slabs: they cost some MiB, not 20 GB, and
// not nothing.
void small_blocks() {
  const size_t before = memory().free;
  std::vector<CUdeviceptr> blocks(10000);
  for (CUdeviceptr& p : blocks) must(cu.cuMemAlloc_v2(&p, 512), "cuMemAlloc of 512 bytes");
  const size_t cost = before - memory().free;
  for (const CUdeviceptr p : blocks) must(cu.cuMemFree_v2(p), "cuMemFree");
  const size_t after = memory().free;
  check(cost >= 10000 * 512 / kGranule * kGranule && cost <= 16 * kMiB, "10,000 blocks of 512 B",
        "charged " + mib(cost));
  check(before - after <= kGranule, "10,000 blocks of 512 B, freed",
        "still charged " + mib(before - after));
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  if (argc == 3 && std::string(argv[1]) == "--only")
    only = argv[2];
  else if (argc != 1)
    die("usage: paths [--only TEXT]");
  start();
  if (grant() == kNothing) die("run me inside a cap: mete cap --gpu 16G -- paths");
  const Memory m = memory();
  check(m.total == grant() && m.free >= grant() - 536 * kMiB - 64 * kMiB, "advertised",
        text("grant %s, total %s, free %s, context and reserve %s", mib(grant()).c_str(),
             mib(m.total).c_str(), mib(m.free).c_str(), mib(m.total - m.free).c_str()));
  for (const Case& c : cases()) {
    if (!only.empty() && std::string(c.name).find(only) == std::string::npos) continue;
    if (c.old || !fits(c, grant())) continue;
    subject = c.name;
    const Verdict v = fill(c);
    check(v.good, c.name, v.words);
  }
  if (only.empty()) small_blocks();
  return failures ? 1 : 0;
}
