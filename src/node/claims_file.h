// SPDX-License-Identifier: Apache-2.0
// What one daemon publishes for the other daemons of this machine about its grants, as text:
// docs/formats/claims.md. Any user may have written the parsed text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "seam/launcher.h"

namespace mete::node {

inline constexpr std::size_t kMaxClaimsBytes = 64 << 10;  // of one of the two copies in a file
inline constexpr std::size_t kMaxClaims = 400;            // each line is below 160 bytes

// What one job has, or is to have, on one card.
struct Claim {
  std::string uuid;  // "GPU-…"
  Bytes bytes;
  bool whole = false;  // no other job may have a share of this card
  bool held = true;    // false: tried for, and withdrawn if others are in the way
  std::optional<core::ProcessRef> runner;
  std::string job;  // "12": letters, digits, '-' and '_', at most 32
  bool operator==(const Claim&) const = default;
};

// One daemon of one user: the name of its file.
struct ClaimsOwner {
  std::uint32_t uid = 0;
  core::ProcessRef daemon;
  bool operator==(const ClaimsOwner&) const = default;
};
// When two try for the same bytes at once, the lesser owner goes on.
bool goes_first(const ClaimsOwner& a, const ClaimsOwner& b);

// "mete-claims.1000.412.98765", and back; nullopt for any other name.
std::string claims_name(const ClaimsOwner& owner);
std::optional<ClaimsOwner> parse_claims_name(std::string_view name);

struct ClaimsText {
  std::uint64_t sequence = 0;  // counts the changes: the copy with the higher one is valid
  ClaimsOwner owner;
  std::uint64_t pid_namespace = 0;  // inode: where the pids are valid
  std::string user;                 // its user's name: for users only, never checked
  std::vector<Claim> claims;
  bool operator==(const ClaimsText&) const = default;
};

// exhausted: more claims than a file holds; invalid: a UUID or a job's name that cannot be written.
Result<std::string> format_claims(const ClaimsText& text);
// One copy; text behind its last line is ignored. corrupt: also when it was being written.
Result<ClaimsText> parse_claims(std::string_view bytes);

}  // namespace mete::node
