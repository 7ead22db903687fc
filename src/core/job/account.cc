// SPDX-License-Identifier: Apache-2.0
// See account.h.
#include "core/job/account.h"

#include <array>
#include <utility>

#include "base/assert.h"

namespace mete::core {

namespace {

std::uint64_t spec_bytes(const JobSpec& spec) {
  std::uint64_t bytes = text_bytes(spec);
  if (spec.detached) bytes += spec.detached->groups.size() * 8 + spec.detached->limits.size() * 32;
  return bytes;
}

// Hash and size of each content; "": absent.
std::array<std::pair<const std::string*, std::uint64_t>, 3> contents_of(const JobSpec& spec) {
  static const std::string kNone;
  const Detached* detached = spec.detached ? &*spec.detached : nullptr;
  return {{{detached == nullptr ? &kNone : &detached->environment,
            detached == nullptr ? 0 : detached->environment_bytes},
           {detached == nullptr ? &kNone : &detached->script,
            detached == nullptr ? 0 : detached->script_bytes},
           {&spec.command_content, spec.command_bytes}}};
}

}  // namespace

std::uint64_t text_bytes(const JobSpec& spec) {
  std::uint64_t bytes = spec.name.size() + spec.user.size() + spec.folder.size();
  for (const std::string& word : spec.command) bytes += word.size() + 1;
  for (const auto& [key, value] : spec.labels) bytes += key.size() + value.size();
  for (const std::string& device : spec.request.devices) bytes += device.size() + 1;
  if (spec.request.gpu_type) bytes += spec.request.gpu_type->size();
  if (spec.request.where) bytes += spec.request.where->text().size();
  for (const NotifyTarget& target : spec.notify.to) bytes += to_string(target).size();
  bytes += spec.after.size() * sizeof(After);
  if (spec.array) bytes += to_string(*spec.array).size();
  if (spec.detached) bytes += spec.detached->log.size() + spec.detached->err.size();
  return bytes;
}

template <typename Key>
void Account::hold(std::map<Key, Shared>& shared, const Key& key, std::uint64_t bytes) {
  Shared& one = shared[key];
  if (one.holders++ == 0) bytes_ += one.bytes = bytes;
}

template <typename Key>
void Account::drop(std::map<Key, Shared>& shared, const Key& key) {
  const auto found = shared.find(key);
  METE_ASSERT(found != shared.end());
  if (--found->second.holders != 0) return;
  bytes_ -= found->second.bytes;
  shared.erase(found);
}

void Account::hold(const Job& job) {
  const JobSpec& spec = *job.spec;
  bytes_ += kJobBytes;
  if (job.id.element)
    hold(arrays_, job.id.number, spec_bytes(spec));
  else
    bytes_ += spec_bytes(spec);
  for (const auto& [hash, bytes] : contents_of(spec))
    if (!hash->empty()) hold(contents_, *hash, bytes);
}

void Account::drop(const Job& job) {
  const JobSpec& spec = *job.spec;
  bytes_ -= kJobBytes;
  if (job.id.element)
    drop(arrays_, job.id.number);
  else
    bytes_ -= spec_bytes(spec);
  for (const auto& [hash, bytes] : contents_of(spec))
    if (!hash->empty()) drop(contents_, *hash);
}

std::uint64_t Account::more_by(const JobSpec& spec, std::uint64_t jobs,
                               std::uint64_t number) const {
  std::uint64_t more = jobs * kJobBytes;
  if (number == 0 || !arrays_.contains(number)) more += spec_bytes(spec);
  for (const auto& [hash, bytes] : contents_of(spec))
    if (!hash->empty() && !contents_.contains(*hash)) more += bytes;
  return more;
}

}  // namespace mete::core
