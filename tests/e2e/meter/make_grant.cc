// SPDX-License-Identifier: Apache-2.0
// Makes a grant file for a test, as a launcher would, without one:
//   make_grant [--parkable] FILE PARTS CARD...
// Each CARD is UUID:LIMIT:FIRST:MORE in bytes, with :GUARANTEE behind it in a grant that grows.
// Prints nothing; ends with 1 when the arguments are out of range.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "abi/grant.h"

int main(int argc, char** argv) {
  using namespace mete::abi;
  GrantCard cards[kMaxCards] = {};
  GrantSpec spec;
  spec.cards = cards;
  spec.parkable = argc > 1 && std::strcmp(argv[1], "--parkable") == 0;
  if (spec.parkable) --argc, ++argv;
  if (argc < 3) return 1;
  spec.job = "test";
  spec.uid = getuid();
  spec.part_count = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  for (int i = 3; i < argc; ++i) {
    if (spec.card_count == kMaxCards) return 1;
    GrantCard& card = cards[spec.card_count++];
    const char* at = argv[i] + 4;  // behind "GPU-"
    for (int digits = 0; digits < 32; ++at) {
      if (*at == '-') continue;
      unsigned value = 0;
      if (std::sscanf(at, "%1x", &value) != 1) return 1;
      card.uuid[digits / 2] = static_cast<uint8_t>(card.uuid[digits / 2] << 4 | value);
      ++digits;
    }
    unsigned long long limit = 0;
    unsigned long long first = 0;
    unsigned long long more = 0;
    unsigned long long guarantee = 0;
    const int found = std::sscanf(at, ":%llu:%llu:%llu:%llu", &limit, &first, &more, &guarantee);
    if (found < 3) return 1;
    spec.growing = found == 4;
    card.ceiling_bytes = limit;
    card.guarantee_bytes = spec.growing ? guarantee : limit;
    card.total_bytes = 1ull << 37;
    card.context_first_bytes = first;
    card.context_more_bytes = more;
  }
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Grant)) != 0) return 1;
  void* memory = mmap(nullptr, sizeof(Grant), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory != MAP_FAILED && init_grant(memory, spec) ? 0 : 1;
}
