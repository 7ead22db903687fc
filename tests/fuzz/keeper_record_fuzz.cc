// SPDX-License-Identifier: Apache-2.0
// Any bytes as a keeper's record: refused, or understood without a fault. In a system daemon the
// file's writer runs as the job's user. Checksums would keep a fuzzer out, so the input is also
// taken as the four texts of a record, put in place with sums that are right.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "abi/grant.h"
#include "base/assert.h"
#include "launch/keeper_record.h"

namespace {

void read(const std::string& bytes) {
  using namespace mete;
  const Result<launch::Record> record = launch::parse_record(bytes);
  if (!record) return;
  METE_ASSERT(record->groups.size() <= launch::kMaxGroups);
  METE_ASSERT(record->claim.keeper.pid > 0);
  METE_ASSERT(!record->program || (record->program->program.pid > 0 && record->launched));
  METE_ASSERT(!record->exit || (record->exit->size() < 2048 && record->launched));
  const launch::RecordName name{record->claim.job, record->claim.attempt};
  METE_ASSERT(launch::parse_record_name(launch::to_string(name)) == name);
}

void put(std::string& record, std::size_t begin, std::size_t end, std::string text) {
  std::uint64_t sum = mete::abi::fnv1a(text.data(), text.size());
  std::string line = "end0000000000000000\n";
  for (std::size_t i = 18; i > 2; --i, sum >>= 4) line[i] = "0123456789abcdef"[sum & 15];
  text += line;
  if (text.size() <= end - begin) record.replace(begin, text.size(), text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  const auto name = mete::launch::parse_record_name(bytes);
  if (name) METE_ASSERT(mete::launch::to_string(*name) == bytes);
  std::string record(mete::launch::kRecordBytes, '\0');
  const std::size_t ends[] = {0, 512, 1536, 2048, 4096};
  std::size_t at = 0;
  for (int area = 0; area < 4 && at <= bytes.size(); ++area) {
    const std::size_t next = std::min(bytes.find('\x01', at), bytes.size());
    put(record, ends[area], ends[area + 1], bytes.substr(at, next - at));
    at = next + 1;
  }
  read(record);
  return 0;
}
